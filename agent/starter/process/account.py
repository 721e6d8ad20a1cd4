"""What a part's tasks used and how they ended: the END record, and its place on disk.

Rule: an end is on disk before the process is reaped and before anybody is told.
"""

from __future__ import annotations

import json
import os
import resource
import time
from typing import Any

from agent.starter.system import kernel, proctree
from agent.starter.system.disk import append

End = dict[str, Any]


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
        """Take over how it ended and what it used."""
        _, self.status, self.utime, self.stime, self.maxrss_kb = seen
        self.at = time.time()

    def record(self) -> dict[str, Any]:
        """Its entry in END."""
        return {
            "rank": self.rank,
            "pid": self.pid,
            "status": self.status,
            "utime": round(self.utime, 6),
            "stime": round(self.stime, 6),
            "maxrss_kb": self.maxrss_kb,
            "at": self.at,
        }


def start_record(tasks: list[Task], started: float) -> dict[str, Any]:
    """The tasks that run, since when, and whose children they are."""
    running = [{"rank": t.rank, "pid": t.pid, "starttime": proctree.starttime(t.pid)} for t in tasks if t.pid]
    return {"tasks": running, "at": started, "shepherd": os.getpid()}


def end_record(tasks: list[Task], status: int, started: float, lease: bool) -> End:
    """END of the protocol: sums of times, the largest peak memory, and the status that counts.

    A process started by vfork has its parent's peak in its own: one that is not above ``shepherd_kb`` is not known.
    """
    return {
        "status": status,
        "at": time.time(),
        "started": started,
        "utime": round(sum(t.utime for t in tasks), 6),
        "stime": round(sum(t.stime for t in tasks), 6),
        "maxrss_kb": max((t.maxrss_kb for t in tasks), default=0),
        "tasks": [t.record() for t in tasks],
        "first": None,
        "lease": lease,
        "shepherd_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def story_of_leaf(host: str, tasks: list[Task], use: dict[str, Any] | None) -> dict[str, Any]:
    """What the first host is told of another one's tasks; ``use``: what its agent saw of them, if it saw them."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "host": host,
        "utime": round(sum(t.utime for t in tasks), 6),
        "stime": round(sum(t.stime for t in tasks), 6),
        "mem": sum(t.maxrss_kb for t in tasks if t.maxrss_kb > peak),
        "tasks": len(tasks),
        "use": use,
    }


def add_used(end: End, used: list[float]) -> None:
    """Add what further processes used: seconds of user and system time, and their largest peak memory in KB."""
    end["utime"] = round(end["utime"] + used[0], 6)
    end["stime"] = round(end["stime"] + used[1], 6)
    end["maxrss_kb"] = max(end["maxrss_kb"], int(used[2]))


def write_end(fd: int, line: bytes) -> None:
    """Append an end (JSON with uid and end) and wait for the disk; a full disk must not keep it from being told."""
    try:
        append(fd, line + b"\n")
        os.fdatasync(fd)
    except OSError:
        pass


def read_ends(path: str) -> dict[str, End]:
    """The ends in an end file, by uid; a line cut off by a crash is left out."""
    found: dict[str, End] = {}
    try:
        with open(path, "rb") as f:
            lines = f.read().split(b"\n")
    except OSError:
        return found
    for line in lines:
        try:
            entry = json.loads(line)
            found[str(entry["uid"])] = dict(entry["end"])
        except (ValueError, KeyError, TypeError):
            continue
    return found
