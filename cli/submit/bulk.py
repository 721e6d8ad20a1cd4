"""Many submissions in one ask: what they have in common is sent once, and each is answered, in their order.

Rule: an ask that would be larger than a frame may be is sent in halves; one that alone is too large is refused alone.
"""

from __future__ import annotations

import time

from cli.client.client import Client, TooLarge
from cli.client.context import Context, Fail, Refused
from cli.submit import folder_probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.client.frames import Frame
    from proto.answers import Answer, Result

MOST = 10_000
"""Jobs in one ask."""
_COMMON = ("home", "umask", "shell")
"""What jobs that are sent together have in common."""
_OWN = ("script", "checkpoint_folder", "checkpoint_probe", "checkpoint_mount", "roles", "policy")


def submit_many(context: Context, client: Client, frames: list[Frame]) -> Iterator[Answer | Refused | None]:
    """What became of each submission (frames of ``submission``, without restarts), as soon as it is known and in their order.

    Where the user has too many jobs, those refused are asked again at intervals, LSB_NTRIES times if that is set. Raises Fail
    where the master does not answer any more; what is known until then comes first, with None for what is not known.
    """
    begin = 0
    while begin < len(frames):
        end = begin + 1
        while end < len(frames) and end - begin < MOST and all(frames[end][key] == frames[begin][key] for key in _COMMON):
            end += 1
        with folder_probe.written_all(frames[begin:end]) as tried:
            yield from _until_settled(context, client, tried)
        begin = end


def _until_settled(context: Context, client: Client, frames: list[Frame]) -> Iterator[Answer | Refused | None]:
    known: dict[int, Answer | Refused] = {}
    left = list(range(len(frames)))
    told = tries = 0
    try:
        while left:
            waiting = []
            tries += 1
            for at, one in zip(left, _asked(client, [frames[at] for at in left]), strict=True):
                if isinstance(one, Refused) and one.retry and tries != client.tries:
                    waiting.append((at, one))
                else:
                    known[at] = one
            while told in known:
                yield known.pop(told)
                told += 1
            if waiting:
                pause = max(one.retry for _, one in waiting)
                many = f": {len(waiting)} jobs wait" if len(waiting) > 1 else ""
                context.err(f"{waiting[0][1]}{many}. Retrying in {pause} seconds...\n")
                time.sleep(pause)
            left = [at for at, _ in waiting]
    except (Fail, KeyboardInterrupt):
        # jobs that were made behind one that waits
        for at in range(told, max(known, default=-1) + 1):
            yield known.get(at)
        raise


def _asked(client: Client, frames: list[Frame]) -> Iterator[Answer | Refused]:
    try:
        if len(frames) == 1:
            yield client.change(frames[0])
            return
        ok = client.change(together(frames))
    except TooLarge as fail:
        if len(frames) == 1:
            yield Refused(fail.text)
            return
        half = len(frames) // 2
        yield from _asked(client, frames[:half])
        yield from _asked(client, frames[half:])
        return
    except Refused as refused:
        yield from [refused] * len(frames)
        return
    rows = ok.get("results", [])
    if len(rows) != len(frames):
        raise Fail("lavad sent an answer that this command does not understand")
    yield from map(_outcome, rows)


def _outcome(row: Result) -> Answer | Refused:
    if row.get("ok"):
        return {
            "job": row["job"],
            "queue": row["queue"],
            "default": row.get("default", False),
            "notices": row.get("notices", []),
        }
    refused = Refused(row.get("why", ""), row.get("exit", 255))
    refused.retry = row.get("retry", 0)
    return refused


def together(frames: list[Frame]) -> Frame:
    """The one ask of several submissions whose ``_COMMON`` are equal."""
    first = frames[0]
    options = _shared(frames)
    jobs = [_job(frame, first, options) for frame in frames]
    common = {key: first[key] for key in _COMMON}
    return {"ask": "bulk", **common, "env": first["env"], "cwd": first["cwd"], "options": options, "jobs": jobs}


def _shared(frames: list[Frame]) -> dict[str, object]:
    """The options that all have, with the same value."""
    shared = dict(_mapping(frames[0]["options"]))
    for frame in frames:
        own = _mapping(frame["options"])
        for name in [name for name, value in shared.items() if name not in own or own[name] != value]:
            del shared[name]
    return shared


def _job(frame: Frame, first: Frame, options: dict[str, object]) -> Frame:
    job: Frame = {"command": frame["command"]}
    own = {name: value for name, value in _mapping(frame["options"]).items() if name not in options}
    if own:
        job["options"] = own
    if frame["cwd"] != first["cwd"]:
        job["cwd"] = frame["cwd"]
    if frame["env"] != first["env"]:
        job["env"] = _changes(_mapping(first["env"]), _mapping(frame["env"]))
    for key in _OWN:
        if frame.get(key):
            job[key] = frame[key]
    return job


def _changes(env: dict[str, object], own: dict[str, object]) -> dict[str, object]:
    """Variables that have another value, None for those that are missing."""
    changes = {name: value for name, value in own.items() if env.get(name) != value}
    changes.update((name, None) for name in env if name not in own)
    return changes


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
