"""What a part's tasks used and how they ended."""

from __future__ import annotations

import os
import resource
import time

from agent.starter.protocol.reports import End, EndedTask, HostEnd, HostUse, RunningTask, Started
from agent.starter.system import kernel, proctree


class Task:
    """One task process of a part; ``status`` is None while it runs."""

    __slots__ = ("at", "maxrss_kb", "pid", "rank", "status", "stime", "utime")

    def __init__(self, rank: int, pid: int) -> None:
        self.rank = rank
        self.pid = pid
        self.status: int | None = None
        self.at = 0.0
        self.utime = 0.0
        self.stime = 0.0
        self.maxrss_kb = 0

    def ended(self, seen: kernel.Ended) -> None:
        """Store how it ended and what it used."""
        _, self.status, self.utime, self.stime, self.maxrss_kb = seen
        self.at = time.time()

    def record(self) -> EndedTask:
        """Its entry in the end of the part."""
        utime, stime = round(self.utime, 6), round(self.stime, 6)
        return EndedTask(self.rank, self.pid, self.status, utime, stime, self.maxrss_kb, self.at)


class Used:
    """What further processes of a part used: seconds of user and system time, and their largest peak memory in KB."""

    __slots__ = ("maxrss_kb", "stime", "utime")

    def __init__(self) -> None:
        self.utime = 0.0
        self.stime = 0.0
        self.maxrss_kb = 0

    def add(self, seen: kernel.Ended) -> None:
        """Add what an ended process used."""
        self.utime += seen[2]
        self.stime += seen[3]
        self.maxrss_kb = max(self.maxrss_kb, seen[4])


def started(uid: str, tasks: list[Task], at: float) -> Started:
    """The report that these tasks run since ``at`` (seconds since the epoch), as children of this process."""
    running = tuple(RunningTask(t.rank, t.pid, proctree.starttime(t.pid)) for t in tasks if t.pid)
    return Started(uid, running, at, os.getpid())


def end_of(tasks: list[Task], status: int, began: float, lease: bool, used: Used) -> End:
    """The end of a part with wait status ``status``: sums of CPU times, the largest peak memory. ``lease``: its lease expired."""
    return End(
        status=status,
        at=time.time(),
        started=began,
        utime=round(sum(t.utime for t in tasks) + used.utime, 6),
        stime=round(sum(t.stime for t in tasks) + used.stime, 6),
        maxrss_kb=max((used.maxrss_kb, *(t.maxrss_kb for t in tasks))),
        tasks=tuple(t.record() for t in tasks),
        first=None,
        lease=lease,
        shepherd_kb=_own_peak(),
    )


def end_of_host(host: str, tasks: list[Task], use: HostUse | None, silent: bool, status: int) -> HostEnd:
    """This host's message to the first one when its tasks have ended.

    ``use``: the agent's samples of them, if there are any. ``silent``: none of them used the PMI that it was offered.
    ``status``: as in ``HostEnd``.
    """
    peak = _own_peak()
    return HostEnd(
        host=host,
        utime=round(sum(t.utime for t in tasks), 6),
        stime=round(sum(t.stime for t in tasks), 6),
        mem=sum(t.maxrss_kb for t in tasks if t.maxrss_kb > peak),
        tasks=len(tasks),
        use=use,
        silent=silent,
        status=status,
    )


def _own_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
