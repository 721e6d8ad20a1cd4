"""The rows are the fold of the events: after any history a load and a replay give the live cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

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
from tests.support.examples import examples
from tests.support.stores.postgres import new_database
from tests.support.stores.stores import empty
from tests.support.worlds.history import Author, steps

_SETTINGS = settings(max_examples=examples(25), suppress_health_check=list(HealthCheck), database=None)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def one_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("fold")
    url = f"sqlite:///{folder}/lava.db" if request.param == "sqlite" else new_database()
    Store.open(url).close()
    return url


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


class Run:
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


@given(history=steps)
@_SETTINGS
def test_load_and_replay_give_the_live_cluster(one_url: str, history: list[tuple[str, int, int, bool]]) -> None:
    empty(one_url)
    run = Run(one_url)
    try:
        author = Author(run.live)
        for event in author.opening():
            run.apply(event)
        run.commit()
        for verb, a, b, ends_batch in history:
            for event in author.write(verb, a, b):
                run.apply(event)
            if ends_batch and run.batch:
                run.commit()
        if run.batch:
            run.commit()
    finally:
        run.close()


@given(history=steps)
@_SETTINGS
def test_an_undone_batch_leaves_no_trace(history: list[tuple[str, int, int, bool]]) -> None:
    """What ``undo_changes`` brings back is what was there, indexes included."""
    cluster = Cluster()
    author = Author(cluster)
    for event in author.opening():
        apply(cluster, event)
    cluster.forget_changes()
    before = None
    for verb, a, b, ends_batch in history:
        before = before or _tables(cluster)
        for event in author.write(verb, a, b):
            apply(cluster, event)
        if ends_batch and b % 2:
            cluster.undo_changes()
            assert _tables(cluster) == before
            check_invariants(cluster)
        elif ends_batch:
            cluster.forget_changes()
        if ends_batch:
            before = None


def _tables(cluster: Cluster) -> dict[str, object]:
    return {
        "jobs": dict(cluster.jobs.rows),
        "arrays": dict(cluster.arrays.rows),
        "hosts": dict(cluster.hosts.rows),
        "queues": dict(cluster.queues.rows),
    }
