"""A commit to PostgreSQL is under way while the rest of it is still made: what comes of it where that cannot be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.states import JobState
from lavad.store.errors import RecordRefused
from lavad.store.load import load
from lavad.store.pipeline import Pipeline, Repeatable
from lavad.store.statements import Call
from lavad.store.writer import Store
from tests.support.stores.postgres import new_database
from tests.support.stores.stores import commit, rows_of, store, store_url  # noqa: F401
from tests.support.wait import wait_until

HOLDS = sa.text("SELECT count(*) FROM pg_locks WHERE relation = 'lease'::regclass AND mode = 'RowShareLock' AND granted")


def submitted(cluster: Cluster, count: int) -> list[ev.Event]:
    """Jobs of one spec."""
    first = cluster.next_job
    spec = [] if cluster.spec_numbers else [ev.SpecAdded(at=1.0, spec=1, value=Spec(user="ann", queue="normal"))]
    return [*spec, *(ev.JobSubmitted(at=2.0, key=key, spec=1, name="j") for key in range(first, first + count))]


def test_the_lease_is_held_while_the_rest_is_made() -> None:
    url = new_database()
    opened, other = Store.open(url), sa.create_engine(url)
    made: list[str] = []

    def holds() -> bool:
        with other.connect() as connection:
            return bool(connection.execute(HOLDS).scalar_one())

    def calls() -> Iterator[Call]:
        guard, meta = opened.statements.guard, opened.statements.meta
        yield from guard.calls([(0,)])
        wait_until(holds, 30, "the server to have the first statement")
        made.append("more")
        yield from meta.calls([("a", "b")])

    twice = Repeatable(calls())
    try:
        Pipeline(opened.connection()).commit(twice)
        assert not holds()
        assert ("a", "b") in rows_of(url)["meta"]
        assert [text for text, _ in twice] == [opened.statements.guard.text, opened.statements.meta.text]
        assert made == ["more"]
    finally:
        opened.close()
        other.dispose()


@pytest.mark.parametrize("count", [2, 200])
def test_of_a_batch_whose_last_record_cannot_be_encoded_nothing_is_there(store: Store, store_url: str, count: int) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster, count))
    before = rows_of(store_url)
    with pytest.raises(RecordRefused, match="a record cannot be written"):
        commit(store, cluster, submitted(cluster, count), texts=[(count + 1, JobText(command="\udcff"))])
    assert rows_of(store_url) == before
    commit(store, cluster, submitted(cluster, count))
    assert load(store).jobs.rows == cluster.jobs.rows


def test_jobs_end_whose_spec_the_writer_has_to_look_up(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster, 3))
    store.close()
    again = Store.open(store_url)
    try:
        commit(again, cluster, [ev.JobFinished(at=3.0, key=key, state=JobState.EXIT) for key in (1, 2)])
    finally:
        again.close()
    assert [row[:4] for row in rows_of(store_url)["jobs"]] == [(key << 32, "ann", "normal", "default") for key in (1, 2)]
