"""Connections of the page's server: one that brings no request is closed, one in use is not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from web import main
from web.main import Listener, Patient
from web.settings import Settings

MANY = 60
ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def _told(reader: asyncio.StreamReader) -> bytes:
    return (await reader.readuntil(b"\r\n\r\nok"))[:15]


def test_only_a_connection_that_brings_no_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one whose answer takes long; but one that has had an answer and begins another request for ever."""
    monkeypatch.setattr(main, "SILENT", 0.5)

    async def tried() -> None:
        others_closed = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/long":
                await others_closed.wait()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})

        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(lambda: Patient(config, state, {}), "127.0.0.1", 0)
        place = server.sockets[0].getsockname()[:2]
        used, to_used = await asyncio.open_connection(*place)
        to_used.write(ASKED.replace(b"/ ", b"/long "))
        (silent, to_silent), (slow, to_slow) = [await asyncio.open_connection(*place) for _ in range(2)]
        to_silent.write(b"GET ")
        to_slow.write(ASKED)
        assert await _told(slow) == b"HTTP/1.1 200 OK"
        to_slow.write(b"GET ")
        for closed in (silent, slow):
            assert await asyncio.wait_for(closed.read(), 60) == b""
        others_closed.set()
        assert await _told(used) == b"HTTP/1.1 200 OK"
        for writer in (to_used, to_silent, to_slow):
            writer.close()
        server.close()

    asyncio.run(tried())


@pytest.mark.parametrize("bad", [b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 2000])
def test_what_is_no_request_is_told_as_any_problem(bad: bytes) -> None:
    async def tried() -> bytes:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            raise AssertionError

        config = uvicorn.Config(app, log_config=None, lifespan="off", h11_max_incomplete_event_size=1000)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(lambda: Patient(config, state, {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(bad)
        told = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        server.close()
        return told

    head, _, body = asyncio.run(tried()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    assert json.loads(body) == {
        "type": "about:blank",
        "title": "Bad request",
        "status": 400,
        "detail": "Invalid HTTP request received.",
    }


def test_a_connection_too_many_is_told_as_any_problem_and_the_others_are_served() -> None:
    async def tried() -> tuple[bytes, bytes, bytes]:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})

        config = uvicorn.Config(app, log_config=None, lifespan="off", limit_concurrency=1)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(lambda: Patient(config, state, {}), "127.0.0.1", 0)
        place = server.sockets[0].getsockname()[:2]
        first, to_first = await asyncio.open_connection(*place)
        to_first.write(ASKED)
        before = await _told(first)
        second, to_second = await asyncio.open_connection(*place)
        to_second.write(ASKED)
        told = await asyncio.wait_for(second.read(), 60)
        to_first.write(ASKED)
        after = await _told(first)
        for writer in (to_first, to_second):
            writer.close()
        server.close()
        return before, told, after

    before, told, after = asyncio.run(tried())
    assert before == after == b"HTTP/1.1 200 OK"
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"content-type: application/problem+json" in head.lower()
    assert b"retry-after: 5" in head.lower()
    assert json.loads(body)["detail"] == "Too many connections; try again"


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_beginning() -> None:
    with main._listen(Settings("", "127.0.0.1", 0, "")) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_connection_that_takes_nothing_of_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch, is_whole: bool) -> None:
    """Whether the whole answer waits to be taken, or what makes it still waits."""
    monkeypatch.setattr(main, "SILENT", 0.2)

    async def tried() -> None:
        ended, lost = asyncio.Event(), asyncio.Event()

        class Seen(Patient):
            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                lost.set()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            body = {"type": "http.response.body", "body": bytes(32 << 20)}
            try:
                for _ in range(0 if is_whole else 3):
                    await send({**body, "more_body": True})
                await send(body)
            finally:
                ended.set()

        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(lambda: Seen(config, state, {}), "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()[:2]) as deaf:
            deaf.sendall(ASKED)
            await lost.wait()
            await ended.wait()
        server.close()

    asyncio.run(asyncio.wait_for(tried(), 60))


def test_what_the_kernel_has_of_an_answer_is_not_taken_yet() -> None:
    """Of a slow connection it takes much at once from the page, and then nothing for long."""

    async def tried() -> None:
        ended = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": bytes(32 << 20)})
            ended.set()

        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(lambda: Patient(config, state, {}), "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()[:2]) as deaf:
            deaf.sendall(ASKED)
            await ended.wait()
            (connection,) = state.connections
            assert isinstance(connection, Patient)
            assert connection._left() > connection.transport.get_write_buffer_size() > 0
        server.close()

    asyncio.run(tried())


def test_who_connects_and_goes_no_further_leaves_files_to_the_page() -> None:
    """Before TLS has begun, too, when uvicorn does not know of the connection."""

    async def tried() -> None:
        loop, context = asyncio.get_running_loop(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with contextlib.ExitStack() as stack:
            plain = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=MANY))
            links = [stack.enter_context(socket.create_connection(plain.getsockname()[:2])) for _ in range(MANY)]
            most = max(link.fileno() for link in links) + MANY // 2
            server = await loop.create_server(asyncio.Protocol, sock=Listener(plain.detach(), most), ssl=context)
            for link in links:
                link.setblocking(False)
            assert await asyncio.wait_for(loop.sock_recv(links[-1], 1), 60) == b""
            with pytest.raises(BlockingIOError):
                links[0].recv(1)
            another = os.dup(links[0].fileno())
            os.close(another)
            assert another <= most
            server.close()

    asyncio.run(tried())
