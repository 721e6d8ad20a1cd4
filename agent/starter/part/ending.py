"""What ends a part: its lease, and the signals that go to whatever it has on its host until nothing is left.

Rule: it is this process's descendants that are ended, whatever they did with sessions and groups.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from agent.starter.process.progress import Timer, Timers
from agent.starter.system import kernel, proctree
from agent.starter.system.alarm import Alarm
from agent.starter.system.watch import Watch

LONGEST_PAUSE = 0.5
LOOK_AT_LEASE = 1.0
"""Seconds between checks of a lease for which no timer could be had: poll() does not count the time that a machine sleeps."""


class Lease:
    """A deadline in seconds of CLOCK_BOOTTIME that can be moved, or none. The loop of ``watch`` wakes up when it passes."""

    __slots__ = ("_alarm", "deadline")

    def __init__(self, deadline: float | None, watch: Watch) -> None:
        self.deadline = deadline
        self._alarm: Alarm | None = None
        if deadline is not None:
            with contextlib.suppress(OSError):
                self._alarm = Alarm(watch)
                self._alarm.set(deadline)

    def renew(self, deadline: float) -> None:
        """A leased part gets a new deadline; one without a lease stays without."""
        if self.deadline is not None:
            self.deadline = deadline
            if self._alarm:
                self._alarm.set(deadline)

    def look_in(self) -> float | None:
        """Seconds after which it has to be looked at; None: the alarm rings when it passes, or there is no lease."""
        left = self.left()
        return None if left is None or self._alarm else min(left, LOOK_AT_LEASE)

    def close(self) -> None:
        """The part is gone."""
        if self._alarm:
            self._alarm.close()
            self._alarm = None

    def left(self) -> float | None:
        """Seconds until it passes (0 or less: it has); None without a lease."""
        return None if self.deadline is None else self.deadline - kernel.boottime()


class Ending:
    """Ends the processes of a part: asked first, then killed, again and again. Sets its timers KILL and SWEEP."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._pause = 0.01

    def ask(self, seconds: float, *before: int) -> None:
        """SIGTERM to every process group, after other signals; the kill is due when so many seconds have passed."""
        groups = proctree.below([os.getpid()])
        for sig in (*before, signal.SIGTERM):
            proctree.signal_groups(groups, sig)
        self._timers[Timer.KILL] = time.monotonic() + seconds

    def sweep(self) -> bool:
        """SIGKILL every process of the part and set the timer for the next sweep. False: this user may not kill some of them."""
        own = os.getpid()
        allowed = proctree.kill_all(lambda: proctree.below([own]))
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        self._timers[Timer.SWEEP] = time.monotonic() + self._pause
        return allowed
