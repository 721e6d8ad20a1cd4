"""bsla: service classes. lava guarantees slots by queue (bresources -g) and has no service classes."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.lang.asks import Refused
from lavad.queries.frame.request import Request, Shown


def show(request: Request) -> Iterator[Shown]:
    """Always that there is none."""
    request.options()
    yield from ()  # as every command: a generator
    raise Refused(f"{request.words[0][:80]}: No such service class" if request.words else "No service class is configured")
