"""A cluster and its store that take the same batches: after each the rows are the fold of the events."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.events import Event
from lavad.core.events.apply import apply
from lavad.core.job.job import Job
from lavad.store.asked import Find
from lavad.store.batch import batch_of
from lavad.store.load import load
from lavad.store.read import Reader
from lavad.store.rows import killed_jobs
from lavad.store.writer import Store


def image(cluster: Cluster) -> dict[str, object]:
    """What a restart must bring back: everything but specs that no live job has."""
    return {
        "jobs": cluster.jobs.rows,
        "arrays": cluster.arrays.rows,
        "hosts": cluster.hosts.rows,
        "queues": cluster.queues.rows,
        "specs": {number: cluster.specs.rows[number] for number in cluster.spec_jobs},
        "counters": (cluster.version, cluster.epoch, cluster.incarnation, cluster.next_job, cluster.next_spec),
        "conf": (cluster.conf, cluster.queue_conf, cluster.host_conf),
        "pending": {number: set(pending) for number, pending in cluster.pending.items()},
    }


class FoldedStore:
    """A cluster and its store, which take the same batches."""

    def __init__(self, url: str) -> None:
        self.store = Store.open(url)
        self.reader = Reader.open(url)
        self.live = Cluster()
        self.replayed = Cluster()
        self.finished: dict[int, Job] = {}
        self.batch: list[Event] = []

    def apply(self, event: Event) -> None:
        apply(self.live, event)
        self.batch.append(event)

    def commit(self) -> None:
        batch = batch_of(self.live, self.batch)
        self.finished |= self.live.finished
        arrays = {array.job: array for array in (*batch.arrays, *batch.dropped_arrays)}
        self.finished |= {job.key: job for job in killed_jobs(self.batch, arrays)}
        self.store.commit(batch)
        self.live.forget_changes()
        self.batch = []
        self.check()

    def check(self) -> None:
        check_invariants(self.live)
        loaded = load(self.store)
        check_invariants(loaded)
        assert image(loaded) == image(self.live)
        for seq, event in self.reader.events_after(self.replayed.version, 1000):
            apply(self.replayed, event)
            assert self.replayed.version == seq
        self.replayed.forget_changes()
        assert image(self.replayed) == image(self.live)
        check_invariants(self.replayed)
        finished = {job.key: job for job in self.reader.finished_jobs(Find())}
        assert finished == self.finished

    def close(self) -> None:
        self.reader.close()
        self.store.close()
