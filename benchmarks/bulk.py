"""10,000 different jobs by one call: one ask over the socket of lavad, and ``bsub -pack``; every commit is on the disk.

The floor is 10,000 rows of the size that a job has in the store, appended and synced (fdatasync) by a turn's worth of jobs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cluster import Cluster, submission
from benchmarks.line import ROUNDS, Line, line, seconds

METRICS = ("submit_bulk_10000", "submit_bulk_cpu", "submit_pack_10000")
JOBS = 10_000
ROW, TURN = 700, 500
"""Bytes of a job's event, row and text; jobs in a commit, about."""


def lines(wanted: set[str]) -> Iterator[Line]:
    """On a host that takes no jobs, so that nothing else runs."""
    with Cluster() as cluster:
        cluster.command("badmin", "hclose", "host1")
        if {"submit_bulk_10000", "submit_bulk_cpu"} & wanted:
            yield from (one for one in _asks(cluster) if one["metric"] in wanted)
        if "submit_pack_10000" in wanted:
            yield _pack(cluster)


def bulk(jobs: int, **options: Any) -> dict[str, Any]:
    """The ask for as many jobs with names, commands and output files of their own, and these options (LSF names)."""
    alone = submission()
    common = {key: alone[key] for key in ("uuid", "env", "cwd", "home", "umask", "shell")}
    made = [{"command": f"./step {at}", "options": {"J": f"step{at}", "o": f"step.{at}", **options}} for at in range(jobs)]
    return {"ask": "bulk", **common, "jobs": made}


def _asks(cluster: Cluster) -> Iterator[Line]:
    wire = cluster.wire()
    values, floors, used = [], [], []
    for _ in range(ROUNDS):
        cluster.settle()
        floors.append(JOBS / seconds(_synced))
        before = cluster.cpu()["lavad"]
        values.append(JOBS / seconds(lambda: taken(wire.ask(**bulk(JOBS)))))
        used.append((cluster.cpu()["lavad"] - before) * 1e6 / JOBS)
    yield line("submit_bulk_10000", "jobs/s", values, floors, "one ask of 10,000 different jobs; floor: its rows, synced")
    yield line("submit_bulk_cpu", "us", used, (), "CPU of lavad for one of them")


def taken(answer: dict[str, Any]) -> None:
    """Ends the benchmark if one of the jobs was refused."""
    if not all(row["ok"] for row in answer["results"]):
        raise SystemExit(f"submit: {answer['results'][0]}")


def _synced() -> None:
    rows = b"x" * (ROW * TURN)
    with tempfile.TemporaryFile(dir=Path.cwd()) as file:
        for _ in range(JOBS // TURN):
            file.write(rows)
            file.flush()
            os.fdatasync(file.fileno())


def _pack(cluster: Cluster) -> Line:
    with tempfile.NamedTemporaryFile("w") as file:
        file.writelines(f"-J step{at} -o step.{at} ./step {at}\n" for at in range(JOBS))
        file.flush()
        values = [JOBS / seconds(lambda: cluster.command("bsub", "-pack", file.name)) for _ in range(ROUNDS)]
    return line("submit_pack_10000", "jobs/s", values, (), "bsub -pack with 10,000 different lines, its own start included")
