"""The events of the cluster, for all pages of a session from one stream of lavad's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from web.master import Master
from web.problems import Problem
from web.streams import LONGEST, Open

BEHIND = 50
"""News that a page has not read, from which on it hears of none until it has."""
QUIET = 15.0
"""Seconds after which a line says that the connection lives."""
AGAIN = 2.0
AWAY = "event: away\ndata:\n\n"
"""What pages are told when the master does not answer; the next news say that it does."""
log = logging.getLogger(__name__)


class _Stream:
    """Of one session."""

    def __init__(self) -> None:
        self.pages: set[asyncio.Queue[str]] = set()
        self.task: asyncio.Task[None] | None = None
        self.is_away = False
        """The master does not answer."""

    def tell(self, piece: str) -> None:
        """All pages that have read what they were told before."""
        for page in self.pages:
            if not page.full():
                page.put_nowait(piece)


class News:
    """The streams of all sessions."""

    def __init__(self, master: Master, clock: Callable[[], float] = time.monotonic) -> None:
        self._master = master
        self._clock = clock
        self._streams: dict[str, _Stream] = {}

    async def follow(self, opened: Open) -> AsyncGenerator[str]:
        """Server-sent events until the page goes, or its stream is over."""
        who = opened.who
        stream = self._streams.setdefault(who.token, _Stream())
        page: asyncio.Queue[str] = asyncio.Queue(BEHIND)
        stream.pages.add(page)
        if stream.task is None or stream.task.done():
            stream.task = asyncio.create_task(self._pass_on(stream, who.token))
        try:
            yield "retry: 3000\n\n" + (AWAY if stream.is_away else "")
            while not opened.is_over:
                try:
                    async with asyncio.timeout(QUIET):
                        piece = await page.get()
                except TimeoutError:
                    yield ": alive\n\n"
                    continue
                if not piece:
                    return
                yield piece
        finally:
            stream.pages.discard(page)
            if not stream.pages:
                stream.task.cancel()
                if self._streams.get(who.token) is stream:
                    del self._streams[who.token]

    async def _pass_on(self, stream: _Stream, token: str) -> None:
        """Until the token has ended; each page then ends its stream, and signs in again. lavad reads the token with each ask."""
        frame = {"ask": "query", "command": "api", "words": ["events"], "options": {}}
        while True:
            until = self._clock() + LONGEST
            try:
                async with aclosing(self._master.stream(frame, token)) as texts:
                    async for text in texts:
                        for line in text.splitlines():
                            stream.is_away = False
                            stream.tell(f"event: news\ndata: {line}\n\n")
                        if self._clock() >= until:
                            break
            except Problem as problem:
                if not stream.is_away:
                    log.info("events of the cluster: %s", problem.detail)
                if problem.status in (401, 403):
                    stream.tell("")
                    return
                stream.is_away = True
                stream.tell(AWAY)
            if self._clock() < until:
                await asyncio.sleep(AGAIN)
