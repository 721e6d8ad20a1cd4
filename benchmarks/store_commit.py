"""Pairs (one event row and one job row) committed per second, at batches of 1, 10 and 100, on both databases.

python benchmarks/store_commit.py [URL ...]: without a URL a SQLite file and a private PostgreSQL in a temporary folder.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lavad.core import events as ev
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import Spec
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.devtools import private_postgres
from lavad.store.batch import Batch
from lavad.store.writer import Store

SECONDS = 2.0
ELEMENTS = 100_000


def measure(store: Store, size: int, first_seq: int, first_job: int) -> tuple[float, float, float, int]:
    """Pairs a second, p50 and p99 of a commit in ms, and how many pairs it was."""
    times = []
    done = 0
    began = time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        keys = range(first_job + done, first_job + done + size)
        batch = Batch(
            first=first_seq + done,
            events=[ev.JobSubmitted(at=1.0, key=key, spec=1, name="a job of some name") for key in keys],
            jobs=[Job(key=key, spec=1, name="a job of some name", submitted=1.0, since=1.0) for key in keys],
        )
        start = time.perf_counter()
        store.commit(batch)
        times.append((time.perf_counter() - start) * 1000)
        done += size
    cuts = statistics.quantiles(times, n=100)
    return done / (time.perf_counter() - began), statistics.median(times), cuts[98], done


def kill_elements(store: Store, seq: int, job: int) -> float:
    """Seconds to write the finished rows of an array that is killed before it ran."""
    indices = Ranges.span(1, ELEMENTS)
    array = Array(
        job=job,
        spec=1,
        name="a",
        spec_text="a[1-100000]",
        submitted=1.0,
        indices=indices,
        pending=EMPTY,
        held=EMPTY,
        exited=ELEMENTS,
    )
    killed = ev.ElementsKilled(at=2.0, key=job, elements=indices)
    start = time.perf_counter()
    store.commit(Batch(first=seq, events=[killed], dropped_arrays=[array]))
    return time.perf_counter() - start


def run(name: str, url: str) -> None:
    store = Store.open(url)
    spec = Spec(user="ann", queue="normal")
    store.commit(Batch(first=1, events=[ev.SpecAdded(at=1.0, spec=1, value=spec)], specs=[(1, spec)]))
    seq, job = 2, 1
    for size in (1, 10, 100):
        rate, middle, worst, done = measure(store, size, seq, job)
        seq, job = seq + done, job + done
        print(f"{name:10s} batch {size:4d}: {rate:8.0f} pairs/s, commit p50 {middle:6.2f} ms, p99 {worst:6.2f} ms")
    print(f"{name:10s} {ELEMENTS} killed elements: {kill_elements(store, seq, job):.2f} s")
    store.close()


def main() -> None:
    if sys.argv[1:]:
        for url in sys.argv[1:]:
            run(url.partition(":")[0], url)
        return
    folder = Path(tempfile.mkdtemp(prefix="lava-bench-store-"))
    folder.chmod(0o711)
    try:
        run("sqlite", f"sqlite:///{folder}/lava.db")
        run("postgresql", private_postgres.start(folder / "postgres"))
    finally:
        private_postgres.stop(folder / "postgres")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
