"""Metrics for Prometheus: submitted, started, ended and hanging jobs, wait times, durations of scheduling cycles.

Rule: the engine's thread only adds to plain dictionaries; names, labels and text are made in the thread that serves the page. Off
by default; on addresses other than loopback only over TLS, for clients with a certificate of the site.
"""

from __future__ import annotations

import logging
import ssl
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import COLUMNS
from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import show
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from proto.daemon.revoked import FILE
from proto.listen_address import is_loopback, split_address

log = logging.getLogger(__name__)

BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 100_000.0)
LISTED = 1000
"""Parallel jobs that have a rank count of their own; more would make the page long."""
_JOB = ("kind", "queue")

Labels = tuple[str, ...]


class Spread:
    """A histogram: counts of values up to each bound, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """One measurement."""
        self.counts[bisect_left(BOUNDS, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative buckets, as in Prometheus."""
        names = [*map(str, BOUNDS), "+Inf"]
        sums, so_far = [], 0
        for name, count in zip(names, list(self.counts), strict=True):
            so_far += count
            sums.append((name, float(so_far)))
        return sums


class Metrics:
    """The metrics of one active master; they start at 0 with it."""

    def __init__(
        self,
        cluster: Cluster,
        idle_gpus: Callable[[], float] = lambda: 0.0,
        certificate_ends: Callable[[], Mapping[str, float]] = dict,
        set_aside: Callable[[], int] = lambda: 0,
        gpus_held: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:
        self._cluster = cluster
        self._set_aside = set_aside
        self._idle_gpus = idle_gpus
        self._gpus_held = gpus_held
        self._certificate_ends = certificate_ends
        self.submitted: dict[Labels, int] = defaultdict(int)
        self.ended: dict[Labels, int] = defaultdict(int)
        self.restarted: dict[Labels, int] = defaultdict(int)
        self.dispatched: dict[Labels, int] = defaultdict(int)
        self.hung: dict[Labels, int] = defaultdict(int)
        self.retried: dict[Labels, int] = defaultdict(int)
        self.checkpoints: dict[Labels, int] = defaultdict(int)
        self.refusals: dict[Labels, int] = defaultdict(int)
        self.waited: dict[Labels, Spread] = defaultdict(Spread)
        self.prepared: dict[Labels, Spread] = defaultdict(Spread)
        self.launched: dict[Labels, Spread] = defaultdict(Spread)
        self.cycles = Spread()
        self.commits = Spread()
        self.events: dict[str, int] = defaultdict(int)
        self.ranks: dict[int, tuple[Labels, int]] = {}
        self._started: set[int] = set()
        self._act: dict[type[ev.Event], Callable[[Any, dict[int, Job]], None]] = {
            ev.JobSubmitted: self._job_submitted,
            ev.ElementsKilled: self._elements_killed,
            ev.JobDispatched: self._job_dispatched,
            ev.GangReleased: self._gang_released,
            ev.PartStarted: self._part_started,
            ev.JobRequeued: self._job_requeued,
            ev.JobRevived: self._job_requeued,
            ev.RanksSuspected: self._ranks_suspected,
            ev.PartRefused: self._part_refused,
            ev.TaskRetried: self._task_retried,
            ev.TasksReturned: self._tasks_returned,
            ev.CheckpointMade: self._checkpoint_made,
            ev.CheckpointFailed: self._checkpoint_failed,
            ev.JobGrew: self._resized,
            ev.JobShrank: self._resized,
            ev.JobResized: self._resized,
            ev.PartLeft: self._resized,
        }
        self._over: Mapping[int, Array] = {}
        """The arrays of the batch at hand that are over."""
        for key in cluster.started:
            self._list(cluster.jobs.rows[key])

    def committed(self, committed: Committed) -> None:
        """Count a committed batch."""
        self.commits.add(committed.took)
        finished = {job.key: job for job in committed.finished}
        self._over = {array.job: array for array in committed.arrays}
        for event in committed.events:
            self.events[type(event).__name__] += 1
            act = self._act.get(type(event))
            if act is not None:
                act(event, finished)
        for job in committed.finished:
            self._job_finished(job)

    def planned(self, plan: Plan) -> None:
        """Count a scheduling cycle."""
        if plan.took:
            self.cycles.add(plan.took)

    def _labels(self, spec: int) -> Labels:
        return labels_of(self._cluster.specs.rows.get(spec))

    def _labels_of_job(self, key: int, finished: dict[int, Job]) -> Labels:
        job = self._job(key, finished)
        return labels_of(None) if job is None else self._labels(job.spec)

    def _job(self, key: int, finished: dict[int, Job]) -> Job | None:
        return self._cluster.jobs.rows.get(key) or finished.get(key)

    def _job_submitted(self, event: ev.JobSubmitted, _: dict[int, Job]) -> None:
        self.submitted[self._labels(event.spec)] += 1 if event.indices is None else len(event.indices)

    def _elements_killed(self, event: ev.ElementsKilled, _: dict[int, Job]) -> None:
        array = self._cluster.arrays.rows.get(event.key) or self._over.get(event.key)
        labels = self._labels(array.spec) if array is not None else labels_of(None)
        self.ended[(*labels, event.state.name)] += len(event.elements)

    def _job_dispatched(self, event: ev.JobDispatched, finished: dict[int, Job]) -> None:
        job = self._job(event.key, finished)
        if job is None:
            return
        labels = self._labels(job.spec)
        self.dispatched[labels] += 1
        if event.attempt == 1:
            self.waited[labels].add(max(0.0, event.at - job.submitted))
        self._list(job)

    def _part_refused(self, event: ev.PartRefused, _: dict[int, Job]) -> None:
        self.refusals[(event.host, event.code)] += 1

    def _task_retried(self, event: ev.TaskRetried, finished: dict[int, Job]) -> None:
        self.retried[self._labels_of_job(event.key, finished)] += 1

    def _tasks_returned(self, event: ev.TasksReturned, finished: dict[int, Job]) -> None:
        self.retried[self._labels_of_job(event.key, finished)] += len(event.ranks)

    def _checkpoint_made(self, event: ev.CheckpointMade, finished: dict[int, Job]) -> None:
        self.checkpoints[(*self._labels_of_job(event.key, finished), "made")] += 1

    def _checkpoint_failed(self, event: ev.CheckpointFailed, finished: dict[int, Job]) -> None:
        self.checkpoints[(*self._labels_of_job(event.key, finished), "failed")] += 1

    def _list(self, job: Job) -> None:
        if job.run is not None and job.outcome is None and len(self.ranks) < LISTED:
            slots = sum(map(slots_in, job.run.parts))
            if slots > 1:
                self.ranks[job.key] = (self._labels(job.spec), slots)

    def _resized(self, event: ev.JobGrew | ev.JobShrank | ev.JobResized | ev.PartLeft, finished: dict[int, Job]) -> None:
        self.ranks.pop(event.key, None)
        if (job := self._job(event.key, finished)) is not None:
            self._list(job)

    def _gang_released(self, event: ev.GangReleased, finished: dict[int, Job]) -> None:
        job = self._job(event.key, finished)
        if job is not None and job.run is not None and job.run.number == event.attempt:
            self.prepared[self._labels(job.spec)].add(max(0.0, event.at - job.run.dispatched))

    def _part_started(self, event: ev.PartStarted, finished: dict[int, Job]) -> None:
        job = self._job(event.key, finished)
        if job is not None and job.run is not None and job.run.parts[0].host == event.host:
            self._has_started(job)

    def _has_started(self, job: Job) -> None:
        run = job.run
        if run is not None and run.started and job.key not in self._started and not run.chunk:  # most of which wait
            self._started.add(job.key)
            self.launched[self._labels(job.spec)].add(max(0.0, run.started - run.dispatched))

    def _job_requeued(self, event: ev.JobRequeued | ev.JobRevived, finished: dict[int, Job]) -> None:
        job = self._job(event.key, finished)
        if job is not None:
            self.restarted[self._labels(job.spec)] += 1
        self._forget(event.key)

    def _ranks_suspected(self, event: ev.RanksSuspected, finished: dict[int, Job]) -> None:
        job = self._job(event.key, finished)
        if job is not None and event.suspects:
            self.hung[self._labels(job.spec)] += 1

    def _job_finished(self, job: Job) -> None:
        self._has_started(job)
        self._forget(job.key)
        self.ended[(*self._labels(job.spec), "DONE" if job.state is JobState.DONE else "EXIT")] += 1

    def _forget(self, key: int) -> None:
        self.ranks.pop(key, None)
        self._started.discard(key)

    # -- called from another thread: data is copied in one step before it is read ----------------------------

    def families(self) -> Iterator[Metric]:
        """What the page shows."""
        yield _counts("lava_jobs_submitted", "Jobs and elements accepted", _JOB, self.submitted)
        yield _counts("lava_jobs_ended", "Jobs and elements that ended", (*_JOB, "state"), self.ended)
        yield _counts("lava_jobs_restarted", "Attempts that were over and whose job waited again", _JOB, self.restarted)
        yield _counts("lava_tasks_restarted", "Tasks of jobs with roles that were started again", _JOB, self.retried)
        yield _counts("lava_checkpoints", "Checkpoints of jobs", (*_JOB, "result"), self.checkpoints)
        yield _counts("lava_jobs_dispatched", "Attempts sent to hosts", _JOB, self.dispatched)
        yield _counts("lava_host_refusals", "Jobs that a host refused to start", ("host", "code"), self.refusals)
        yield _counts("lava_hangs", "Times that ranks of a job were named as hanging", _JOB, self.hung)
        yield _spreads("lava_job_wait_seconds", "From submission to the first dispatch", self.waited)
        yield _spreads("lava_gang_prepare_seconds", "From dispatch until all hosts are ready", self.prepared)
        yield _spreads("lava_launch_seconds", "From dispatch to the start of the first process", self.launched)
        cycles = HistogramMetricFamily("lava_cycle_seconds", "The scheduler's cycles that changed something")
        cycles.add_metric([], self.cycles.buckets(), self.cycles.total)
        yield cycles
        commits = HistogramMetricFamily("lava_commit_seconds", "What the store took for a transaction")
        commits.add_metric([], self.commits.buckets(), self.commits.total)
        yield commits
        yield _counts("lava_events", "Events committed", ("event",), {(n,): c for n, c in list(self.events.items())})
        idle = CounterMetricFamily("lava_gpu_held_idle_seconds", "GPU seconds held by jobs that have not started")
        idle.add_metric((), self._idle_gpus())
        yield idle
        yield _counts("lava_reports_set_aside", "Reports of hosts that could not be recorded", (), {(): self._set_aside()})
        yield _counts("lava_commits", "Transactions of the store", (), {(): sum(self.commits.counts)})
        ranks = GaugeMetricFamily("lava_job_ranks", "Slots of parallel jobs that run", labels=("job", *_JOB))
        for key, (labels, count) in list(self.ranks.items()):
            ranks.add_metric((show(key), *labels), count)
        yield ranks
        yield from self._gauges()

    def _gauges(self) -> Iterator[Metric]:
        slots = GaugeMetricFamily("lava_slots", "Slots of jobs by state", labels=("queue", "state"))
        for queue, counts in list(self._cluster.use.queues.items()):
            for state, count in zip(COLUMNS, list(counts), strict=False):
                slots.add_metric((queue, state), count)
        yield slots
        hosts = GaugeMetricFamily("lava_hosts", "Hosts by state", labels=("state",))
        states: dict[str, int] = defaultdict(int)
        for host in list(self._cluster.hosts.rows.values()):
            states[host.state.name.lower()] += 1
        for state, count in states.items():
            hosts.add_metric((state,), count)
        yield hosts
        held, idle = self._gpus_held()
        gpus = GaugeMetricFamily("lava_gpus_held", "GPUs of running jobs by whether they are used", labels=("state",))
        gpus.add_metric(("used",), held - idle)
        gpus.add_metric(("idle",), idle)
        yield gpus
        ends = GaugeMetricFamily("lava_certificate_end_seconds", "When a certificate ends, since the epoch", labels=("name",))
        for name, end in self._certificate_ends().items():
            ends.add_metric((name,), end)
        yield ends


def labels_of(spec: Spec | None) -> Labels:
    """Kind (the framework, of a job with roles that of its roles; ``parallel`` or ``serial``) and queue."""
    if spec is None:
        return ("unknown", "unknown")
    kind = (spec.policy.framework or spec.launch).partition("(")[0]
    return (kind or ("parallel" if spec.slots > 1 else "serial"), spec.queue)


def _counts(name: str, text: str, labels: Iterable[str], counts: dict[Labels, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=tuple(labels))
    for values, count in list(counts.items()):
        family.add_metric(values, count)
    return family


def _spreads(name: str, text: str, spreads: dict[Labels, Spread]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, text, labels=_JOB)
    for values, spread in list(spreads.items()):
        family.add_metric(values, spread.buckets(), spread.total)
    return family


class _Page(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return self._metrics.families()


class Server:
    """Serves the page in a thread of its own; if the port is in use, that is logged and lavad runs without the page."""

    def __init__(self, metrics: Metrics, address: str, tls_folder: str) -> None:
        self._tls_folder = tls_folder
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None
        host, port = split_address(address)
        registry = CollectorRegistry()
        registry.register(_Page(metrics))
        begin = partial(start_http_server, port, host, registry)
        if not is_loopback(host):
            certificate, key, authority = f"{tls_folder}/master.crt", f"{tls_folder}/master.key", f"{tls_folder}/ca.crt"
            begin = partial(begin, certificate, key, authority, client_auth_required=True)
        try:
            self._server, self._thread = begin()
        except OSError as error:
            log.error("LAVA_METRICS_ADDRESS %s: %s", address, error.strerror or error)
        else:
            log.info("metrics at %s:%d", host, port)
            if isinstance(self._server.socket, ssl.SSLSocket):
                self._refuse_revoked(self._server.socket.context)

    def reload(self) -> None:
        """Use the certificates that are in the folder now, for connections from now on."""
        if self._server is not None and isinstance(self._server.socket, ssl.SSLSocket):
            context = self._server.socket.context
            try:
                context.load_cert_chain(f"{self._tls_folder}/master.crt", f"{self._tls_folder}/master.key")
                self._refuse_revoked(context)
            except OSError as error:  # they are being replaced once more
                log.error("metrics: the certificates in %s are not taken up: %s", self._tls_folder, error)

    def _refuse_revoked(self, context: ssl.SSLContext) -> None:
        revoked = Path(self._tls_folder, FILE)
        if revoked.exists():
            context.load_verify_locations(cafile=revoked)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(5)
