"""What pending jobs cost: listings and one job's line at 0, 10,000 and 100,000 pending, and memory for each.

Memory is compared with that of daemons without a query for a while, in which the query process loads what reads the store.
Queries go through the socket in one process, so that a command's own start hides nothing. Their floor is the same query
in a second, empty cluster in the same round: a line about one job must not grow with the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.cluster import Cluster, Wire, submission
from benchmarks.line import ROUNDS, Line, best_of, line
from lavad.processes.query import SOON

LEVELS = (10_000, 100_000)
METRICS = (
    "query_one_0",
    "query_all_0",
    "query_one_10000",
    "query_all_10000",
    "query_one_100000",
    "query_all_100000",
    "submit_socket",
    "rss_per_job_10000",
    "rss_per_job_100000",
    "rss_per_element_10000",
    "rss_per_element_100000",
    "rss_per_job_all_10000",
    "rss_per_job_all_100000",
    "rss_per_element_all_10000",
    "rss_per_element_all_100000",
)
ARRAY = 10_000


def lines(wanted: set[str]) -> Iterator[Line]:
    """Separate jobs in one cluster, then elements in the other."""
    with Cluster() as empty, Cluster() as full:
        for cluster in (empty, full):
            cluster.allow_many()
            cluster.command("badmin", "hclose", "host1")
        for found in (*_jobs(empty, full, wanted), *_elements(empty, wanted)):
            if found["metric"] in wanted:
                yield found


def _jobs(empty: Cluster, full: Cluster, wanted: set[str]) -> Iterator[Line]:
    wires = empty.wire(), full.wire()
    firsts = [wire.ask(**submission())["job"] for wire in wires]
    yield from _queries(0, wires, firsts)
    full.settle(6 * SOON)  # a host's report makes it begin to wait again
    before, there = full.rss(), 1
    for level in LEVELS:
        if not any(metric.endswith(f"_{level}") or metric == "submit_socket" for metric in wanted):
            continue
        took = best_of(partial(full.submit_many, level - there), 1)
        if level == LEVELS[0]:
            yield line("submit_socket", "jobs/s", [(level - there) / took], (), "separate jobs over 16 connections")
        there = level
        _drain(wires[1])
        full.settle()
        yield from _memory("rss_per_job", level, before, full)
        yield from _queries(level, wires, firsts)


def _queries(level: int, wires: tuple[Wire, Wire], firsts: list[int]) -> Iterator[Line]:
    """Both queries, the empty cluster's as the floor."""
    for name, times in (("one", 50), ("all", 1 if level > LEVELS[0] else 5)):
        values: list[float] = []
        floors: list[float] = []
        for _ in range(ROUNDS):
            for into, wire, job in zip((floors, values), wires, firsts, strict=True):
                words = (str(job),) if name == "one" else ()
                into.append(1000 * best_of(partial(wire.query, "bjobs", {"u": "all"}, words), times))
        yield line(f"query_{name}_{level}", "ms", values, floors, f"bjobs at {level} pending; floor: at 1 pending")


def _elements(cluster: Cluster, wanted: set[str]) -> Iterator[Line]:
    wire = cluster.wire()
    _drain(wire)
    before, there = cluster.rss(), 0
    for level in LEVELS:
        if f"rss_per_element_{level}" in wanted:
            while there < level:
                wire.ask(**submission(J=f"a[1-{ARRAY}]"))
                there += ARRAY
            _drain(wire)
            yield from _memory("rss_per_element", level, before, cluster)


def _drain(wire: Wire) -> None:
    """A query makes the replicas take all that was committed."""
    wire.query("bqueues")


def _memory(metric: str, level: int, before: dict[str, int], cluster: Cluster) -> Iterator[Line]:
    each = {name: max(0.0, (now - before[name]) / level) for name, now in cluster.rss().items()}
    yield line(f"{metric}_{level}", "bytes", [each["lavad"]], (), "growth of lavad by each")
    note = f"with its scheduler, {each['sched']:.0f}, and its query process, {each['query']:.0f}"
    yield line(f"{metric}_all_{level}", "bytes", [sum(each[name] for name in ("lavad", "sched", "query"))], (), note)
