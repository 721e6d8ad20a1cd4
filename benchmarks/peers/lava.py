"""Lava as a contender: one cluster of a 64-slot host, its queue ``night`` inactive, so that jobs there stay pending."""

from __future__ import annotations

import time
from functools import partial
from types import TracebackType

import lava_client
from benchmarks.bulk import bulk
from benchmarks.cluster import CHUNK_SIZE, CHUNKS, Cluster, submission
from benchmarks.kills import kill_all, start_sleeps
from benchmarks.line import best_of, seconds
from benchmarks.peers.rows import ARRAY, HELD, NO_OPS, RANKS, SINGLES, SLEEPS, Measure
from benchmarks.programs import each_ms, rate_of_loops
from benchmarks.restart import restart
from cli.local.folder import commands_folder
from proto.version import VERSION

COMMANDS = 50
LINKS = 16
PAUSE = 0.05


class Lava:
    """Use it in a ``with``."""

    name = "lava"

    def __init__(self) -> None:
        self._cluster = Cluster(slots=64)
        self._sleepers: Cluster | None = None

    @property
    def version(self) -> str:
        """Of the checkout."""
        return f"lava {VERSION}"

    def __enter__(self) -> Lava:
        self._cluster.up()
        self._cluster.command("badmin", "qinact", "night")
        self._cluster.add_chunk_queue()
        self._wire = self._cluster.wire()
        self._wire.array(200)  # shepherds are made once
        self._api = lava_client.Cluster(environ=self._environ)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._api.close()
        for cluster in (self._sleepers, self._cluster):
            if cluster is not None:
                cluster.__exit__(kind, error, trace)

    def measures(self) -> dict[str, Measure]:
        """All rows."""
        many = ("-J", f"a[1-{ARRAY}]")
        return {
            "submit_command": Measure(lambda: each_ms(self._bsub(), self._environ), "bsub, on disk"),
            "submit_rate_4": Measure(lambda: rate_of_loops(self._bsub(), self._environ, COMMANDS), "bsub", self._clear),
            "array_submit_10000": Measure(lambda: each_ms(self._bsub(*many), self._environ, 5), "bsub", self._clear),
            "throughput_array": Measure(lambda: NO_OPS / seconds(lambda: self._wire.array(NO_OPS)), f"{NO_OPS} elements"),
            "throughput_chunks": Measure(
                lambda: NO_OPS / seconds(lambda: self._wire.array(NO_OPS, q=CHUNKS)), f"CHUNK_JOB_SIZE={CHUNK_SIZE}"
            ),
            "throughput_single": Measure(lambda: SINGLES / seconds(self._singles), f"asks over {LINKS} connections"),
            "api_array": Measure(lambda: NO_OPS / seconds(self._array_by_api), "lava_client"),
            "api_single": Measure(lambda: SINGLES / seconds(self._singles_by_api), "lava_client, one ask"),
            "turnaround": Measure(self._turnaround, "ask and wait over one connection"),
            "turnaround_command": Measure(self._waited, "bsub -K"),
            "ranks_64": Measure(self._ranks, "-a mpi, submit to DONE"),
            "start_1000": Measure(self._start, "an array"),
            "kill_1000": Measure(self._kill, "bkill 0", self._end_sleepers),
            "memory_pending": Measure(self._fill, "lavad; its replicas not counted"),
            "query_all_10000": Measure(lambda: each_ms(self._path("bjobs"), self._environ, 5), "bjobs"),
            "query_one_10000": Measure(lambda: each_ms((*self._path("bjobs"), str(self._held)), self._environ), "bjobs JOB"),
            "restart_10000": Measure(self._restarted, "kill -9, lava up, first answer", self._clear),
            "submit_bulk_10000": Measure(self._bulk, "one ask of 10,000, on disk"),
        }

    @property
    def _environ(self) -> dict[str, str]:
        return self._cluster.environ

    @staticmethod
    def _path(name: str) -> tuple[str, ...]:
        return (str(commands_folder() / name),)

    def _bsub(self, *words: str) -> tuple[str, ...]:
        return (*self._path("bsub"), "-q", "night", "-o", "/dev/null", *words, "/bin/true")

    def _clear(self) -> None:
        self._wire.ask(ask="kill", jobs={"ids": ["0"]})
        for queue in ("night", "normal"):
            self._wire.drained(queue)

    def _singles(self) -> None:
        self._cluster.submit_many(SINGLES, LINKS)
        self._wire.drained()

    def _array_by_api(self) -> None:
        self._api.submit(["/bin/true"], output="/dev/null", name=f"a[1-{NO_OPS}]").result()

    def _singles_by_api(self) -> None:
        for job in self._api.submit_many([["/bin/true"]] * SINGLES, output="/dev/null"):
            job.result()

    def _job(self, **options: str) -> None:
        job = self._wire.ask(**submission(**options))["job"]
        ended = self._wire.ask(ask="wait", job=job, until="finished")
        if ended.get("state") != "DONE":
            raise SystemExit(f"lava: {ended}")
        time.sleep(PAUSE)  # what follows an end belongs to it, not to the next job

    def _turnaround(self) -> float:
        return 1000 * (best_of(self._job, 5) - PAUSE)

    def _ranks(self) -> float:
        return 1000 * (best_of(partial(self._job, a="mpi", n=str(RANKS)), 5) - PAUSE)

    def _waited(self) -> float:
        return each_ms((*self._path("bsub"), "-K", "-o", "/dev/null", "/bin/true"), self._environ, 7)

    def _start(self) -> float:
        """In a cluster of its own, with a slot for each."""
        self._sleepers = Cluster(slots=SLEEPS)
        self._sleepers.up()
        self._sleepers.settle()
        return seconds(partial(start_sleeps, self._sleepers, self._sleepers.wire(), SLEEPS))

    def _kill(self) -> float:
        assert self._sleepers is not None
        return seconds(partial(kill_all, self._sleepers.wire()))

    def _end_sleepers(self) -> None:
        if self._sleepers is not None:
            self._sleepers.__exit__(None, None, None)
            self._sleepers = None

    def _fill(self) -> float:
        """Leaves them pending for the rows that follow."""
        self._clear()
        self._cluster.settle()
        before = self._cluster.rss()["lavad"]
        self._cluster.submit_many(HELD, LINKS, q="night")
        self._held = self._wire.ask(**submission(q="night"))["job"]
        self._cluster.settle()
        return (self._cluster.rss()["lavad"] - before) / HELD

    def _bulk(self) -> float:
        ask = bulk(HELD)
        for job in ask["jobs"]:
            job["options"]["q"] = "night"
        took = seconds(lambda: self._wire.ask(**ask))
        self._clear()
        return HELD / took

    def _restarted(self) -> float:
        took = restart(self._cluster)
        self._wire = self._cluster.wire()
        return took
