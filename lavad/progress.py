"""A line on the terminal that says how far long work of an administrator is.

Rule: it is shown on a terminal alone, from the second second on, and is taken away at the end, so that what a program prints
is the same with it and without.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TypeVar

_T = TypeVar("_T")
Tell = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and of how much; 0: not known."""

SECONDS = 1.0
_CLEAR = "\r\x1b[K"


def silent(_what: str, _done: int = 0, _of: int = 0) -> None:
    """Nobody looks."""


def counted(items: Iterable[_T], tell: Tell, what: str) -> Iterator[_T]:
    """The items, each of which is told."""
    for number, item in enumerate(items):
        tell(what, number, 0)
        yield item


class Progress:
    """Shows what it was told last, with the seconds since the start, each second, where ``descriptor`` is a terminal."""

    def __init__(self, command: str, descriptor: int = 2) -> None:
        self._command, self._descriptor = command, descriptor
        self._told = ("", 0, 0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._begin = time.monotonic()

    def __enter__(self) -> Progress:
        if os.isatty(self._descriptor):
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def tell(self, what: str, done: int = 0, of: int = 0) -> None:
        """Say what is being done now; cheap, and never fails."""
        self._told = (what, done, of)

    def _show(self) -> None:
        shown = False
        while not self._over.wait(SECONDS):
            shown = True
            self._write(_CLEAR + line(self._command, *self._told, time.monotonic() - self._begin))
        if shown:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        sys.stdout.flush()
        try:
            os.write(self._descriptor, text.encode())
        except OSError:
            self._over.set()


def line(command: str, what: str, done: int, of: int, seconds: float) -> str:
    """How the line reads: ``lava db check: events 12,000 of 40,000, 3 s``."""
    count = f" {done:,} of {of:,}" if of else f" {done:,}" if done else ""
    return f"{command}: {what}{count}, {seconds:.0f} s"
