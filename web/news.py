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
log = logging.getLogger(__name__)


class _Stream:
    """Of one session."""

    def __init__(self) -> None:
        self.pages: set[asyncio.Queue[str]] = set()
        self.task: asyncio.Task[None] | None = None


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
            yield "retry: 3000\n\n"
            while not opened.is_over:
                try:
                    news = await asyncio.wait_for(page.get(), QUIET)
                except TimeoutError:
                    yield ": alive\n\n"
                    continue
                if not news:
                    return
                yield f"event: news\ndata: {news}\n\n"
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
                            self._tell(stream, line)
                        if self._clock() >= until:
                            break
            except Problem as problem:
                log.info("events of the cluster: %s", problem.detail)
                if problem.status in (401, 403):
                    for page in stream.pages:
                        if not page.full():
                            page.put_nowait("")
                    return
            if self._clock() < until:
                await asyncio.sleep(AGAIN)

    def _tell(self, stream: _Stream, line: str) -> None:
        for page in stream.pages:
            if not page.full():
                page.put_nowait(line)
