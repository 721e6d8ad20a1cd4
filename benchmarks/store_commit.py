"""What a durable commit costs on both databases when 1, 16 and 256 callers wait for it: one commit holds what waits.

``store_commit``: the store alone, a commit of an event and a job row for each caller; the floor is 4 KiB appended and synced.
``store_callers``: the whole lavad, callers that each submit one job after the other. Databases take turns in each round;
``to_sqlite`` is how many times what SQLite takes PostgreSQL does, round by round.
"""

from __future__ import annotations

import itertools
import select
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.cluster import Cluster, Wire, submission
from benchmarks.floors import sync
from benchmarks.line import ROUNDS, Line, line, rounded
from lavad.core import events as ev
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import Spec
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.devtools import private_postgres
from lavad.store.batch import Batch
from lavad.store.writer import Store

METRICS = ("store_commit", "store_callers", "store_kill")
CALLERS = (1, 16, 256)
DATABASES = ("sqlite", "postgresql")
COMMITS = 0.5
SUBMITS = 1.5
"""Seconds of a round: of commits, and of submits."""
ELEMENTS = 100_000


class Writer:
    """A store, and the next numbers in it."""

    def __init__(self, url: str) -> None:
        self.store = Store.open(url)
        spec = Spec(user="ann", queue="normal")
        self.store.commit(Batch(first=1, events=[ev.SpecAdded(at=1.0, spec=1, value=spec)], specs=[(1, spec)]))
        self._seq, self._job = 2, 1

    def commit(self, size: int) -> float:
        """Milliseconds of a commit of so many submitted jobs."""
        keys = range(self._job, self._job + size)
        batch = Batch(
            first=self._seq,
            events=[ev.JobSubmitted(at=1.0, key=key, spec=1, name="a job of some name") for key in keys],
            jobs=[Job(key=key, spec=1, name="a job of some name", submitted=1.0, since=1.0) for key in keys],
        )
        self._seq, self._job = self._seq + size, self._job + size
        return self._timed(batch)

    def commits(self, size: int) -> float:
        """The median of as many as there is time for."""
        times = []
        until = time.perf_counter() + COMMITS
        while time.perf_counter() < until:
            times.append(self.commit(size))
        return statistics.median(times)

    def kill_elements(self) -> float:
        """Seconds to write the finished rows of an array that is killed before it ran."""
        indices = Ranges.span(1, ELEMENTS)
        array = Array(job=self._job, spec=1, name="a", spec_text="a[1-100000]", submitted=1.0, indices=indices, pending=EMPTY,
                      held=EMPTY, exited=ELEMENTS)  # fmt: skip
        killed = ev.ElementsKilled(at=2.0, key=self._job, elements=indices)
        return self._timed(Batch(first=self._seq, events=[killed], dropped_arrays=[array])) / 1000

    def _timed(self, batch: Batch) -> float:
        start = time.perf_counter()
        self.store.commit(batch)
        return (time.perf_counter() - start) * 1000


def lines(wanted: set[str]) -> Iterator[Line]:
    """The store alone, then lavad."""
    if {"store_commit", "store_kill"} & wanted:
        yield from (one for one in _stores() if any(one["metric"].startswith(f"{metric}_") for metric in wanted))
    if "store_callers" in wanted:
        yield from _callers()


def _stores() -> Iterator[Line]:
    folder = Path(tempfile.mkdtemp(prefix="lava-bench-store-"))
    folder.chmod(0o711)
    try:
        urls = (f"sqlite:///{folder}/lava.db", private_postgres.start(folder / "postgres"))
        writers = [Writer(url) for url in urls]
        for callers in CALLERS:
            values: list[list[float]] = [[] for _ in writers]
            floors: list[list[float]] = [[] for _ in writers]
            for _, (at, writer) in itertools.product(range(ROUNDS), enumerate(writers)):
                floors[at].append(sync())
                values[at].append(writer.commits(callers))
            note = f"a durable commit of {callers} submitted jobs; floor: 4 KiB appended and synced"
            for name, taken, floor in zip(DATABASES, values, floors, strict=True):
                yield line(f"store_commit_{name}_{callers}", "ms", taken, floor, note) | _beside(taken, values[0])
        for name, writer in zip(DATABASES, writers, strict=True):
            took = writer.kill_elements()
            yield line(f"store_kill_{name}", "s", [took], (), f"a commit of {ELEMENTS} elements that were killed")
            writer.store.close()
    finally:
        private_postgres.stop(folder / "postgres")
        shutil.rmtree(folder)


def _beside(taken: Sequence[float], sqlite: Sequence[float]) -> Line:
    """How many times SQLite's milliseconds PostgreSQL takes; nothing for SQLite itself."""
    if taken is sqlite:
        return {}
    times = statistics.median(mine / other for mine, other in zip(taken, sqlite, strict=True))
    return {"to_sqlite": rounded(times)}


def _callers() -> Iterator[Line]:
    with Cluster() as one, Cluster(options=("--database", "postgres")) as other:
        for cluster in (one, other):
            cluster.allow_many()
            cluster.command("badmin", "hclose", "host1")
        for callers in CALLERS:
            values: list[list[float]] = [[], []]
            for _, (at, cluster) in itertools.product(range(ROUNDS), enumerate((one, other))):
                values[at].append(_submits(cluster, callers))
            note = f"{callers} callers that each submit one job after the other, over the socket of lavad"
            each = [[1000 * callers / rate for rate in rates] for rates in values]
            for name, rates, took in zip(DATABASES, values, each, strict=True):
                yield line(f"store_callers_{name}_{callers}", "jobs/s", rates, (), note) | _beside(took, each[0])


def _submits(cluster: Cluster, callers: int) -> float:
    """Jobs a second; each caller has one ask under way."""
    wires = [cluster.wire() for _ in range(callers)]
    by_file = {wire.fileno(): wire for wire in wires}
    poll = select.poll()
    for file in by_file:
        poll.register(file, select.POLLIN)
    asks = (submission() for _ in itertools.count())
    for wire in wires:
        wire.send([next(asks)])
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SUBMITS:
        for file, _ in poll.poll(1000):
            _taken(by_file[file])
            by_file[file].send([next(asks)])
            done += 1
    took = time.perf_counter() - begin
    for wire in wires:
        _taken(wire)
        wire.close()
    return done / took


def _taken(wire: Wire) -> None:
    if "ok" not in (answer := wire.take()):
        raise SystemExit(f"submit: {answer}")
