"""kill -9 of lavad with 10,000 separate jobs pending, until it answers a query again; floor: the same with one job."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

from benchmarks.cluster import Cluster, submission
from benchmarks.line import ROUNDS, Line, line, seconds
from benchmarks.programs import wait

METRICS = ("restart_10000",)
PENDING = 10_000


def lines(wanted: set[str]) -> Iterator[Line]:
    """Two clusters, so that both are restarted in each round."""
    with Cluster() as empty, Cluster() as full:
        for cluster in (empty, full):
            cluster.command("badmin", "hclose", "host1")
        empty.wire().ask(**submission())
        full.submit_many(PENDING)
        values, floors = [], []
        for _ in range(ROUNDS):
            floors.append(restart(empty))
            values.append(restart(full))
        yield line("restart_10000", "s", values, floors, "kill -9 of lavad, lava up, first answer; floor: 1 pending")


def restart(cluster: Cluster) -> float:
    """Kill lavad, and start what is missing: seconds from then to the first answer."""
    os.kill(cluster.pids()["lavad"], signal.SIGKILL)
    starting = threading.Thread(target=cluster.up)
    starting.start()

    def answers() -> bool:
        try:
            wire = cluster.wire()
            wire.query("bjobs", {"u": "all"}, ["1"])
        except (OSError, KeyError):
            return False
        wire.close()
        return True

    try:
        return seconds(lambda: wait(answers, "lavad to answer", 0.01))
    finally:
        starting.join()
