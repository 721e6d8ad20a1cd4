"""The application: REST, the pages, signing in, and what every answer carries for safety."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proto.site_records import Me
from web import problems
from web.master import Master
from web.news import News
from web.problems import Problem
from web.records_cache import Records
from web.rest import answers, changes, openapi
from web.rest.programs import PROGRAMS, Programs
from web.rest.replies import SSE, event, in_json
from web.rest.routes import ROOT, TABLE
from web.rest.routes import Route as Row
from web.rest.tokens import TOKENS, Tokens
from web.settings import Settings
from web.signin import SignIn, Who
from web.streams import Open, StreamAnswer, Streams
from web.uploads import Uploads

STATIC = Path(__file__).with_name("static")
MOST_OUTPUT = 256 << 10
MAX_BYTES = (1 << 53) - 1
"""Of a whole output, which says then that lavad adds nothing of its own to it."""
PEEK_PATIENCE = 20.0
SHORT = 100
"""Characters of a number or word of the query string."""
Form = Callable[[Open, str, AsyncGenerator[str]], AsyncGenerator[str]]
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_me = msgspec.json.Decoder(Me)


class Guard:
    """Middleware: the Host header is one of ours, and every answer carries the headers for safety."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._names = settings.names()
        self._headers = headers_of(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        host = Request(scope).headers.get("host", "")
        if _name_of(host) not in self._names:
            answer = problems.answer(Problem(421, "This server is not known by that name (LAVA_WEB_URL)"))
            await answer(scope, receive, sending)
            return
        await self._app(scope, receive, sending)


def headers_of(settings: Settings) -> dict[str, str]:
    """Those for safety."""
    return HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if settings.is_secure else {})


def _name_of(host: str) -> str:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name


class Static(StaticFiles):
    """Files that a browser asks for again each time (304 as a rule): after an upgrade no old script runs beside new ones."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "no-cache"
        return response


class Page:
    """What routes share."""

    def __init__(self, settings: Settings, master: Master, sign_in: SignIn) -> None:
        self.settings = settings
        self.master = master
        self.sign_in = sign_in
        self.records = Records(master, time.monotonic)
        self.news = News(master)
        self.streams = Streams()

    async def login(self, request: Request) -> Response:
        """The address that ``lava web`` prints. A link of somebody else's on another site would sign in as them."""
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Problem(403, "A link on another site signs nobody in; paste the address that `lava web` prints")
        answer = await self.sign_in.session_of(request, request.query_params.get("link", ""))
        response = RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        ends = int(float(answer["ends"]) - time.time())
        response.set_cookie(
            self.sign_in.cookie,
            str(answer["token"]),
            max_age=max(ends, 0),
            path="/",
            secure=self.settings.is_secure,
            httponly=True,
            samesite="lax",
        )
        return response

    async def session(self, request: Request) -> Response:
        who = await self.sign_in.who(request)
        me = _me.decode(await self.records.get(["me"], {}, who))
        return in_json(answers.Session(me.user, me.cluster, me.is_admin, me.queues, who.csrf))

    async def sign_out(self, request: Request) -> Response:
        who = await self.sign_in.who(request)
        await self.master.ask({"ask": "revoketokens", "this": True}, who.token)
        self.sign_in.forget(who.token)
        self.streams.end(who)
        response = Response(status_code=204)
        response.delete_cookie(self.sign_in.cookie, path="/", secure=self.settings.is_secure, httponly=True, samesite="lax")
        return response

    def record(self, row: Row) -> Callable[[Request], Awaitable[Response]]:
        """A route that answers a record."""

        async def answer(request: Request) -> Response:
            who = await self.sign_in.who(request)
            words = [row.word, *request.path_params.values()]
            options = {name: value for name, value in request.query_params.items() if value}
            data = await self.records.get(words, options, who)
            return Response(data, headers={"Cache-Control": "no-store"}, media_type="application/json")

        return answer

    async def submit(self, request: Request) -> Response:
        who = await self.sign_in.who(request)
        done, job = await changes.submitted(request, self.master, self.sign_in, who)
        self.records.forget(who)
        return in_json(done, 201, {"Location": f"{ROOT}/jobs/{job}"})

    def change(self, row: Row) -> Callable[[Request], Awaitable[Response]]:
        """A route that changes something."""

        async def answer(request: Request) -> Response:
            who = await self.sign_in.who(request)
            done = await changes.changed(row.name, request, self.master, who)
            self.records.forget(who)
            return in_json(done)

        return answer

    async def output(self, request: Request) -> Response:
        """The end of what a job has written, or all of it."""
        who = await self.sign_in.who(request)
        whole = request.query_params.get("whole", "false")
        if whole not in ("true", "false"):
            raise Problem(400, "whole: true or false is expected")
        frame = {"ask": "peek", "job": request.path_params["id"], "last": MOST_OUTPUT if whole == "false" else MAX_BYTES}
        pieces = self.master.stream(frame, who.token)
        if whole == "true":
            return await self._passed_on(who, pieces, _as_it_is, {"Cache-Control": "no-store"}, "text/plain")
        try:
            async with asyncio.timeout(PEEK_PATIENCE):
                text = "".join([piece async for piece in pieces])
        except TimeoutError:
            raise Problem(503, "The output cannot be read in time; bpeek shows it", 5) from None
        return PlainTextResponse(text, headers={"Cache-Control": "no-store"})

    async def _passed_on(
        self, who: Who, pieces: AsyncGenerator[str], form: Form, headers: Mapping[str, str], media_type: str
    ) -> Response:
        """Output in this form as it comes; what is wrong from the start is told by the status. Raises Problem."""
        opened = self.streams.open(who)
        try:
            first = await anext(pieces, "")
        except BaseException:
            opened.close()
            raise
        return StreamAnswer(opened, form(opened, first, pieces), headers, media_type)

    async def tail(self, request: Request) -> Response:
        """The end of what a job has written, and what it writes, as it comes."""
        who = await self.sign_in.who(request)
        frame = {"ask": "peek", "job": request.path_params["id"], "follow": True, "last": MOST_OUTPUT}
        return await self._passed_on(who, self.master.stream(frame, who.token), _as_events, SSE, "text/event-stream")

    async def events(self, request: Request) -> Response:
        who = await self.sign_in.who(request)
        opened = self.streams.open(who)
        return StreamAnswer(opened, self.news.follow(opened), SSE, "text/event-stream")

    async def healthy(self, _: Request) -> Response:
        """Whether the page serves, and the master answers it."""
        answers_us = await self.master.is_there()
        return JSONResponse({"page": "ok", "master": "ok" if answers_us else "silent"}, 200 if answers_us else 503)

    async def index(self, _: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})


def _taking(
    row: Row, answer: Callable[[Request], Awaitable[Response]], uploads: Uploads
) -> Callable[[Request], Awaitable[Response]]:
    """The route, which takes its own parameters only: one that is misspelt is not as if it were not there."""
    given = {param.name: param.schema.get("maxLength") for param in row.params}
    longest = {name: most if isinstance(most, int) else SHORT for name, most in given.items()}

    async def checked(request: Request) -> Response:
        if unknown := [name for name in request.query_params if name not in longest]:
            raise Problem(400, f"{unknown[0][:80]}: no such parameter")
        if len(request.query_params.multi_items()) != len(request.query_params):
            raise Problem(400, "a parameter is given twice")
        if long := [name for name, value in request.query_params.items() if len(value) > longest[name]]:
            raise Problem(400, f"{long[0]}: at most {longest[long[0]]} characters")
        async with AsyncExitStack() as answered:
            request.state.body = lambda: uploads.read(request, answered)
            return await answer(request)

    return checked


async def _as_it_is(_: Open, first: str, pieces: AsyncGenerator[str]) -> AsyncGenerator[str]:
    yield first
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece


async def _as_events(opened: Open, first: str, pieces: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """Without the event ``end`` while the job writes on: the browser then comes back."""
    yield event("output", first)
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                yield event("output", piece) if piece else ": alive\n\n"
                if opened.is_over:
                    return
            yield event("end", "")
        except Problem as problem:
            yield event("problem", problem.detail)


async def _not_found(_: Request, error: Exception) -> Response:
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (404, None)
    words = "There is no such address" if status == 404 else str(getattr(error, "detail", ""))
    return problems.answer(Problem(status, words), headers)


def make_app(settings: Settings, master: Master, sign_in: SignIn) -> Starlette:
    """The application."""
    page = Page(settings, master, sign_in)
    programs = Programs(master, sign_in, page.streams)
    own = {name: getattr(page, name) for name in ("session", "sign_out", "submit", "output", "tail", "events")}
    own |= {name: getattr(programs, name) for name in PROGRAMS}
    tokens = Tokens(master, sign_in)
    own |= {name: getattr(tokens, name) for name in TOKENS}
    routes: list[Route | Mount] = []
    uploads = Uploads(page.streams)
    for row in TABLE:
        answer = own.get(row.name) or (page.record(row) if row.word else page.change(row))
        routes.append(Route(ROOT + row.path, _taking(row, answer, uploads), methods=[row.method], name=row.name))
    description = openapi.document()

    async def described(_: Request) -> Response:
        return JSONResponse(description)

    routes += [
        Route("/api/openapi.json", described),
        Route("/healthz", page.healthy),
        Route("/login", page.login),
        Route("/", page.index),
        Mount("/static", Static(directory=STATIC)),
    ]

    async def problem(request: Request, error: Exception) -> Response:
        if isinstance(error, Problem) and error.status == 401 and hasattr(request.state, "who"):
            sign_in.forget(request.state.who.token)
        return await problems.handler(request, error)

    async def failed(request: Request, error: Exception) -> Response:
        """Outside of all middleware."""
        response = await problems.handler(request, error)
        response.headers.update(headers_of(settings))
        return response

    handlers = {Problem: problem, HTTPException: _not_found, Exception: failed}
    middleware = [Middleware(Guard, settings=settings), Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)]
    app = Starlette(routes=routes, exception_handlers=handlers, middleware=middleware)
    app.router.redirect_slashes = False  # an address with one more is none of ours
    return app
