"""What changes something: the body becomes the ask of the command of that name, made as the user who is signed in."""

from __future__ import annotations

import os

from starlette.requests import Request

from proto.answers import Answer
from web.master import Frame, Master
from web.problems import Problem, of_refusal
from web.rest import bodies, submit
from web.rest.answers import Changed, Done, Submitted
from web.signin import SignIn, Who

_QUEUE_VERBS = {"queue_open": "open", "queue_close": "close", "queue_activate": "activate", "queue_inactivate": "inactivate"}


def done_once(request: Request, who: Who) -> dict[str, str | bool]:
    """So that what is sent again, by the page or by a client that gives an Idempotency-Key, is done once. Raises Problem."""
    key = request.headers.get("idempotency-key", "")
    if len(key) > 255 or not (key.isascii() and key.isprintable()):
        raise Problem(400, "Idempotency-Key: at most 255 characters of ASCII are expected")
    what = f"{request.method} {request.url.path}"
    return {"uuid": submit.uuid_of(who.user, what, key), "again": True} if key else {"uuid": os.urandom(16).hex()}


async def submitted(request: Request, master: Master, sign_in: SignIn, who: Who) -> tuple[Submitted, str]:
    """A new job, and its id. Raises Problem."""
    body = await bodies.read(request, bodies.Submit)
    frame = submit.frame_of(body, who.user, await sign_in.account(who.user))
    try:
        answer = await master.ask({**frame, **done_once(request, who)}, who.token)
    except Problem as problem:
        # what an option names is no address
        raise Problem(422, problem.detail) if problem.status == 404 else problem from None
    job = str(answer["job"])
    return Submitted(id=job, queue=str(answer.get("queue", "")), notices=list(answer.get("notices", []))), job


async def changed(name: str, request: Request, master: Master, who: Who) -> Done:
    """What a route of this name does. Raises Problem."""
    ident = request.path_params["id"]
    frame = await _frame(name, ident, request)
    if "hosts" in frame:
        await master.record(["host", ident], {}, who.token)  # badmin takes groups of hosts by their names, too
    try:
        return _done(ident, await master.ask({**frame, **done_once(request, who)}, who.token))
    except Problem as problem:
        if problem.status != 404 or ("jobs" not in frame and "job" not in frame) or _is_of(ident, problem.detail):
            raise
        raise Problem(422, problem.detail) from None  # what the body names is no address


def _is_of(ident: str, why: str) -> bool:
    """Whether it says that there is no such job."""
    return why.removeprefix(f"{ident}: ") == "No matching job found" or why == f"Job <{ident}> is not found"


def jobs_of(idents: list[str]) -> dict[str, object]:
    """Jobs of an ask. Raises Problem for 0, which is no job, but all of the caller's where commands take it."""
    for ident in idents:
        if not ident.strip().strip("0"):  # lavad takes blanks around an id
            raise Problem(404, f"Job <{ident}> is not found")
    return {"ids": idents}


async def _frame(name: str, ident: str, request: Request) -> Frame:
    if name.startswith(("host_", "queue_")) and ident == "all":
        kind = name.partition("_")[0]
        raise Problem(404, f"{ident}: the name of one {kind} is expected")
    jobs = {} if name.startswith(("host_", "queue_")) else jobs_of([ident])
    if name == "delete":
        return {"ask": "kill", "jobs": jobs}
    if name == "kill":
        kill = await bodies.read(request, bodies.Kill)
        return {"ask": "kill", "jobs": jobs, "signal": kill.signal, "reason": kill.reason, "now": kill.forget}
    if name in ("stop", "resume"):
        return {"ask": name, "jobs": jobs, "reason": (await bodies.read(request, bodies.Because)).reason}
    if name == "requeue":
        again = await bodies.read(request, bodies.Requeue)
        states = {"states": ["RUN", "USUSP", "SSUSP", "DONE", "EXIT"]} if again.ended else {}
        return {"ask": "requeue", "jobs": jobs, "reason": again.reason, "hold": again.hold, **states}
    if name == "switch":
        return {"ask": "switch", "jobs": jobs, "queue": (await bodies.read(request, bodies.Switch)).queue}
    if name == "move":
        move = await bodies.read(request, bodies.Move)
        return {"ask": "move", "job": ident, "top": move.top, "place": move.place}
    if name == "modify":
        change = await bodies.read(request, bodies.Modify)
        if not change.options and not change.command:
            raise Problem(400, "options: there is nothing to change")
        return {"ask": "modify", "job": ident, "options": submit.options_of(change.options), "command": change.command}
    comment = (await bodies.read(request, bodies.Comment)).comment
    if name in ("host_open", "host_close"):
        return {"ask": "hosts", "hosts": [ident], "close": name == "host_close", "comment": comment}
    return {"ask": "queues", "queues": [ident], "what": _QUEUE_VERBS[name], "comment": comment}


def rows_of(answer: Answer, ident: str = "") -> list[Changed]:
    """What became of each job, host, queue or token that an ask was about; ``ident``: of one that the answer does not name."""
    return [
        Changed(str(row.get("id") or row.get("host") or row.get("queue") or ident), bool(row.get("ok")), str(row.get("why", "")))
        for row in answer["results"]
    ]


def _done(ident: str, answer: Answer) -> Done:
    """Raises Problem where nothing was done."""
    if "results" not in answer:
        if why := answer.get("none"):
            raise of_refusal(str(why), True)
        return Done([Changed(ident, True)])
    found = rows_of(answer, ident)
    if found and not any(row.ok for row in found):
        raise of_refusal(found[0].why or "refused", True)
    if not found:
        raise of_refusal(str(answer.get("none") or f"{ident} is not found"), True)
    return Done(found)
