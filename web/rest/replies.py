"""Forms that answers have."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

SSE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream of server-sent events, which no reverse proxy is to gather."""
_encode = msgspec.json.Encoder().encode


def event(name: str, value: object, ident: str = "") -> str:
    """A server-sent event; ``ident``: what a client that comes again sends as Last-Event-ID."""
    return (f"id: {ident}\n" if ident else "") + f"event: {name}\ndata: {_encode(value).decode()}\n\n"


def in_json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer that is a record."""
    return Response(_encode(value), status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")
