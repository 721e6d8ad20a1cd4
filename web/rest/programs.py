"""What programs ask that have many jobs under way: many at once, listings by field, and the changes of all their jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from web.master import Master
from web.problems import Problem, of_refusal
from web.rest import answers, bodies, changes, submit
from web.rest.replies import SSE, event, in_json
from web.signin import SignIn, Who
from web.streams import Open, StreamAnswer, Streams

PROGRAMS = ("submit_many", "kill_many", "listing", "explanation", "stats", "end", "changes", "changes_events")
LONGEST_WAIT = 15.0
"""Seconds: shorter than the patience of proxies, and of the page with the master."""
AGAIN = 1.0
MOST_DIGITS = 18
"""Of a number that lavad reads."""
WIDE = 10_000
NARROW = 120


class _Printed(msgspec.Struct):
    """What ``bjobs -json`` prints."""

    RECORDS: list[dict[str, str]]


_printed = msgspec.json.Decoder(_Printed)


class Programs:
    """The routes of the table that have these names."""

    def __init__(self, master: Master, sign_in: SignIn, streams: Streams) -> None:
        self._master = master
        self._sign_in = sign_in
        self._streams = streams

    async def submit_many(self, request: Request) -> Response:
        who = await self._sign_in.who(request)
        body = await bodies.read(request, bodies.SubmitMany)
        frame = submit.frame_of_many(body, who.user, await self._sign_in.account(who.user))
        answer = await self._master.ask({**frame, **changes.done_once(request, who)}, who.token)
        rows = [
            answers.Taken(
                id=str(row.get("job", "")),
                queue=str(row.get("queue", "")),
                notices=list(row.get("notices", [])),
                why=str(row.get("why", "")),
                retry=float(row.get("retry", 0)),
            )
            for row in answer.get("results", [])
        ]
        return in_json(answers.SubmittedMany(rows))

    async def kill_many(self, request: Request) -> Response:
        who = await self._sign_in.who(request)
        body = await bodies.read(request, bodies.KillMany)
        frame = {"ask": "kill", "jobs": changes.jobs_of(body.ids), "reason": body.reason}
        answer = await self._master.ask({**frame, **changes.done_once(request, who)}, who.token)
        if "results" not in answer:
            raise of_refusal(str(answer.get("none") or "No matching job found"), True)
        return in_json(answers.Done(changes.rows_of(answer)))

    async def listing(self, request: Request) -> Response:
        who = await self._sign_in.who(request)
        body = await bodies.read(request, bodies.Listing)
        text = await self._master.listing("bjobs", body.ids, {"o": body.fields, "json": True}, who.token, WIDE)
        return in_json(answers.Listed(_printed.decode(text).RECORDS))

    async def explanation(self, request: Request) -> Response:
        return await self._printed("why", request)

    async def stats(self, request: Request) -> Response:
        return await self._printed("stats", request)

    async def _printed(self, command: str, request: Request) -> Response:
        who = await self._sign_in.who(request)
        text = await self._master.listing(command, [request.path_params["id"]], {}, who.token, NARROW)
        return PlainTextResponse(text, headers={"Cache-Control": "no-store"})

    async def end(self, request: Request) -> Response:
        """An array has ended with its last element."""
        who = await self._sign_in.who(request)
        job = request.path_params["id"]
        if not (job.isascii() and job.isdigit() and len(job) <= MOST_DIGITS):
            raise Problem(400, f"{job[:40]}: the number of a job, or of an array as a whole, is expected")
        try:
            with self._streams.open(who):
                async with asyncio.timeout(LONGEST_WAIT):
                    answer = await self._master.ask({"ask": "wait", "job": int(job)}, who.token, changes=False)
        except TimeoutError:
            raise Problem(409, f"Job <{job}> has not ended") from None
        return in_json(msgspec.convert(answer, answers.End))

    async def changes(self, request: Request) -> Response:
        who = await self._sign_in.who(request)
        given = request.query_params.get("wait") or "0"
        try:
            wait = float(given)
        except ValueError:
            wait = -1.0
        if not 0 <= wait <= LONGEST_WAIT:
            raise Problem(400, f"wait: {given[:40]}: seconds, at most {LONGEST_WAIT:g}, are expected")
        with self._streams.open(who):
            return in_json(await self._changes(request.query_params.get("after", ""), wait, who))

    async def changes_events(self, request: Request) -> Response:
        who = await self._sign_in.who(request)
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        news = await self._changes(after, 0, who)
        opened = self._streams.open(who)
        return StreamAnswer(opened, self._events(news, after, opened), SSE, "text/event-stream")

    async def _events(self, news: answers.JobChanges, after: str, opened: Open) -> AsyncGenerator[str]:
        while not opened.is_over:
            yield event("changes", news, news.after) if news.changes or news.after != after else ": alive\n\n"
            after = news.after
            try:
                news = await self._changes(after, LONGEST_WAIT, opened.who)
            except Problem as problem:
                if problem.status in (401, 403):
                    yield event("problem", problem.detail)
                    return
                yield ": the master is awaited\n\n"
                await asyncio.sleep(AGAIN)
                news = answers.JobChanges(after, False, [])

    async def _changes(self, after: str, wait: float, who: Who) -> answers.JobChanges:
        answer = await self._master.ask({"ask": "changes", "after": after, "wait": wait}, who.token, changes=False)
        return msgspec.convert(answer, answers.JobChanges)
