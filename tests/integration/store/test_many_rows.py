"""Batches of many rows: what one statement writes of them, and which failure is told where there are several."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.states import JobState
from lavad.store.batch import Batch
from lavad.store.codec import encode
from lavad.store.errors import AnsweredBefore, Fenced, RecordRefused, StoreAway
from lavad.store.lease import Lease
from lavad.store.load import load
from lavad.store.send import driver_of
from lavad.store.statements import TOGETHER
from lavad.store.writer import Store
from tests.support.stores.postgres import execute, new_database
from tests.support.stores.stores import commit, rows_of, store, store_url  # noqa: F401

MANY = 1500
"""More than one statement takes."""
SOME = TOGETHER + 4
"""More than one statement of SQLite takes."""


def submitted(cluster: Cluster, count: int) -> list[ev.Event]:
    """Jobs with names of their own, the first with the spec."""
    first = cluster.next_job
    spec = [] if cluster.spec_numbers else [ev.SpecAdded(at=1.0, spec=1, value=Spec(user="ann", queue="normal"))]
    return [*spec, *(ev.JobSubmitted(at=2.5, key=key, spec=1, name=f"jöb {key}") for key in range(first, first + count))]


def test_many_rows_are_what_single_ones_are(store: Store, store_url: str) -> None:  # noqa: F811
    events = submitted(Cluster(), MANY)
    commit(store, Cluster(), events)
    many = rows_of(store_url)
    alone, url = Cluster(), new_database() if store_url.startswith("postgres") else f"{store_url}.alone"
    other = Store.open(url)
    for event in events[:3]:
        commit(other, alone, [event])
    other.close()
    single = rows_of(url)
    assert len(many["live_jobs"]) == MANY
    assert [many[table][:3] for table in ("events", "specs")] == [single[table][:3] for table in ("events", "specs")]
    assert many["live_jobs"][:2] == single["live_jobs"]
    assert load(store).jobs.rows.keys() == set(range(1, MANY + 1))


def test_what_commits_of_sqlite_need_meanwhile_is_in_memory_and_what_migrations_need_in_files(tmp_path: Path) -> None:
    opened = Store.open(f"sqlite:///{tmp_path}/db")
    look, in_files, in_memory = "PRAGMA temp_store", (0,), (2,)
    assert driver_of(opened.connection()).execute(look).fetchone() == in_files
    commit(opened, Cluster(), submitted(Cluster(), MANY))
    assert driver_of(opened.connection()).execute(look).fetchone() == in_memory
    assert Lease(opened.engine).acquire("m1", 30.0) == 1
    opened.take_over(1)
    assert driver_of(opened.connection()).execute(look).fetchone() == in_files
    opened.close()


def test_a_job_is_among_the_live_ones_or_the_finished_ones(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster, 5))
    waiting = dict(cluster.jobs.rows)
    commit(store, cluster, [ev.JobFinished(at=3.0, key=key, state=JobState.EXIT) for key in range(1, 6)])
    rows = rows_of(store_url)
    assert (len(rows["live_jobs"]), len(rows["jobs"])) == (0, 5)
    commit(store, cluster, [ev.JobRevived(at=4.0, key=key, job=waiting[key]) for key in range(2, 6)])
    rows = rows_of(store_url)
    assert [row[0] for row in rows["live_jobs"]] == [key << 32 for key in range(2, 6)]
    assert [row[0] for row in rows["jobs"]] == [1 << 32]
    assert load(store).jobs.rows == cluster.jobs.rows


def test_rows_are_found_by_an_index_where_the_table_was_small_when_a_statement_was_planned() -> None:
    """PostgreSQL keeps such a plan."""
    store = Store.open(new_database())  # noqa: F811
    try:
        with store.connection().begin():
            text = store.statements.job_gone.many.replace("$1", "ARRAY[1]")
            plan = store.connection().exec_driver_sql(f"EXPLAIN {text}").scalars().all()
        assert any("live_jobs_pkey" in line for line in plan)
    finally:
        store.close()


def test_the_last_of_several_rows_of_a_key_stays(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    texts = [(1, JobText(command=f"sleep {turn}", env="")) for turn in range(SOME)]
    commit(store, cluster, submitted(cluster, SOME), texts=texts, envs=[("same", b"\x80")] * SOME)
    rows = rows_of(store_url)
    assert rows["texts"] == [(1, encode(texts[-1][1]), None)]
    assert rows["blobs"] == [("same", b"\x80")]


def test_numbers_that_the_database_cannot_hold_are_refused(store: Store) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster, 5))
    taken = [(1, number, "x") for number in (*range(1, SOME), 1 << 70)]
    with pytest.raises(RecordRefused):
        commit(store, cluster, submitted(cluster, 5), attached=taken)
    commit(store, cluster, submitted(cluster, 5))
    assert load(store).jobs.rows == cluster.jobs.rows


def test_an_old_master_is_told_so_before_what_the_new_one_wrote(store: Store) -> None:  # noqa: F811
    """Both would write the same events."""
    lease = Lease(store.engine)
    assert lease.acquire("m1", 30.0) == 1
    old = Cluster()
    commit(store, old, [ev.MasterStarted(at=3.0, epoch=1, incarnation="i")])
    new = load(store)
    assert lease.acquire("m1", 30.0) == 2
    commit(store, new, [ev.MasterStarted(at=4.0, epoch=2, incarnation="i"), *submitted(new, 5)])
    with pytest.raises(Fenced, match="epoch is 1, but the lease is at 2"):
        commit(store, old, submitted(old, 5))
    assert load(store).jobs.rows == new.jobs.rows


def test_an_answer_that_is_there_is_told_before_what_else_is_wrong(store: Store) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster, 5), answers=[("u", b"1")])
    with pytest.raises(AnsweredBefore) as told:
        store.commit(Batch(first=1, events=[ev.HostUp(at=3.0, host="h")], answers=[("v", b"2"), ("u", b"2")]))
    assert told.value.answers == {"u": b"1"}


def test_a_connection_that_is_lost_before_the_commit_each_time_is_known() -> None:
    url = new_database()
    opened = Store.open(url)
    cluster = Cluster()
    commit(opened, cluster, submitted(cluster, 5))
    execute(
        url,
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
    )
    execute(url, "CREATE TRIGGER die AFTER INSERT ON live_jobs FOR EACH ROW EXECUTE FUNCTION die()")
    with pytest.raises(StoreAway):
        commit(opened, cluster, submitted(cluster, 5))
    execute(url, "DROP TRIGGER die ON live_jobs")
    commit(opened, cluster, submitted(cluster, 5))
    assert load(opened).jobs.rows == cluster.jobs.rows
    opened.close()
