"""A site's own scheduling policy: a Python file with ``order(job) -> number``, the smallest first (SCHEDULER=/path/FILE.py).

Rule: whatever the module does, scheduling continues. A module that cannot be loaded, raises, returns no number or takes longer
than ``LIMIT`` is reported once and ignored until the configuration is read again. Root runs only what nobody else can write or
put in its place.
"""

from __future__ import annotations

import logging
import math
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import SupportsFloat

from config.programs.owner import why_not_as_root
from lavad.sched.order.ranking import Facts

log = logging.getLogger(__name__)
_Order = Callable[[Facts], SupportsFloat]

LIMIT = 0.25
"""Seconds for one answer."""


class TookTooLong(BaseException):
    """Not an ``Exception``, so that a module that catches everything is less likely to catch it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``TookTooLong`` here, again and again, once the time is over. Main thread only."""

    def over(*_: object) -> None:
        raise TookTooLong

    former = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


class SitePolicies:
    """The modules of one configuration."""

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self._orders: dict[str, _Order | None] = {}
        self.wrong: dict[str, str] = {}
        """File to what is wrong with it."""

    def forget(self) -> None:
        """Another configuration: all modules are read again."""
        self._orders.clear()
        self.wrong.clear()

    def score(self, file: str, job: Facts) -> float:
        """The module's score of a job; 0 for a module that is ignored."""
        try:
            with limited(self._limit):
                if file not in self._orders:
                    self._orders[file] = _load(file)
                order = self._orders[file]
                found = 0.0 if order is None else float(order(job))
            if math.isfinite(found):
                return found
            raise ValueError(f"order() answered {found}")
        except TookTooLong:
            self._drop(file, f"order() took longer than {self._limit:g} s")
        except (Exception, SystemExit) as error:
            self._drop(file, f"{type(error).__name__}: {error}")
        return 0.0

    def _drop(self, file: str, why: str) -> None:
        self._orders[file] = None
        self.wrong[file] = why[:500]
        log.error("SCHEDULER %s: %s; its queues serve jobs first come, first served until badmin reconfig", file, why[:500])


def _load(file: str) -> _Order:
    if os.geteuid() == 0 and (why := why_not_as_root(file)):
        raise PermissionError(why)
    with open(file, "rb") as source:
        code = compile(source.read(), file, "exec")
    space: dict[str, object] = {"__name__": "lava_site_policy", "__file__": file}
    exec(code, space)
    order = space.get("order")
    if not callable(order):
        raise TypeError("it has no function order(job)")
    found: _Order = order
    return found
