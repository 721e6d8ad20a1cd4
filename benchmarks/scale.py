"""A real lavad with a thousand hosts and more that only pretend (``benchmarks/pretended.py``): starts and ends a second, what a
job costs lavad, what submits and queries take meanwhile, memory, and a job over all hosts.

There is no floor: it is what one master carries. LAVA_BENCH_HOSTS (1,000) and LAVA_BENCH_PENDING (100,000) make it larger.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.cluster import Cluster, Wire, submission
from benchmarks.line import Line, line, seconds
from benchmarks.programs import wait
from cli.local.daemons import start
from cli.local.folder import ROOT, Shape
from config.write.generate import write_cluster
from proto.localsocket import address

METRICS = ("scale_starts", "scale_cpu", "scale_submit_p50", "scale_submit_p99", "scale_query_p99", "scale_memory", "scale_gang")
HOSTS = int(os.environ.get("LAVA_BENCH_HOSTS", "1000"))
PENDING = int(os.environ.get("LAVA_BENCH_PENDING", "100000"))
SLOTS, RUNS = 8, 4.0
"""Slots of a host, and seconds that a job runs."""
WATCHED = 20.0
"""Seconds for which starts are counted."""
PROCESSES = 2


class Site(Cluster):
    """A lavad alone, and pretended hosts in processes of their own."""

    def __enter__(self) -> Site:
        self.folder.make()
        hosts = [(f"host{number}", SLOTS) for number in range(1, HOSTS + 1)]
        places = {"LAVA_RUNDIR": self.folder.run, "LAVA_SPOOLDIR": self.folder.spool, "LSF_LOGDIR": self.folder.log}
        extra = {name: str(path) for name, path in places.items()} | {"LSF_ROOT_USER": "Y", "LAVA_HEARTBEAT": "10"}
        write_cluster(self.folder.conf, "lava", hosts, ["root"], extra)
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


def lines(wanted: set[str]) -> Iterator[Line]:
    """All of one site."""
    with Site(HOSTS, SLOTS) as site:
        wire = site.wire()
        begin = time.perf_counter()
        wait(lambda: site.ok(wire) == HOSTS, f"{HOSTS} hosts to be ok", 0.2)
        print(f"{HOSTS} hosts ok after {time.perf_counter() - begin:.1f} s", file=sys.stderr)
        yield from _load(site, wire, wanted)


def _load(site: Site, wire: Wire, wanted: set[str]) -> Iterator[Line]:
    note = f"{HOSTS} hosts of {SLOTS} slots, {PENDING} pending jobs, each runs {RUNS:g} s"
    for begin in range(0, PENDING, 10_000):
        wire.ask(**submission(J=f"a{begin}[1-{min(10_000, PENDING - begin)}]"))
    wait(lambda: _done(wire) > 0, "the first jobs to end", 0.2)
    before, done = site.cpu(), _done(wire)
    clock = time.perf_counter()
    submits, queries = [], []
    while time.perf_counter() - clock < WATCHED:
        submits.append(1000 * seconds(lambda: wire.ask(**submission(H=True))))
        queries.append(1000 * seconds(lambda: wire.query("bhosts", {}, ["host7"])))
        time.sleep(0.05)
    took = time.perf_counter() - clock
    ended = _done(wire) - done
    after = site.cpu()
    figures = {
        "scale_starts": ("jobs/s", ended / took),
        "scale_submit_p50": ("ms", statistics.median(submits)),
        "scale_submit_p99": ("ms", sorted(submits)[len(submits) * 99 // 100]),
        "scale_query_p99": ("ms", sorted(queries)[len(queries) * 99 // 100]),
    }
    for metric, (unit, value) in figures.items():
        if metric in wanted:
            yield line(metric, unit, [value], (), note)
    for name in after:
        if "scale_cpu" in wanted and name in ("lavad", "sched", "query"):
            yield line(f"scale_cpu_{name}", "ms", [(after[name] - before[name]) / max(1, ended) * 1000], (), f"a job; {note}")
    if "scale_memory" in wanted:
        for name, size in site.rss().items():
            yield line(f"scale_memory_{name}", "MB", [size / 1e6], (), note)
    if "scale_gang" in wanted:
        yield _gang(site, wire)


def _done(wire: Wire) -> int:
    """Elements of the arrays that are done."""
    text = wire.query("bjobs", {"A": True, "a": True, "noheader": True})
    return sum(int(row.split()[5]) for row in text.splitlines())


def _gang(site: Site, wire: Wire) -> Line:
    """One job over all hosts, once they are free."""
    wire.ask(ask="kill", jobs={"ids": ["0"]})
    wire.drained(pause=0.2)
    values = []
    for _ in range(3):
        begin = time.perf_counter()
        job = wire.ask(**submission(n=str(HOSTS), R="span[ptile=1]"))["job"]
        wire.ask(ask="wait", job=job, until="finished")
        values.append(1000 * (time.perf_counter() - begin - RUNS))
    return line(
        "scale_gang", "ms", values, (), f"one job of a rank on each of {HOSTS} hosts, submit to DONE, without its {RUNS:g} s"
    )
