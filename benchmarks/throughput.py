"""No-op jobs a second through one host of 64 slots, and one job from submission to its end.

The floor of an array is what the starter and its shepherds do alone, with the same program and slots, in the same round.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.cluster import CHUNK_SIZE, CHUNKS, Cluster, Wire, submission
from benchmarks.line import ROUNDS, Line, best_of, line, seconds
from cli.local.folder import ROOT

METRICS = ("throughput_array", "throughput_chunks", "throughput_single", "turnaround", "cpu_per_job")
ELEMENTS, JOBS, LINKS = 2000, 500, 16
FLOOR = "floor: posix_spawn of /bin/true, both sides"
PAUSE = 0.05
"""Seconds after a job, in which reports are acknowledged."""
TURNS = 15
SPAWNS = 500
STEPS = ("lavad", "sched", "query", "eventlog", "agent", "starter", "shepherds", "jobs")


def lines(wanted: set[str]) -> Iterator[Line]:
    """All on one cluster."""
    with Cluster() as cluster:
        wire = cluster.wire()
        # Shepherds are made once; their CPU is told in whole clock ticks, of which the first would be missing in each of 64.
        wire.array(ELEMENTS)
        if wanted & {"throughput_array", "cpu_per_job"}:
            yield from _arrays(cluster, wire)
        if "throughput_chunks" in wanted:
            yield _in_chunks(cluster, wire)
        if "throughput_single" in wanted:
            values = [JOBS / seconds(lambda: _singles(cluster, wire)) for _ in range(ROUNDS)]
            yield line("throughput_single", "jobs/s", values, (), f"{JOBS} separate jobs over {LINKS} connections")
        if "turnaround" in wanted:
            yield _turnarounds(wire)


def _arrays(cluster: Cluster, wire: Wire) -> Iterator[Line]:
    values, floors = [], []
    used: dict[str, list[float]] = {name: [] for name in (*STEPS, "all")}
    spawned = []
    for _ in range(ROUNDS):
        spawned.append(_spawn_cpu())
        floors.append(_floor())
        before = cluster.cpu()
        values.append(ELEMENTS / seconds(lambda: wire.array(ELEMENTS)))
        after = cluster.cpu()
        for name in STEPS:
            used[name].append((after[name] - before[name]) / ELEMENTS * 1000)
        used["all"].append(sum(used[name][-1] for name in STEPS))
    note = f"{ELEMENTS} x /bin/true in an array, 64 slots; floor: starter and shepherds alone"
    yield line("throughput_array", "jobs/s", values, floors, note)
    for name in STEPS:
        what = "what the shepherds forked: before exec, and /bin/true itself" if name == "jobs" else name
        yield line(f"cpu_per_job_{name}", "ms", used[name], spawned, f"CPU of {what} in throughput_array; {FLOOR}")
    yield line("cpu_per_job_all", "ms", used["all"], spawned, f"all of these; {FLOOR}")


def _in_chunks(cluster: Cluster, wire: Wire) -> Line:
    """The array in a queue with CHUNK_JOB_SIZE, beside the same without."""
    cluster.add_chunk_queue()
    values, plain = [], []
    for _ in range(ROUNDS):
        plain.append(ELEMENTS / seconds(lambda: wire.array(ELEMENTS)))
        values.append(ELEMENTS / seconds(lambda: wire.array(ELEMENTS, q=CHUNKS)))
    return line("throughput_chunks", "jobs/s", values, plain, f"CHUNK_JOB_SIZE={CHUNK_SIZE}; floor: without it, in turn")


def _spawn_cpu() -> float:
    """Milliseconds of CPU, this process's and the child's."""
    before = sum(os.times()[:4])
    for _ in range(SPAWNS):
        _spawn()
    return (sum(os.times()[:4]) - before) / SPAWNS * 1000


def _floor() -> float:
    """Parts a second of the starter alone, one round."""
    words = [sys.executable, str(ROOT / "benchmarks" / "starter_floor.py"), str(ELEMENTS), "64", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[0])["value"])


def _singles(cluster: Cluster, wire: Wire) -> None:
    cluster.submit_many(JOBS, LINKS)
    wire.drained()


def _spawn() -> None:
    os.waitpid(os.posix_spawn("/bin/true", ("/bin/true",), {}), 0)


def _turnarounds(wire: Wire) -> Line:
    def one() -> None:
        job = wire.ask(**submission())["job"]
        wire.ask(ask="wait", job=job, until="finished")
        time.sleep(PAUSE)  # what follows an end belongs to it, not to the next job

    values, floors = [], []
    one()
    for _ in range(ROUNDS):
        floors.append(1000 * best_of(_spawn, 100))
        values.append(1000 * (best_of(one, TURNS) - PAUSE))
    return line("turnaround", "ms", values, floors, "submit to DONE, idle, one process; floor: posix_spawn of /bin/true")
