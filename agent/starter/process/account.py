"""What a part's tasks used and how they ended, and the end files on disk.

Rule: an end is on disk before the process is reaped and before the end is reported.
"""

from __future__ import annotations

import json
import os
import resource
import time
from typing import NamedTuple

from agent.starter.protocol.codec import ProtocolError, read, text
from agent.starter.protocol.reports import (
    EncodedReport,
    End,
    Ended,
    EndedTask,
    HostEnd,
    HostUse,
    RunningTask,
    Started,
    write_report,
)
from agent.starter.system import kernel, proctree
from agent.starter.system.stdio import append


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


def end_of_host(host: str, tasks: list[Task], use: HostUse | None, silent: bool = False) -> HostEnd:
    """This host's message to the first one when its tasks have ended.

    ``use``: the agent's samples of them, if there are any. ``silent``: none of them used the PMI that it was offered.
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
    )


def _own_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class EncodedEnd(NamedTuple):
    """The report of an end, encoded once for the disk and for the starter."""

    text: bytes

    def written(self, fd: int) -> EncodedEnd:
        """Append it to an end file and wait until it is on disk; returns what is to be reported.

        Where that fails (a full disk) the end is reported anyway, and says that it is in no end file.
        """
        try:
            append(fd, self.text + b"\n")
            os.fdatasync(fd)
        except OSError:
            return EncodedEnd(self.text[:-1] + b',"unsaved":true}')
        return self

    def report(self, gone: bool) -> EncodedReport:
        """The encoded report; ``gone``: no process of the part is left."""
        return EncodedReport(self.text[:-1] + b',"gone":true}' if gone else self.text)


def encode_end(uid: str, end: End) -> EncodedEnd:
    """Encode the end of a part."""
    return EncodedEnd(text(write_report(Ended(uid, end))))


def read_ends(path: str, sure: bool = False) -> dict[str, End]:
    """The ends in an end file, by uid; a line cut off by a crash is ignored. ``sure``: OSError for lack of files or memory."""
    found: dict[str, End] = {}
    try:
        with open(path, "rb") as f:
            lines = f.read().split(b"\n")
    except OSError as e:
        if sure and e.errno in proctree.DO_NOT_KNOW:
            raise
        return found
    for line in lines:
        try:
            ended = read(Ended, json.loads(line))
        except (ValueError, ProtocolError):
            continue
        found[ended.uid] = ended.end
    return found
