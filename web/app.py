"""The application: REST, the pages, signing in, and what every answer carries for safety."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
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
from web.settings import Settings
from web.signin import SignIn

STATIC = Path(__file__).with_name("static")
MOST_OUTPUT = 256 << 10
PEEK_PATIENCE = 20.0
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
        self._headers = HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if settings.is_secure else {})

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


def _name_of(host: str) -> str:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name


class Page:
    """What routes share."""

    def __init__(self, settings: Settings, master: Master, sign_in: SignIn) -> None:
        self.settings = settings
        self.master = master
        self.sign_in = sign_in
        self.records = Records(master, time.monotonic)
        self.news = News(master)

    async def login(self, request: Request) -> Response:
        """The address that ``lava web`` prints."""
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
        self.sign_in.forget(who.token)
        response = Response(status_code=204)
        response.delete_cookie(self.sign_in.cookie, path="/", secure=self.settings.is_secure, httponly=True, samesite="lax")
        return response

    def record(self, row: Row) -> Callable[[Request], Awaitable[Response]]:
        """A route that answers a record."""
        names = {param.name for param in row.params}

        async def answer(request: Request) -> Response:
            who = await self.sign_in.who(request)
            if unknown := [name for name in request.query_params if name not in names]:
                raise Problem(400, f"{unknown[0][:80]}: no such parameter")
            if len(request.query_params.multi_items()) != len(request.query_params):
                raise Problem(400, "a parameter is given twice")
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
        text = ""
        frame = {"ask": "peek", "job": request.path_params["id"]}
        whole = request.query_params.get("whole", "false")
        if whole not in ("true", "false"):
            raise Problem(400, "whole: true or false is expected")
        if whole == "true":
            pieces = self.master.stream(frame, who.token)
            first = await anext(pieces, "")
            return StreamingResponse(_after(first, pieces), headers={"Cache-Control": "no-store"}, media_type="text/plain")
        async with asyncio.timeout(PEEK_PATIENCE):
            async for piece in self.master.stream(frame, who.token):
                text = (text + piece)[-MOST_OUTPUT:]
        return PlainTextResponse(text, headers={"Cache-Control": "no-store"})

    async def tail(self, request: Request) -> Response:
        """What a job writes, as it comes."""
        who = await self.sign_in.who(request)
        pieces = self.master.stream({"ask": "peek", "job": request.path_params["id"], "follow": True}, who.token)
        try:
            first = await anext(pieces, "")
        except Problem as problem:
            return problems.answer(problem)

        async def events() -> AsyncIterator[str]:
            yield event("output", first)
            try:
                async for piece in pieces:
                    yield event("output", piece) if piece else ": alive\n\n"
                yield event("end", "")
            except Problem as problem:
                yield event("problem", problem.detail)

        return StreamingResponse(events(), headers=SSE, media_type="text/event-stream")

    async def events(self, request: Request) -> Response:
        who = await self.sign_in.who(request)
        return StreamingResponse(self.news.follow(who), headers=SSE, media_type="text/event-stream")

    async def healthy(self, _: Request) -> Response:
        """Whether the page serves, and the master answers it."""
        answers_us = await self.master.is_there()
        return JSONResponse({"page": "ok", "master": "ok" if answers_us else "silent"}, 200 if answers_us else 503)

    async def index(self, _: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})


async def _after(first: str, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for piece in pieces:
        yield piece


async def _not_found(_: Request, error: Exception) -> Response:
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (404, None)
    words = "There is no such address" if status == 404 else str(getattr(error, "detail", ""))
    return problems.answer(Problem(status, words), headers)


def make_app(settings: Settings, master: Master, sign_in: SignIn) -> Starlette:
    """The application."""
    page = Page(settings, master, sign_in)
    programs = Programs(master, sign_in)
    own = {name: getattr(page, name) for name in ("session", "sign_out", "submit", "output", "tail", "events")}
    own |= {name: getattr(programs, name) for name in PROGRAMS}
    routes: list[Route | Mount] = []
    for row in TABLE:
        answer = own.get(row.name) or (page.record(row) if row.word else page.change(row))
        routes.append(Route(ROOT + row.path, answer, methods=[row.method], name=row.name))
    description = openapi.document()

    async def described(_: Request) -> Response:
        return JSONResponse(description)

    async def no_such(_: Request) -> Response:
        raise HTTPException(404)

    routes += [
        Route("/api/openapi.json", described),
        Route("/api/{rest:path}", no_such),
        Route("/healthz", page.healthy),
        Route("/login", page.login),
        Route("/", page.index),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    handlers = {Problem: problems.handler, HTTPException: _not_found, Exception: problems.handler}
    middleware = [Middleware(Guard, settings=settings), Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)]
    return Starlette(routes=routes, exception_handlers=handlers, middleware=middleware)
