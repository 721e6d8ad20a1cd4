"""Connections of the page's server: one that brings no request is closed, one in use is not."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from web import main
from web.main import Patient

ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def _told(reader: asyncio.StreamReader) -> bytes:
    return (await reader.readuntil(b"\r\n\r\nok"))[:15]


def test_only_a_connection_that_brings_no_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "SILENT", 0.1)

    async def tried() -> None:
        config = uvicorn.Config(_app, log_config=None, lifespan="off")
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(lambda: Patient(config, state, {}), "127.0.0.1", 0)
        place = server.sockets[0].getsockname()[:2]
        used, to_used = await asyncio.open_connection(*place)
        to_used.write(ASKED)
        assert await _told(used) == b"HTTP/1.1 200 OK"
        silent, to_silent = await asyncio.open_connection(*place)
        to_silent.write(b"GET ")
        assert await asyncio.wait_for(silent.read(), 60) == b""
        to_used.write(ASKED)
        assert await _told(used) == b"HTTP/1.1 200 OK"
        to_used.close()
        to_silent.close()
        server.close()

    asyncio.run(tried())
