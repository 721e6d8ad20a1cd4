"""1,000 sleeping elements killed by one bkill, until nothing of them is left.

The floor starts as many sleeping processes by posix_spawn and kills and reaps them: only the latter part is timed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agent.starter.system.proctree import children as children_of
from benchmarks.cluster import Cluster, Wire, comm, submission
from benchmarks.line import Line, line, seconds
from benchmarks.programs import wait

METRICS = ("kill_1000", "start_1000")
JOBS = 1000
ROUNDS = 3
OTHERS = 50
"""Threads of others that may end meanwhile."""


def lines(wanted: set[str]) -> Iterator[Line]:
    """Start and kill in each round."""
    with Cluster(slots=JOBS) as cluster:
        wire = cluster.wire()
        cluster.settle()  # of what begins after the daemons answer: the scheduler, the process of lsb.events
        starts, kills, floors = [], [], []
        for _ in range(ROUNDS):
            pids = [os.posix_spawn("/bin/sleep", ("sleep", "600"), {}) for _ in range(JOBS)]
            floors.append(seconds(partial(_end, pids)))
            starts.append(seconds(lambda: start_sleeps(cluster, wire)))
            kills.append(seconds(lambda: kill_all(wire)))
        if "start_1000" in wanted:
            yield line("start_1000", "s", starts, (), f"an array of {JOBS} sleeps until all run")
        if "kill_1000" in wanted:
            note = "bkill 0 of 1,000 running sleeps until all have ended; floor: kill and reap of 1,000 own children"
            yield line("kill_1000", "s", kills, floors, note)


def _end(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


def start_sleeps(cluster: Cluster, wire: Wire, count: int = JOBS) -> None:
    """An array of them, until the processes are there: lavad says RUN as soon as it has sent them off.

    They are looked for once the machine has as many more threads, and one whose task sleeps is not looked at again: looks at all
    processes would take as much of the machine as the starts.
    """
    starter = cluster.pids()["starter"]
    asleep, before = set[int](), _threads()

    def sleeping() -> int:
        asleep.update(one for one in set(children_of(starter)) - asleep if "sleep" in map(comm, children_of(one)))
        return len(asleep)

    wire.ask(**submission("exec sleep 600", J=f"s[1-{count}]"))
    wait(lambda: _threads() > before + count - OTHERS and sleeping() == count, "all to run", 0.02)


def _threads() -> int:
    """Of the whole machine."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def kill_all(wire: Wire) -> None:
    """All jobs, until they have ended."""
    wire.ask(ask="kill", jobs={"ids": ["0"]})
    wire.drained(pause=0.01)
