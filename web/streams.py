"""Answers that last: streams of events, requests that wait, whole outputs.

Rule: nobody shuts others out. A user has so many at a time, and at most an eighth of what is left for others; a quarter of the
connections is for requests that are answered at once. A stream ends after a while, as its token may have ended meanwhile: a
browser comes back by itself.
"""

from __future__ import annotations

import resource
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Self

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from web.problems import Problem
from web.signin import Who

MOST = 40
"""Of one user."""
OF_FREE = 8
"""One user has at most so small a part of what is free, but one where any is."""
MOST_CONNECTIONS = 2_000
LONGEST = 900.0
"""Seconds that a stream lives, and with it a token that has ended."""


def most_connections() -> int:
    """Of browsers and programs at a time: a quarter of the files that this process may open, as a stream has one to lavad too."""
    return min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)


class Open:
    """One of them; it counts until it is closed."""

    def __init__(self, streams: Streams, who: Who, until: float) -> None:
        self._streams = streams
        self._until = until
        self.who = who

    @property
    def is_over(self) -> bool:
        """It has been open for long, or its session has been signed out."""
        return self._streams.clock() >= self._until

    def end(self) -> None:
        """Its session has been signed out."""
        self._until = 0.0

    def close(self) -> None:
        self._streams.close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()


class Streams:
    """All that are open, by user: ``most`` in all. ``clock`` gives seconds that only go up."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = 0) -> None:
        self.clock = clock
        self._most = most or most_connections() * 3 // 4
        self._open: dict[str, set[Open]] = {}

    def open(self, who: Who) -> Open:
        """Another one. Raises Problem where the user has too many."""
        mine = self._open.get(who.user, set())
        free = self._most - sum(map(len, self._open.values()))
        if len(mine) >= min(MOST, max(free // OF_FREE, min(free, 1))):
            why = f"{len(mine)} streams and waiting requests of yours are open" if mine else "too many streams are open"
            raise Problem(429, f"{why}; close some of them" if mine else why, 5)
        self._open[who.user] = mine
        opened = Open(self, who, self.clock() + LONGEST)
        mine.add(opened)
        return opened

    def close(self, opened: Open) -> None:
        """It counts no more."""
        mine = self._open.get(opened.who.user, set())
        mine.discard(opened)
        if not mine:
            self._open.pop(opened.who.user, None)

    def end(self, who: Who) -> None:
        """The session is signed out: its streams end with their next piece."""
        for opened in self._open.get(who.user, ()):
            if opened.who.token == who.token:
                opened.end()


class StreamAnswer(StreamingResponse):
    """``pieces`` as they come; whatever becomes of the connection, they are closed then, and ``opened`` with them."""

    def __init__(self, opened: Open, pieces: AsyncGenerator[str], headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(pieces, headers=headers, media_type=media_type)
        self._opened = opened
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._opened:
            async with aclosing(self._pieces):
                await super().__call__(scope, receive, send)
