"""Whether lava stays as quick and as small: speed and memory after many jobs have finished, beside those after the first 3,000.

LAVA_BENCH_FLAT is how many (20,000). The floor of a speed, and of a memory, is the one after 3,000 in the same cluster, when each
shepherd has reaped jobs for some clock ticks; caches fill for some thousands more, and jobs stay in memory for CLEAN_PERIOD
after their end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from benchmarks.cluster import Cluster, Wire, submission
from benchmarks.line import Line, line, seconds

METRICS = ("flat_speed", "flat_cpu", "flat_memory", "flat_store")
FINISHED = int(os.environ.get("LAVA_BENCH_FLAT", "20000"))
BEGIN, THOUSAND = 3000, 1000
ELEMENTS, SINGLES = 900, 100
"""Of a thousand jobs: those in an array, and those alone, each with a name and a requirement of its own."""
TURNS = 3
"""Thousands of jobs that a speed is the median of."""


def lines(wanted: set[str]) -> Iterator[Line]:
    """All of one cluster."""
    note = f"after {FINISHED} finished jobs; floor: after {BEGIN}"
    with Cluster() as cluster:
        wire = cluster.wire()
        for _ in range(BEGIN // THOUSAND):
            _thousand(wire)
        cluster.settle()
        early, speeds, used = cluster.private(), [], []
        for turn in range(max(2 * TURNS, (FINISHED - BEGIN) // THOUSAND)):
            before = sum(cluster.cpu().values())
            speeds.append(THOUSAND / seconds(partial(_thousand, wire, turn)))
            used.append(sum(cluster.cpu().values()) - before)
        cluster.settle()
        late = cluster.private()
        store = sum(path.stat().st_size for path in cluster.folder.path.rglob("lavad.sqlite*"))
    if "flat_speed" in wanted:
        yield line("flat_speed", "jobs/s", speeds[-TURNS:], speeds[:TURNS], note)
    if "flat_cpu" in wanted:
        yield line("flat_cpu", "ms", used[-TURNS:], used[:TURNS], f"of all of lava for a job, {note}")
    for name, size in late.items():
        if "flat_memory" in wanted:
            yield line(f"flat_memory_{name}", "MB", [size / 1e6], [early[name] / 1e6], f"not shared, {note}")
    if "flat_store" in wanted:
        yield line("flat_store", "bytes", [store / FINISHED], (), "on disk for a finished job")


def _thousand(wire: Wire, turn: int = -1) -> None:
    wire.ask(**submission(J=f"a[1-{ELEMENTS}]"))
    jobs = [submission(J=f"j{turn}.{at}", R=f"select[mem>{at}] rusage[mem=1]") for at in range(SINGLES)]
    wire.send(jobs)
    for _ in jobs:
        if "ok" not in (answer := wire.take()):
            raise SystemExit(f"submit: {answer}")
    wire.drained()
