"""Whether lava stays as quick and as small: speed and memory after many jobs have finished, beside those after the first 3,000.

LAVA_BENCH_FLAT is how many (20,000). The floor of a speed, and of a memory, is the one after 3,000 in the same cluster; caches
fill for some thousands more, and jobs stay in memory for CLEAN_PERIOD after their end. CPU is that of daemons and shepherds. The
kernel tells in whole clock ticks what the jobs of each shepherd took, and the 64 shepherds, which have reaped as many jobs, pass
their next tick in the same thousand: together that is as much as all jobs of a thousand take.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from functools import partial

from benchmarks.cluster import Cluster, Wire, submission
from benchmarks.line import Line, line, seconds

METRICS = ("flat_speed", "flat_cpu", "flat_memory", "flat_store")
FINISHED = int(os.environ.get("LAVA_BENCH_FLAT", "20000"))
BEGIN, THOUSAND = 3000, 1000
ELEMENTS, SINGLES = 900, 100
"""Of a thousand jobs: those in an array, and those alone, each with a name and a requirement of its own."""
TURNS = 5
"""Thousands of jobs that a speed is the median of, and CPU the mean: some daemons work in every other thousand."""


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
            before = _lava(cluster)
            speeds.append(THOUSAND / seconds(partial(_thousand, wire, turn)))
            used.append(_lava(cluster) - before)
        cluster.settle()
        late = cluster.private()
        store = sum(path.stat().st_size for path in cluster.folder.path.rglob("lavad.sqlite*"))
    if "flat_speed" in wanted:
        yield line("flat_speed", "jobs/s", speeds[-TURNS:], speeds[:TURNS], note)
    if "flat_cpu" in wanted:
        late_cpu, early_cpu = statistics.mean(used[-TURNS:]), statistics.mean(used[:TURNS])
        yield line("flat_cpu", "ms", [late_cpu], [early_cpu], f"of daemons and shepherds for a job, {note}")
    for name, size in late.items():
        if "flat_memory" in wanted:
            yield line(f"flat_memory_{name}", "MB", [size / 1e6], [early[name] / 1e6], f"not shared, {note}")
    if "flat_store" in wanted:
        yield line("flat_store", "bytes", [store / FINISHED], (), "on disk for a finished job")


def _lava(cluster: Cluster) -> float:
    """CPU seconds of daemons and shepherds so far."""
    return sum(used for name, used in cluster.cpu().items() if name != "jobs")


def _thousand(wire: Wire, turn: int = -1) -> None:
    wire.ask(**submission(J=f"a[1-{ELEMENTS}]"))
    jobs = [submission(J=f"j{turn}.{at}", R=f"select[mem>{at}] rusage[mem=1]") for at in range(SINGLES)]
    wire.send(jobs)
    for _ in jobs:
        if "ok" not in (answer := wire.take()):
            raise SystemExit(f"submit: {answer}")
    wire.drained()
