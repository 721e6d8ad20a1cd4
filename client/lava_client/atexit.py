"""The end of the interpreter, and forks of it: who has threads or connections is told.

Threads of this package are no daemons, which subinterpreters have not: at the end of the interpreter executors wait for their
calls, as those of the standard library do, and then every thread is ended.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Protocol

    class Lasting(Protocol):
        """Something with a thread."""

        def close(self) -> None:
            """At the end of the interpreter."""

        def abandon(self) -> None:
            """In the child of a fork, where its threads are not."""


_FIRST: weakref.WeakSet[Lasting] = weakref.WeakSet()
_LAST: weakref.WeakSet[Lasting] = weakref.WeakSet()
_ending = threading.Event()


def register(lasting: Lasting, first: bool = False) -> None:
    """``lasting`` is told of the end and of forks as long as it lives; ``first``: before the others."""
    (_FIRST if first else _LAST).add(lasting)


def is_ending() -> bool:
    """Whether the interpreter is shutting down."""
    return _ending.is_set()


def wait(seconds: float) -> bool:
    """Sleep; True at once when the interpreter is shutting down."""
    return _ending.wait(seconds)


def _end() -> None:
    for lasting in list(_FIRST):
        lasting.close()
    _ending.set()
    for lasting in list(_LAST):
        lasting.close()


def _forked() -> None:
    for lasting in [*_FIRST, *_LAST]:
        lasting.abandon()
    _FIRST.clear()
    _LAST.clear()


# threading joins what is no daemon before atexit's functions run; concurrent.futures registers in the same way
getattr(threading, "_register_atexit", atexit.register)(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
