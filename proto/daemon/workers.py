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
AGAIN = 1.0
"""Seconds until a thread that could not be begun is tried again."""


class _Call(NamedTuple, Generic[T]):
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[T]
    call: Callable[[], T]
    who: str


class _Idle:
    """A thread without work. ``told``: released with the call that it gets."""

    __slots__ = ("call", "told")

    def __init__(self) -> None:
        self.call: _Call[object] | None = None
        self.told = threading.Lock()
        self.told.acquire()


class Workers:
    """``most`` threads for one kind of call; of one user (``who``) at most ``each`` calls run at a time, 0: any number."""

    def __init__(self, name: str, most: int = 1, each: int = 0) -> None:
        self._name = name
        self._most = most
        self._each = each
        self._lock = threading.Lock()
        self._waiting: deque[_Call[object]] = deque()
        self._running: Counter[str] = Counter()
        self._threads = 0
        self._idle: list[_Idle] = []

    async def run(self, call: Callable[..., T], *arguments: object, who: str = "") -> T:
        """The result of the call, made in one of the threads; a caller who gives up leaves it to end by itself."""
        return await self.begin(call, *arguments, who=who)

    def begin(self, call: Callable[..., T], *arguments: object, who: str = "") -> asyncio.Future[T]:
        """As ``run``; does not wait."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        one: _Call[object] = _Call(loop, answer, partial(call, *arguments), who)  # type: ignore[arg-type]
        with self._lock:
            if self._idle and self._has_room(one):
                # given to one thread: what is looked for under a lock that others want takes twice as long
                self._running[who] += 1
                thread = self._idle.pop()
                thread.call = one
                thread.told.release()
                return answer
            self._waiting.append(one)
            self._begin_thread(loop)
        return answer

    def _begin_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        """One more thread where calls wait for one, under the lock; later where the host has no room for another thread now."""
        if len(self._idle) < len(self._waiting) and self._threads < self._most:
            try:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._threads += 1
            except RuntimeError:
                loop.call_later(AGAIN, self._begin_again, loop)

    def _begin_again(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._begin_thread(loop)

    def _work(self) -> None:
        me = _Idle()
        while (call := self._next(me)) is not None:
            found, error = None, None
            try:
                found = call.call()
            except BaseException as raised:
                error = raised
            with self._lock:
                self._running[call.who] -= 1
                if not self._running[call.who]:
                    del self._running[call.who]
            with contextlib.suppress(RuntimeError):  # the loop is closed
                call.loop.call_soon_threadsafe(_answer, call.answer, found, error)
            del call, found, error

    def _next(self, me: _Idle) -> _Call[object] | None:
        with self._lock:
            if (call := self._take()) is not None:
                self._running[call.who] += 1
                return call
            self._idle.append(me)
        if not me.told.acquire(timeout=IDLE):
            with self._lock:
                if me in self._idle:
                    self._idle.remove(me)
                    self._threads -= 1
                    return None
            me.told.acquire()  # a call came at the last moment
        call, me.call = me.call, None
        return call

    def _take(self) -> _Call[object] | None:
        """The first call whose user has not too many under way; those that nobody waits for any more are dropped."""
        for call in tuple(self._waiting):
            if call.answer.cancelled():
                self._waiting.remove(call)
            elif self._has_room(call):
                self._waiting.remove(call)
                return call
        return None

    def _has_room(self, call: _Call[object]) -> bool:
        return not self._each or not call.who or self._running[call.who] < self._each


def _answer(answer: asyncio.Future[object], found: object, error: BaseException | None) -> None:
    if answer.done():
        return  # the caller gave up
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found)
