"""What a submit costs its caller while the scheduler is at its longest: thousands of classes that fit nowhere, looked at again
and again as loads are reported.

The floor is the same submit in a second, idle cluster in the same round; the scheduler is a process of its own, so it should
not be felt on a machine with a core to spare.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from benchmarks.cluster import Cluster, Wire, submission
from benchmarks.line import ROUNDS, Line, line, seconds

METRICS = ("submit_busy_p50", "submit_busy_p99")
CLASSES = 20_000
TIMES = 300


def lines(wanted: set[str]) -> Iterator[Line]:
    """Milliseconds until the answer to one submit at a time, each of its own class."""
    with Cluster() as idle, Cluster() as busy:
        wires = idle.wire(), busy.wire()
        for begin in range(0, CLASSES, 500):
            wires[1].send([_job(begin + at) for at in range(500)])
            for _ in range(500):
                if "ok" not in (answer := wires[1].take()):
                    raise SystemExit(f"submit: {answer}")
        values: dict[str, list[float]] = {metric: [] for metric in METRICS}
        floors: dict[str, list[float]] = {metric: [] for metric in METRICS}
        for turn in range(ROUNDS):
            for into, wire in zip((floors, values), wires, strict=True):
                took = sorted(1000 * seconds(partial(_submit, wire, at)) for at in _numbers(turn))
                into["submit_busy_p50"].append(statistics.median(took))
                into["submit_busy_p99"].append(took[TIMES * 99 // 100])
        for metric in METRICS:
            if metric in wanted:
                note = f"one submit at a time while {CLASSES} classes are looked at; floor: in an idle cluster"
                yield line(metric, "ms", values[metric], floors[metric], note)


def _numbers(turn: int) -> range:
    begin = CLASSES + turn * TIMES
    return range(begin, begin + TIMES)


def _job(number: int) -> dict[str, object]:
    """A job that asks for more memory than any host has, and for another amount than all others."""
    return submission(R=f"rusage[mem={10_000_000 + number}]")


def _submit(wire: Wire, number: int) -> None:
    wire.send([_job(number)])
    if "ok" not in (answer := wire.take()):
        raise SystemExit(f"submit: {answer}")
