"""Old history leaves the store in steps, and never what a live job, or a job that is kept, needs; wherever it is interrupted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lavad.core import events as ev
from lavad.core.cluster import cluster as tables
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event
from lavad.core.events.apply import apply
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import JobState
from lavad.replay.history import HistoryError, of_store
from lavad.store import prune, schema
from lavad.store.asked import Find
from lavad.store.batch import batch_of
from lavad.store.errors import Fenced
from lavad.store.load import load
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.examples import examples
from tests.support.stores.folded import image
from tests.support.stores.postgres import new_database
from tests.support.stores.stores import commit, empty, rows_of, store, store_url  # noqa: F401
from tests.support.worlds.history import Author, steps

_SETTINGS = settings(max_examples=examples(20), suppress_health_check=list(HealthCheck), database=None, deadline=None)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def one_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("prune")
    url = f"sqlite:///{folder}/lava.db" if request.param == "sqlite" else new_database()
    Store.open(url).close()
    return url


class Interrupted(Exception):
    """The daemon dies."""


class Pruner:
    """The rounds of ``services.pruning``; dies after ``most`` steps."""

    def __init__(self, opened: Store, url: str, most: int = 1_000_000) -> None:
        self.store = opened
        self.reader = Reader.open(url)
        self.left = most

    def step(self, work: Any) -> Any:
        if not self.left:
            raise Interrupted
        self.left -= 1
        return self.store.change(0, work)

    def retire(self, cluster: Cluster, now: float) -> None:
        after: int | None = 0
        live, upto = set(cluster.specs.rows), cluster.next_spec
        while after is not None:
            after = self.step(partial(prune.retire_specs, live=live, now=now, after=after, upto=upto))

    def prune(self, before: float, kept: frozenset[int] = frozenset()) -> None:
        self.step(partial(prune.note, before=before))
        for drop in (prune.drop_jobs, prune.drop_arrays):
            at: prune.Place | None = prune.START
            while at is not None:
                at = self.step(partial(drop, before=before, kept=kept, after=at)).after
        for drop_some in (partial(prune.drop_site_events, before=before), prune.drop_gone):
            while self.step(drop_some):
                pass
        named = set().union(*self.reader.specs_named(before))
        after: int | None = 0
        while after is not None:
            _, after = self.step(partial(prune.drop_specs, before=before, named=named, after=after))


def check(url: str, cluster: Cluster, before: float, was: dict[str, list[Any]], whole: bool) -> None:
    """What is live and what is kept is as it was; ``whole``: and nothing old is left."""
    opened = Store.open(url)
    assert image(load(opened)) == image(cluster)
    opened.close()
    now: dict[str, list[Any]] = dict(rows_of(url))
    jobs, texts, specs = ({row[0]: row for row in now[name]} for name in ("jobs", "texts", "specs"))
    assert now["live_jobs"] == was["live_jobs"]
    stay = [row for row in was["jobs"] if row[7] >= before]
    assert [jobs[row[0]] for row in stay] == stay
    ids = {row[0] >> 32 for row in (*jobs.values(), *now["live_jobs"])} | {row[0] for row in now["arrays"]}
    kept = {row[0] >> 32 for row in (*stay, *was["live_jobs"])}
    kept |= {row[0] for row in was["arrays"] if row[1] is None or row[1] >= before}
    assert kept <= ids
    left = {(row[0], row[3]) for row in now["events"]}
    assert all((row[0], row[3]) in left for row in was["events"] if row[3] in kept)
    assert {job for job in texts if job in kept} == {row[0] for row in was["texts"] if row[0] in kept}
    reader = Reader.open(url)
    assert {job.spec for job in reader.finished_jobs(Find())} <= set(specs)
    for job in ids:
        named = {event.spec for _, event in reader.events_of(job) if isinstance(event, ev.JobSubmitted | ev.JobModified)}
        assert named <= set(specs)
    assert {row[0] for row in now["blobs"]} == {row[2] for row in now["texts"] if row[2]}
    if whole:
        assert ids == kept
        assert {row[3] for row in now["events"] if row[3] is not None} <= kept
        assert set(texts) <= kept
        site = [row for row in now["events"] if row[3] is None and row[1] < before]
        assert len(site) <= 2, "the configuration, and the newest event of all"
    reader.close()


@given(history=steps, share=st.floats(0, 1), most=st.one_of(st.just(1_000_000), st.integers(0, 40)), few=st.booleans())
@_SETTINGS
def test_what_is_needed_stays_and_what_is_old_goes(
    one_url: str, history: list[tuple[str, int, int, bool]], share: float, most: int, few: bool
) -> None:
    empty(one_url)
    opened, cluster = Store.open(one_url), Cluster()
    author = Author(cluster)
    batch: list[Event] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "KEPT_SPECS", 1)
        if few:
            patch.setattr(prune, "ROWS", 2)
            patch.setattr(prune, "JOBS", 2)
            patch.setattr(prune, "PAGE", 2)
        for event in author.opening():
            apply(cluster, event)
            batch.append(event)
        retiring = Pruner(opened, one_url)
        for verb, a, b, ends_batch in [*history, ("submit", 0, 0, True)]:
            for event in author.write(verb, a, b):
                apply(cluster, event)
                batch.append(event)
            if ends_batch and batch:
                written = batch_of(cluster, batch)
                new = [event.key for event in batch if isinstance(event, ev.JobSubmitted)]
                written.texts = [(job, JobText(command="true", env=f"e{job % 3}")) for job in new]
                written.envs = [(f"e{job % 3}", msgspec.msgpack.encode({"A": "b"})) for job in new]
                opened.commit(written)
                cluster.forget_changes()
                batch = []
                retiring.retire(cluster, author.now)
        before = 1000.0 + share * (author.now - 1000.0)
        was: dict[str, list[Any]] = dict(rows_of(one_url))
        pruner = Pruner(opened, one_url, most)
        try:
            pruner.prune(before)
        except Interrupted:
            opened.close()
            check(one_url, cluster, before, was, whole=False)
            opened = Store.open(one_url)
            Pruner(opened, one_url).prune(before)
        opened.close()
        check(one_url, cluster, before, was, whole=True)
        retiring.reader.close()
        pruner.reader.close()


def finished(cluster: Cluster, at: float, count: int = 1) -> list[Event]:
    """Events of jobs that end at once, each with a spec of its own."""
    found: list[Event] = []
    for number in range(count):
        spec, job = cluster.next_spec + number, cluster.next_job + number
        found.append(ev.SpecAdded(at=at, spec=spec, value=Spec(user="ann", queue="normal", project=f"p{spec}")))
        found.append(ev.JobSubmitted(at=at, key=job, spec=spec, name="a"))
        found.append(ev.JobFinished(at=at, key=job, state=JobState.EXIT))
    return found


def test_a_job_that_a_condition_names_stays(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, finished(cluster, 10.0, 3), texts=[(job, JobText(command="x")) for job in (1, 2, 3)])
    Pruner(store, store_url).prune(100.0, kept=frozenset({2}))
    reader = Reader.open(store_url)
    assert [job_of(job.key) for job in reader.finished_jobs(Find())] == [2]
    assert list(reader.texts([1, 2, 3])) == [2]
    assert list(reader.ended_of([2]).values()) != [None]
    assert reader.kept_since() == 100.0
    assert reader.due([1, 2, 3], 100.0) == {2}
    with pytest.raises(HistoryError, match="no longer has all events from before Jan 01 1970"):
        list(of_store(reader))
    reader.close()


def test_the_oldest_of_too_many_go(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    for at in range(10):
        commit(store, cluster, finished(cluster, 10.0 + at))
    reader = Reader.open(store_url)
    assert [reader.nth_newest(count) for count in (3, 9, 10)] == [16.0, 10.0, 0.0]
    Pruner(store, store_url).prune(reader.nth_newest(3))
    assert len(reader.finished_jobs(Find())) == 4
    reader.close()


def test_a_former_master_removes_nothing(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, finished(cluster, 10.0))
    with store.engine.begin() as connection:
        connection.execute(schema.lease.update().values(epoch=8))
    with pytest.raises(Fenced):
        Pruner(store, store_url).prune(100.0)
    assert len(rows_of(store_url)["jobs"]) == 1


def test_a_file_gives_its_free_pages_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/lava.db"
    opened, cluster = Store.open(url), Cluster()
    for at in range(6):
        commit(opened, cluster, finished(cluster, 10.0 + at), texts=[(cluster.next_job, JobText(command="x" * 2_000_000))])
    pruner = Pruner(opened, url)
    pruner.prune(100.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prune, "FREE_LEAST", 100)
        with opened.engine.begin() as connection:
            connection.execute(sa.delete(schema.texts))
        steps = 0
        while pruner.step(prune.shrink):
            steps += 1
    opened.close()
    assert steps == 3, "each gives back as many pages as it may"
    with closing(sqlite3.connect(tmp_path / "lava.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (tmp_path / "lava.db").stat().st_size < 2_000_000
