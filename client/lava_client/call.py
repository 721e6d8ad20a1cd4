"""A call as a future: it waits here, waits and runs in the cluster as a job or as an element of an array, and has ended."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future, InvalidStateError
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED, PENDING, RUNNING
from typing import TYPE_CHECKING, TypeVar

from lava_client import folder
from lava_client.errors import CallLost
from lava_client.job import OfJob

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from lava_client.session import Session

T = TypeVar("T")


class Place:
    """Where a call is: in which batch, and which job carries it out. ``blob``: the call itself, until it is in a file."""

    __slots__ = ("batch", "blob", "key", "name", "number", "retries", "size")

    def __init__(self, blob: bytes, name: str, retries: int) -> None:
        self.blob: bytes | None = blob
        self.size = len(blob)
        self.name = name
        self.retries = retries
        self.batch = ""
        self.number = 0
        self.key: tuple[int, int] | None = None


class CallFuture(OfJob, Future[T]):
    """The future of a call. ``id`` is that of its job once it is submitted; ``await`` works too.

    Its state changes as that of Future does, under the same lock: one that runs can be cancelled too.
    """

    def __init__(self, session: Session, place: Place, on_cancel: Callable[[CallFuture[Any]], None]) -> None:
        super().__init__()
        self._session, self.place, self._on_cancel = session, place, on_cancel

    @property
    def id(self) -> str | None:
        """``12``, or ``12[3]`` for an element of an array; None while it is not submitted."""
        key = self.place.key
        return None if key is None else f"{key[0]}[{key[1]}]" if key[1] else str(key[0])

    def cancel(self) -> bool:
        """Take the call back, or kill the job that runs it; False if it has ended. ``result`` raises CancelledError at once."""
        with self._condition:
            if self._state in (CANCELLED, CANCELLED_AND_NOTIFIED):
                return True
            if self._state == FINISHED:
                return False
            self._state = CANCELLED_AND_NOTIFIED
            for waiter in self._waiters:
                waiter.add_cancelled(self)
            self._condition.notify_all()
        self._invoke_callbacks()  # type: ignore[attr-defined]
        self._on_cancel(self)
        return True

    def tail(self, lines: int = 10) -> str:
        """The last lines of what the call has printed so far."""
        place = self.place
        if not place.batch or place.blob is not None:
            return super().tail(lines)
        return folder.last_lines(place.batch, place.number, lines)

    def begin(self) -> None:
        """The job runs."""
        self._mark_running()
        if not self.done():
            self._show_again()

    def end(self, value: Any, error: BaseException | None) -> None:
        """The call has ended; nothing happens where it was cancelled before."""
        self._mark_running()
        with contextlib.suppress(InvalidStateError):
            if error is None:
                self.set_result(value)
            else:
                self.set_exception(error)

    def _mark_running(self) -> None:
        with self._condition:
            if self._state == PENDING:
                self._state = RUNNING

    def abandon(self) -> None:
        """In the child of a fork, which hears nothing of it."""
        self._condition = threading.Condition()
        if not self.done():
            self.set_exception(CallLost(self.id or "", -1, "the future belongs to the process that this one was forked from"))

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()

    def __repr__(self) -> str:
        if not self.done():
            state = "runs" if self.running() else "waits"
        else:
            state = "cancelled" if self.cancelled() else "has ended" if self.exception() is None else "raised"
        return f"<call {self.place.name} in job {self.id} {state}>"
