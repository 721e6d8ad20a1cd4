"""A real lavad with a thousand hosts and more that only pretend (``benchmarks/pretended.py``): starts and ends a second, what a
job costs lavad, what submits and queries take meanwhile, memory, a restart, and a job over a thousand hosts.

There is no floor: it is what one master carries. Variables make it larger: LAVA_BENCH_HOSTS (1,000), LAVA_BENCH_PENDING (100,000
elements of arrays), LAVA_BENCH_SINGLES (0: separate jobs that stay pending behind them), LAVA_BENCH_CLIENTS (1: callers that ask
at once), LAVA_BENCH_SECONDS (20: for which starts are counted), LAVA_BENCH_GANG (1,000: hosts of the job over many). From 60
seconds on, and ten times as long as a job runs, the last fifth stands beside the second: ``scale_flat``. A table of all fifths
goes to stderr.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.bulk import bulk, taken
from benchmarks.cluster import Cluster, Wire, allow_many, resident, submission, with_forks
from benchmarks.line import Line, line, seconds
from benchmarks.programs import PATIENCE, wait
from benchmarks.restart import restart
from benchmarks.scale_parts import Mark, Part, machine, median, percentile, read_page, table
from cli.local.daemons import start
from cli.local.folder import ROOT, Shape
from config.write.generate import write_cluster
from proto.localsocket import address

METRICS = (
    "scale_connect",
    "scale_fill",
    "scale_starts",
    "scale_cores",
    "scale_cpu",
    "scale_commit",
    "scale_cycle",
    "scale_submit_p50",
    "scale_submit_p99",
    "scale_query_p50",
    "scale_query_p99",
    "scale_memory",
    "scale_flat",
    "scale_restart",
    "scale_gang",
)


def _asked(name: str, usual: int) -> int:
    return int(os.environ.get(f"LAVA_BENCH_{name}", usual))


HOSTS, PENDING, SINGLES = _asked("HOSTS", 1000), _asked("PENDING", 100_000), _asked("SINGLES", 0)
CLIENTS, WATCHED = _asked("CLIENTS", 1), _asked("SECONDS", 20)
SLOTS = 8
RUNS = max(4.0, HOSTS * SLOTS / 2000)
"""Seconds that a job runs: all slots together could start 2,000 a second, or two a host on fewer hosts."""
GANG, GANGS = _asked("GANG", 1000), 3 if RUNS < 10 else 1
"""Hosts of the job over many, where there are as many; how many such jobs."""
ARRAY, BULK = 10_000, 10_000
"""Elements of an array, and separate jobs of an ask."""
PROCESSES = 2
PAUSE = 0.05 if CLIENTS == 1 else 1.0
"""Seconds between two rounds of a caller."""
PARTS = 5
"""Into which the time is divided; in the first caches fill."""
MASTER = ("lavad", "sched", "query")


class Site(Cluster):
    """A lavad alone, and pretended hosts in processes of their own."""

    def __enter__(self) -> Site:
        self.folder.make()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            metrics = f"127.0.0.1:{free.getsockname()[1]}"
        self._page = f"http://{metrics}/metrics"
        hosts = [(f"host{number}", SLOTS) for number in range(1, HOSTS + 1)]
        places = {"LAVA_RUNDIR": self.folder.run, "LAVA_SPOOLDIR": self.folder.spool, "LSF_LOGDIR": self.folder.log}
        extra = {name: str(path) for name, path in places.items()}
        extra |= {"LSF_ROOT_USER": "Y", "LAVA_HEARTBEAT": "10", "LAVA_METRICS_ADDRESS": metrics}
        write_cluster(self.folder.conf, "lava", hosts, ["root"], extra)
        allow_many(self.folder)
        self.folder.keep_shape(Shape(["host1"], SLOTS, 1, "sqlite", 0))
        self._where = address(str(self.folder.run), "lavad")
        self.up()
        each = -(-HOSTS // PROCESSES)
        self._hosts = []
        for first in range(1, HOSTS + 1, each):
            words = [self._where, str(first), str(min(each, HOSTS + 1 - first)), str(SLOTS), str(RUNS)]
            with (self.folder.log / f"pretended-{first}.log").open("w") as log:
                words = [sys.executable, "-m", "benchmarks.pretended", *words]
                self._hosts.append(subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return self

    def up(self) -> None:
        """Start lavad."""
        words = ["--conf", str(self.folder.conf), "--run", str(self.folder.run), "--host", "host1", "--listen", self._where]
        start(self.folder, "lavad", "lavad.main", [*words, "--log", str(self.folder.log / "lavad.log")])
        wait((self.folder.run / "master" / "lavad.sock").exists, "lavad to listen")

    def mark(self, asked: tuple[int, int]) -> Mark:
        """How far it is now."""
        files = {path.suffix: path.stat().st_size for path in self.folder.path.rglob("lavad.sqlite*")}
        cpu, rss = self.cpu(), self.rss()
        cpu["hosts"] = sum(with_forks(process.pid) for process in self._hosts)
        cpu["callers"] = time.process_time()
        rss["hosts"] = sum(resident(process.pid) for process in self._hosts)
        store, log = files.get(".sqlite", 0), files.get(".sqlite-wal", 0)
        return Mark(time.perf_counter(), read_page(self._page), cpu, rss, store, log, machine(), asked)

    def ended(self) -> float:
        """Jobs."""
        return read_page(self._page).ended

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
    failed: list[str] = field(default_factory=list)
    """Why a caller has asked no more."""

    def ask(self, wire: Wire, until: float) -> None:
        """One of them, until then (perf_counter)."""
        try:
            while time.perf_counter() < until:
                self.submits.append(1000 * seconds(lambda: wire.ask(**submission(H=True))))
                self.queries.append(1000 * seconds(lambda: wire.query("bhosts", {}, ["host7"])))
                time.sleep(PAUSE)
        except (OSError, SystemExit) as error:
            self.failed.append(f"{type(error).__name__}: {error}")

    @property
    def asked(self) -> tuple[int, int]:
        """How many submits and queries had their answers."""
        return len(self.submits), len(self.queries)

    def between(self, first: Mark, last: Mark) -> Part:
        """What came between two marks."""
        submits, queries = zip(first.asked, last.asked, strict=True)
        return Part(first, last, self.submits[slice(*submits)], self.queries[slice(*queries)])


def lines(wanted: set[str]) -> Iterator[Line]:
    """All of one site."""
    with Site(HOSTS, SLOTS) as site:
        wire = site.wire()
        took = seconds(lambda: _connected(site, wire))
        for one in (line("scale_connect", "s", [took], (), f"{HOSTS} hosts until all are ok"), *_load(site, wire)):
            if any(one["metric"] == metric or one["metric"].startswith(f"{metric}_") for metric in wanted):
                yield one
        if "scale_restart" in wanted:
            yield line("scale_restart", "s", [restart(site)], (), f"kill -9 of lavad to the first answer; {_note()}")
        if "scale_gang" in wanted:
            yield from _gang(site, site.wire())


def _connected(site: Site, wire: Wire) -> None:
    wait(lambda: site.ok(wire) == HOSTS, f"{HOSTS} hosts to be ok", 0.2, PATIENCE + HOSTS / 50)


def _note() -> str:
    pending = f"{PENDING + SINGLES} pending jobs" + (f" ({SINGLES} separate)" if SINGLES else "")
    return f"{HOSTS} hosts of {SLOTS} slots, {pending}, each runs {RUNS:g} s"


def _load(site: Site, wire: Wire) -> Iterator[Line]:
    for begin in range(0, PENDING, ARRAY):
        wire.ask(**submission(J=f"a{begin}[1-{min(ARRAY, PENDING - begin)}]"))
    rates = [_filled(wire, min(BULK, SINGLES - at)) for at in range(0, SINGLES, BULK)]
    if rates:
        tenth = -(-len(rates) // 10)
        note = f"separate jobs, the last tenth of them; floor: the first; {_note()}"
        yield line("scale_fill", "jobs/s", rates[-tenth:], rates[:tenth], note)
    wait(lambda: site.ended() > 0, "the first jobs to end", 0.2)
    callers = Callers()
    until = time.perf_counter() + WATCHED
    asking = [threading.Thread(target=callers.ask, args=(site.wire(), until), daemon=True) for _ in range(CLIENTS)]
    for one in asking:
        one.start()
    marks = [site.mark(callers.asked)]
    for part in range(1, PARTS + 1):
        time.sleep(max(0.0, until - WATCHED * (1 - part / PARTS) - time.perf_counter()))
        marks.append(site.mark(callers.asked))
    for one in asking:
        one.join()
    if callers.failed:
        raise SystemExit(f"{len(callers.failed)} callers: {callers.failed[0]}")
    parts = [callers.between(first, last) for first, last in pairwise(marks)]
    whole = callers.between(marks[0], marks[-1])
    print(f"{_note()}; {CLIENTS} callers\n{table(parts, whole)}", file=sys.stderr, flush=True)
    yield from _figures(whole)
    least = max(60.0, 2 * PARTS * RUNS)  # in less, one part may have the ends of all that started at once, another none
    if least <= WATCHED:
        yield from _flat(parts[1], parts[-1])


def _filled(wire: Wire, jobs: int) -> float:
    """Jobs a second of one ask."""
    return jobs / seconds(lambda: taken(wire.ask(**bulk(jobs))))


def _figures(part: Part) -> Iterator[Line]:
    note = _note()
    yield line("scale_starts", "jobs/s", [part.ended / part.seconds], (), note)
    callers = note + (f"; {CLIENTS} callers" if CLIENTS > 1 else "")
    for name, values in (("submit", part.submits), ("query", part.queries)):
        yield line(f"scale_{name}_p50", "ms", [median(values)], (), callers)
        yield line(f"scale_{name}_p99", "ms", [percentile(values, 0.99)], (), callers)
    for name in MASTER:
        yield line(f"scale_cpu_{name}", "ms", [part.cpu(name)], (), f"a job; {note}")
        yield line(f"scale_memory_{name}", "MB", [part.last.rss[name] / 1e6], (), note)
    for name in (*MASTER, "hosts", "callers"):
        yield line(f"scale_cores_{name}", "cores", [part.cores(name)], (), note)
    yield line("scale_cores_busy", "cores", [part.busy() * len(os.sched_getaffinity(0))], (), f"of the machine; {note}")
    for name, spread in (("commit", part.commits()), ("cycle", part.cycles())):
        said = f"{spread.count / part.seconds:.0f} a second, the longest within {spread.most():g} ms; {note}"
        yield line(f"scale_{name}", "ms", [spread.mean()], (), said)


def _flat(early: Part, late: Part) -> Iterator[Line]:
    """The last part of the time beside the second."""
    note = f"after {late.last.page.ended:.0f} ended jobs; floor: after {early.first.page.ended:.0f}; {_note()}"
    yield line("scale_flat_starts", "jobs/s", [late.ended / late.seconds], [early.ended / early.seconds], note)
    for name in MASTER:
        yield line(f"scale_flat_cpu_{name}", "ms", [late.cpu(name)], [early.cpu(name)], note)
        yield line(f"scale_flat_memory_{name}", "MB", [late.last.rss[name] / 1e6], [early.first.rss[name] / 1e6], note)


def _gang(site: Site, wire: Wire) -> Iterator[Line]:
    """One job over as many hosts as ``GANG``, once they are free; then one that is killed when it has run for half its time."""
    hosts = min(HOSTS, GANG)
    wire.ask(ask="kill", jobs={"ids": ["0"]})
    wire.drained(pause=0.2)
    _connected(site, wire)
    values, kills = [], []
    for _ in range(GANGS):
        begin = time.perf_counter()
        _finished(wire, _submitted(wire, hosts))
        values.append(1000 * (time.perf_counter() - begin - RUNS))
        job = _submitted(wire, hosts)
        time.sleep(RUNS / 2)
        begin = time.perf_counter()
        wire.ask(ask="kill", jobs={"ids": [str(job)]})
        _finished(wire, job)
        kills.append(1000 * (time.perf_counter() - begin))
    each = f"one job of a rank on each of {hosts} hosts"
    yield line("scale_gang", "ms", values, (), f"{each}, submit to DONE, without its {RUNS:g} s")
    yield line("scale_gang_kill", "ms", kills, (), f"bkill of {each}, which runs, until it is over on all")


def _submitted(wire: Wire, hosts: int) -> int:
    return int(wire.ask(**submission(n=str(hosts), R="span[ptile=1]"))["job"])


def _finished(wire: Wire, job: int) -> None:
    wire.ask(ask="wait", job=job, until="finished")
