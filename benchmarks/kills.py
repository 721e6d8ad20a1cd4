"""1,000 sleeping elements killed by one bkill, until nothing of them is left.

The floor starts as many sleeping processes by posix_spawn and kills and reaps them: only the latter part is timed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial

from benchmarks.cluster import Cluster, Wire, comm, submission
from benchmarks.line import Line, line, seconds
from benchmarks.programs import wait
from cli.local.daemons import children

METRICS = ("kill_1000", "start_1000")
JOBS = 1000
ROUNDS = 3


def lines(wanted: set[str]) -> Iterator[Line]:
    """Start and kill in each round."""
    with Cluster(slots=JOBS) as cluster:
        wire = cluster.wire()
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
    """An array of them, until the processes are there: lavad says RUN as soon as it has sent them off."""
    wire.ask(**submission("exec sleep 600", J=f"s[1-{count}]"))
    wait(lambda: _sleeping(cluster) == count, "all to run", 0.1)


def _sleeping(cluster: Cluster) -> int:
    return sum(comm(pid) == "sleep" for pid in children([cluster.pids()["starter"]]))


def kill_all(wire: Wire) -> None:
    """All jobs, until they have ended."""
    wire.ask(ask="kill", jobs={"ids": ["0"]})
    wire.drained(pause=0.01)
