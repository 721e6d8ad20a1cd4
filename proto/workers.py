"""Threads for calls that may take long (a database, a directory of users, a network file system), a few for each kind of call.

Rule: a daemon calls nothing of that sort in the thread of its loop, nor in a pool that kinds share: one that hangs holds up its
own kind only. The threads are daemons, so that a call that never returns does not keep a process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
IDLE = 30.0
"""Seconds without work after which a thread ends."""


class _Call(NamedTuple, Generic[T]):
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[T]
    call: Callable[[], T]
    who: str


class Workers:
    """``most`` threads for one kind of call; of one user (``who``) at most ``each`` calls run at a time, 0: any number."""

    def __init__(self, name: str, most: int = 1, each: int = 0) -> None:
        self._name = name
        self._most = most
        self._each = each
        self._changed = threading.Condition()
        self._waiting: deque[_Call[object]] = deque()
        self._running: Counter[str] = Counter()
        self._threads = 0
        self._idle = 0

    async def run(self, call: Callable[..., T], *arguments: object, who: str = "") -> T:
        """The result of the call, made in one of the threads; a caller who gives up leaves it to end by itself."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        with self._changed:
            self._waiting.append(_Call(loop, answer, partial(call, *arguments), who))  # type: ignore[arg-type]
            if self._idle:
                self._changed.notify()
            if self._idle < len(self._waiting) and self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return await answer

    def _work(self) -> None:
        while (call := self._next()) is not None:
            found, error = None, None
            try:
                found = call.call()
            except BaseException as raised:
                error = raised
            with self._changed:
                self._running[call.who] -= 1
                if not self._running[call.who]:
                    del self._running[call.who]
                if self._each and self._waiting:
                    self._changed.notify()
            with contextlib.suppress(RuntimeError):  # the loop is closed
                call.loop.call_soon_threadsafe(_answer, call.answer, found, error)
            del call, found, error

    def _next(self) -> _Call[object] | None:
        with self._changed:
            while True:
                if (call := self._take()) is not None:
                    self._running[call.who] += 1
                    return call
                self._idle += 1
                told = self._changed.wait(IDLE)
                self._idle -= 1
                if not told and not self._waiting:
                    self._threads -= 1
                    return None

    def _take(self) -> _Call[object] | None:
        """The first call whose user has not too many under way; those that nobody waits for any more are dropped."""
        for call in tuple(self._waiting):
            if call.answer.cancelled():
                self._waiting.remove(call)
            elif not self._each or not call.who or self._running[call.who] < self._each:
                self._waiting.remove(call)
                return call
        return None


def _answer(answer: asyncio.Future[object], found: object, error: BaseException | None) -> None:
    if answer.done():
        return  # the caller gave up
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found)
