"""One command about 100,000 pending jobs, and what others wait meanwhile: the longest of their submits, and the next query.

The floor of the waits is the longest of as many submits just before, when nothing else is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.bulk import bulk
from benchmarks.cluster import Cluster, submission
from benchmarks.line import Line, line, seconds

JOBS, WAITING = 100_000, 1_000
NAME = "mass"
ALL = {"ids": ["0"]}
ASKS: dict[str, dict[str, Any]] = {
    "wait": bulk(WAITING, w=f"ended({NAME}*)"),
    "stop": {"ask": "stop", "jobs": ALL},
    "resume": {"ask": "resume", "jobs": ALL},
    "switch": {"ask": "switch", "queue": "short", "jobs": ALL},
    "kill": {"ask": "kill", "jobs": ALL},
}
NOTES = {what: f"b{what} of {JOBS} pending jobs until it is answered" for what in ASKS}
NOTES["wait"] = f"bsub -pack of {WAITING} jobs that wait for {JOBS} until it is answered"
METRICS = tuple(f"mass_{what}{of}" for what in ASKS for of in ("", "_others", "_next"))
QUIET = 1.0
"""Seconds of submits for the floor."""


class Other(threading.Thread):
    """Another user, who submits one job after the other until told to stop."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._wire = cluster.wire()
        self._ended = threading.Event()
        self.took: list[float] = []
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.05):
            self.took.append(seconds(lambda: self._wire.ask(**submission())))

    def longest(self) -> float:
        """Stop; milliseconds of the longest submit."""
        self._ended.set()
        self.join()
        self._wire.close()
        return 1000 * max(self.took)


def lines(wanted: set[str]) -> Iterator[Line]:
    """One after the other, on the same jobs."""
    with Cluster() as cluster:
        cluster.command("badmin", "hclose", "host1")
        cluster.allow_many()
        cluster.submit_many(JOBS, J=NAME)
        wire = cluster.wire()
        wire.query("bqueues")
        for what, ask in ASKS.items():
            cluster.settle()
            other = Other(cluster)
            threading.Event().wait(QUIET)
            floor = other.longest()
            other = Other(cluster)
            took = seconds(partial(wire.ask, **ask))
            next_query = 1000 * seconds(lambda: wire.query("bqueues"))
            waited = other.longest()
            found = (
                line(f"mass_{what}", "s", [took], (), NOTES[what]),
                line(f"mass_{what}_others", "ms", [waited], [floor], "the longest submit of another user meanwhile"),
                line(f"mass_{what}_next", "ms", [next_query], (), "the query that comes right after it"),
            )
            yield from (one for one in found if one["metric"] in wanted)
