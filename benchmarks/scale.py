"""A real lavad with a thousand hosts and more that only pretend (``benchmarks/pretended.py``): starts and ends a second, what a
job costs lavad, what submits and queries take meanwhile, memory, and a job over a thousand hosts.

There is no floor: it is what one master carries. Variables make it larger: LAVA_BENCH_HOSTS (1,000), LAVA_BENCH_PENDING (100,000
elements of arrays), LAVA_BENCH_SINGLES (0: separate jobs that stay pending behind them), LAVA_BENCH_CLIENTS (1: callers that ask
at once), LAVA_BENCH_SECONDS (20: for which starts are counted). From 60 seconds on the last fifth stands beside the second:
``scale_flat``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.bulk import bulk
from benchmarks.cluster import Cluster, Wire, submission
from benchmarks.line import Line, line, seconds
from benchmarks.programs import PATIENCE, wait
from cli.local.daemons import start
from cli.local.folder import ROOT, Shape
from config.write.generate import write_cluster
from proto.localsocket import address

METRICS = (
    "scale_connect",
    "scale_starts",
    "scale_cpu",
    "scale_submit_p50",
    "scale_submit_p99",
    "scale_query_p50",
    "scale_query_p99",
    "scale_memory",
    "scale_flat",
    "scale_gang",
)


def _asked(name: str, usual: int) -> int:
    return int(os.environ.get(f"LAVA_BENCH_{name}", usual))


HOSTS, PENDING, SINGLES = _asked("HOSTS", 1000), _asked("PENDING", 100_000), _asked("SINGLES", 0)
CLIENTS, WATCHED = _asked("CLIENTS", 1), _asked("SECONDS", 20)
SLOTS = 8
RUNS = max(4.0, HOSTS * SLOTS / 2000)
"""Seconds that a job runs: all slots together could start 2,000 a second, or two a host on fewer hosts."""
GANG, GANGS = 1000, 3 if RUNS < 10 else 1
"""Hosts of the job over many, where there are as many; how many such jobs."""
ARRAY, BULK = 10_000, 10_000
"""Elements of an array, and separate jobs of an ask."""
PROCESSES = 2
PAUSE = 0.05 if CLIENTS == 1 else 1.0
"""Seconds between two rounds of a caller."""
PARTS = 5
"""Into which the time is divided for ``scale_flat``; in the first caches fill."""


class Site(Cluster):
    """A lavad alone, and pretended hosts in processes of their own."""

    def __enter__(self) -> Site:
        self.folder.make()
        hosts = [(f"host{number}", SLOTS) for number in range(1, HOSTS + 1)]
        places = {"LAVA_RUNDIR": self.folder.run, "LAVA_SPOOLDIR": self.folder.spool, "LSF_LOGDIR": self.folder.log}
        extra = {name: str(path) for name, path in places.items()} | {"LSF_ROOT_USER": "Y", "LAVA_HEARTBEAT": "10"}
        write_cluster(self.folder.conf, "lava", hosts, ["root"], extra)
        params = self.folder.conf / "lsb.params"
        params.write_text(params.read_text().replace("Begin Parameters\n", "Begin Parameters\nMAX_USER_RECORDS = 10000000\n"))
        self.folder.keep_shape(Shape(["host1"], SLOTS, 1, "sqlite", 0))
        where = address(str(self.folder.run), "lavad")
        places_of = ["--conf", str(self.folder.conf), "--run", str(self.folder.run), "--host", "host1"]
        start(self.folder, "lavad", "lavad.main", [*places_of, "--listen", where, "--log", str(self.folder.log / "lavad.log")])
        wait((self.folder.run / "master" / "lavad.sock").exists, "lavad to listen")
        each = -(-HOSTS // PROCESSES)
        self._hosts = []
        for first in range(1, HOSTS + 1, each):
            words = [where, str(first), str(min(each, HOSTS + 1 - first)), str(SLOTS), str(RUNS)]
            with (self.folder.log / f"pretended-{first}.log").open("w") as log:
                words = [sys.executable, "-m", "benchmarks.pretended", *words]
                self._hosts.append(subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return self

    def ok(self, wire: Wire) -> int:
        """Hosts that are ok."""
        try:
            return wire.query("bhosts", {"noheader": True, "o": "status"}).split().count("ok")
        except ConnectionError:  # lavad is not the master yet
            return 0

    def pids(self) -> dict[str, int]:
        """lavad and its replicas."""
        found = super().pids()
        return {name: pid for name, pid in found.items() if pid}

    def __exit__(self, *how: object) -> None:
        for process in self._hosts:
            process.terminate()
            process.wait()
        super().__exit__(*how)  # type: ignore[arg-type]


@dataclass
class Callers:
    """Milliseconds that callers waited, each with a connection of its own: a submit, a query, a pause."""

    submits: list[float] = field(default_factory=list)
    queries: list[float] = field(default_factory=list)

    def ask(self, wire: Wire, until: float) -> None:
        """One of them, until then (perf_counter)."""
        while time.perf_counter() < until:
            self.submits.append(1000 * seconds(lambda: wire.ask(**submission(H=True))))
            self.queries.append(1000 * seconds(lambda: wire.query("bhosts", {}, ["host7"])))
            time.sleep(PAUSE)

    def figures(self) -> Iterator[tuple[str, str, float]]:
        """Medians, and what one in a hundred waits."""
        for name, values in (("submit", self.submits), ("query", self.queries)):
            yield f"scale_{name}_p50", "ms", statistics.median(values)
            yield f"scale_{name}_p99", "ms", sorted(values)[len(values) * 99 // 100]


@dataclass(frozen=True)
class Mark:
    """How far it is at one moment."""

    clock: float
    done: int
    cpu: dict[str, float]
    rss: dict[str, int]


def lines(wanted: set[str]) -> Iterator[Line]:
    """All of one site."""
    with Site(HOSTS, SLOTS) as site:
        wire = site.wire()
        took = seconds(lambda: wait(lambda: site.ok(wire) == HOSTS, f"{HOSTS} hosts to be ok", 0.2, PATIENCE + HOSTS / 50))
        for one in (line("scale_connect", "s", [took], (), f"{HOSTS} hosts until all are ok"), *_load(site, wire)):
            if any(one["metric"] == metric or one["metric"].startswith(f"{metric}_") for metric in wanted):
                yield one
        if "scale_gang" in wanted:
            yield _gang(wire)


def _load(site: Site, wire: Wire) -> Iterator[Line]:
    pending = f"{PENDING + SINGLES} pending jobs" + (f" ({SINGLES} separate)" if SINGLES else "")
    note = f"{HOSTS} hosts of {SLOTS} slots, {pending}, each runs {RUNS:g} s"
    for begin in range(0, PENDING, ARRAY):
        wire.ask(**submission(J=f"a{begin}[1-{min(ARRAY, PENDING - begin)}]"))
    for begin in range(0, SINGLES, BULK):
        wire.ask(**bulk(min(BULK, SINGLES - begin)))
    wait(lambda: _done(wire) > 0, "the first jobs to end", 0.2)
    callers = Callers()
    until = time.perf_counter() + WATCHED
    asking = [threading.Thread(target=callers.ask, args=(site.wire(), until), daemon=True) for _ in range(CLIENTS)]
    for one in asking:
        one.start()
    marks = [_mark(site, wire)]
    for part in range(1, PARTS + 1):
        time.sleep(max(0.0, until - WATCHED * (1 - part / PARTS) - time.perf_counter()))
        marks.append(_mark(site, wire))
    for one in asking:
        one.join()
    first, last = marks[0], marks[-1]
    yield line("scale_starts", "jobs/s", [_rate(first, last)], (), note)
    for metric, unit, value in callers.figures():
        yield line(metric, unit, [value], (), note + (f"; {CLIENTS} callers" if CLIENTS > 1 else ""))
    for name in ("lavad", "sched", "query"):
        yield line(f"scale_cpu_{name}", "ms", [_cpu(first, last, name)], (), f"a job; {note}")
        yield line(f"scale_memory_{name}", "MB", [last.rss[name] / 1e6], (), note)
    if WATCHED >= 60:
        early, late = (marks[1], marks[2]), (marks[-2], last)
        note = f"after {last.done} ended jobs; floor: after {early[1].done}; {note}"
        yield line("scale_flat_starts", "jobs/s", [_rate(*late)], [_rate(*early)], note)
        for name in ("lavad", "sched", "query"):
            yield line(f"scale_flat_cpu_{name}", "ms", [_cpu(*late, name)], [_cpu(*early, name)], note)
            yield line(f"scale_flat_memory_{name}", "MB", [last.rss[name] / 1e6], [early[1].rss[name] / 1e6], note)


def _mark(site: Site, wire: Wire) -> Mark:
    return Mark(time.perf_counter(), _done(wire), site.cpu(), site.rss())


def _rate(first: Mark, last: Mark) -> float:
    return (last.done - first.done) / (last.clock - first.clock)


def _cpu(first: Mark, last: Mark, name: str) -> float:
    """Milliseconds for a job."""
    return (last.cpu[name] - first.cpu[name]) / max(1, last.done - first.done) * 1000


def _done(wire: Wire) -> int:
    """Elements of the arrays that are done."""
    text = wire.query("bjobs", {"A": True, "a": True, "noheader": True})
    return sum(int(row.split()[5]) for row in text.splitlines())


def _gang(wire: Wire) -> Line:
    """One job over as many hosts as ``GANG``, once they are free."""
    hosts = min(HOSTS, GANG)
    wire.ask(ask="kill", jobs={"ids": ["0"]})
    wire.drained(pause=0.2)
    values = []
    for _ in range(GANGS):
        begin = time.perf_counter()
        job = wire.ask(**submission(n=str(hosts), R="span[ptile=1]"))["job"]
        wire.ask(ask="wait", job=job, until="finished")
        values.append(1000 * (time.perf_counter() - begin - RUNS))
    return line(
        "scale_gang", "ms", values, (), f"one job of a rank on each of {hosts} hosts, submit to DONE, without its {RUNS:g} s"
    )
