"""Which benchmarks are kept and compared: all that a page shows, and the few that ``make bench-check`` runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterator

from benchmarks import run
from benchmarks.line import Line
from benchmarks.peers import run as peers
from cli.local.folder import ROOT

WHOLE = (
    "submit_command",
    "query_command",
    "submit_rate_4",
    "array_submit_10000",
    "submit_bulk",
    "throughput",
    "cpu_per_job",
    "turnaround",
    "mpi_launch_64",
    "kill_1000",
    "start_1000",
    "query_one",
    "query_all",
    "submit_socket",
    "rss_per_job",
    "rss_per_element",
    "restart_10000",
    "mark_classes",
    "scale",
    "store",
    "flat",
)
QUICK = (
    "submit_command",
    "query_command",
    "submit_rate_4",
    "array_submit_10000",
    "submit_bulk_10000",
    "throughput_array",
    "cpu_per_job",
    "turnaround",
    "mpi_launch_64",
    "restart_10000",
    "store_commit",
)
QUICK_ROWS = ("submit_command", "submit_rate_4", "array_submit_10000", "turnaround_command", "ranks_64", "submit_bulk_10000")
HOSTS = (10, 100)
"""Sizes of a site that are measured besides the one of ``benchmarks/scale.py``; their metrics end in ``_hosts_N``."""


def measured(names: Collection[str], rows: Collection[str], failed: list[str]) -> Iterator[Line]:
    """Benchmarks by name, then rows beside the peers that are installed; neither where none is named.

    Why one has failed comes to ``failed``; the others are measured all the same.
    """
    for one in run.plan(names) if names else ():
        yield from all_of(one[0], run.lines([one]), failed)
    if rows:
        yield from all_of("beside peers", peers.measure(set(rows)), failed)


def sites(failed: list[str]) -> Iterator[Line]:
    """``scale`` with fewer hosts; ``failed`` as of ``measured``."""
    for hosts in HOSTS:
        yield from all_of(f"scale with {hosts} hosts", _site(hosts), failed)


def all_of(name: str, lines: Iterator[Line], failed: list[str]) -> Iterator[Line]:
    """Them, up to what fails; why comes to ``failed``."""
    try:
        yield from lines
    except (Exception, SystemExit) as error:
        failed.append(f"{name}: {type(error).__name__}: {error}")


def _site(hosts: int) -> Iterator[Line]:
    environ = {**os.environ, "LAVA_BENCH_HOSTS": str(hosts), "LAVA_BENCH_PENDING": str(hosts * 100)}
    words = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "scale"]
    done = subprocess.run(words, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    for text in done.stdout.splitlines():
        one = json.loads(text)
        yield one | {"metric": f"{one['metric']}_hosts_{hosts}"}
