"""Failing commits: known failures write nothing, a lost connection leaves the outcome open, a damaged store says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.events.apply import apply
from lavad.core.job.job import Array
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Conf
from lavad.store import prune, schema
from lavad.store.asked import Find
from lavad.store.batch import Batch, batch_of
from lavad.store.errors import Fenced, OutcomeUnknown, StoreCorrupt, StoreFull, StoreHeld, StoreRefused
from lavad.store.lease import Lease
from lavad.store.load import load
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.disks import small_disk
from tests.support.stores.postgres import execute, new_database, postgres_url
from tests.support.stores.stores import commit, rows_of, store, store_url  # noqa: F401

SPEC = Spec(user="ann", queue="normal")


def submitted(cluster: Cluster, count: int = 1, name: str = "j") -> list[ev.Event]:
    """Submissions of ``count`` jobs, with the spec where it is new."""
    first = cluster.next_job
    events: list[ev.Event] = []
    if SPEC not in cluster.spec_numbers:
        events.append(ev.SpecAdded(at=1.0, spec=cluster.next_spec, value=SPEC))
    number = cluster.spec_numbers.get(SPEC, cluster.next_spec)
    return [*events, *(ev.JobSubmitted(at=2.0, key=first + i, spec=number, name=name) for i in range(count))]


@pytest.fixture
def cluster(store: Store) -> Cluster:  # noqa: F811
    made = Cluster()
    commit(store, made, submitted(made, 3))
    return made


def test_a_batch_is_there_after_a_restart(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    text = JobText(command="sleep 1", env="abc")
    more = {"texts": [(1, text)], "envs": [("abc", msgspec.msgpack.encode({"A": "b"}))], "answers": [("u-1", b"{}")]}
    commit(store, cluster, submitted(cluster), **more, meta={"note": "x"})
    store.close()
    again = Store.open(store_url)
    loaded = load(again)
    assert loaded.jobs.rows == cluster.jobs.rows
    assert (loaded.version, loaded.next_job, loaded.next_spec) == (2, 2, 2)
    assert again.find_answer("u-1") == b"{}"
    assert again.find_answer("u-2") is None
    assert again.change(0, lambda connection: prune.drop_answers(connection, before=1.0)) == 0
    assert again.change(0, lambda connection: prune.drop_answers(connection, before=1e12)) == 1
    assert again.find_answer("u-1") is None
    again.close()


def test_an_environment_is_stored_once(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    for _ in range(2):
        commit(store, cluster, submitted(cluster), envs=[("abc", b"\x80")])
    assert rows_of(store_url)["blobs"] == [("abc", b"\x80")]


def test_the_same_answer_twice_is_refused_as_a_whole(store: Store, store_url: str, cluster: Cluster) -> None:  # noqa: F811
    commit(store, cluster, submitted(cluster), answers=[("u", b"1")])
    before = rows_of(store_url)
    with pytest.raises(StoreRefused):
        commit(store, cluster, submitted(cluster), answers=[("u", b"2")])
    assert rows_of(store_url) == before
    assert load(store).jobs.rows == cluster.jobs.rows


def test_after_a_refusal_the_next_batch_goes_through(store: Store, cluster: Cluster) -> None:  # noqa: F811
    before = load(store)
    with pytest.raises(StoreRefused):
        # the sequence number is taken
        store.commit(Batch(first=1, events=[ev.HostUp(at=3.0, host="h")]))
    assert load(store).version == before.version
    commit(store, cluster, submitted(cluster))
    assert load(store).version == cluster.version


def test_text_that_no_database_can_hold_is_refused(store: Store, cluster: Cluster) -> None:  # noqa: F811
    with pytest.raises(StoreRefused):
        commit(store, cluster, submitted(cluster, name="\udcff"))
    commit(store, cluster, submitted(cluster))
    assert load(store).jobs.rows == cluster.jobs.rows


def test_an_old_master_is_fenced(store: Store, store_url: str, cluster: Cluster) -> None:  # noqa: F811
    lease = Lease(store.engine)
    epoch = lease.acquire("m1", 30.0)
    commit(store, cluster, [ev.MasterStarted(at=3.0, epoch=epoch or 0, incarnation="i")])
    assert lease.acquire("m1", 30.0) == 2
    before = rows_of(store_url)
    with pytest.raises(Fenced, match="epoch is 1, but the lease is at 2"):
        commit(store, cluster, submitted(cluster))
    assert rows_of(store_url) == before


def test_an_array_leaves_a_last_record_and_rows_of_killed_elements(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    number = cluster.next_spec
    array = ev.JobSubmitted(at=2.0, key=1, spec=number, name="a", indices=Ranges.span(1, 5), spec_text="a[1-5]")
    commit(store, cluster, [ev.SpecAdded(at=1.0, spec=number, value=SPEC), array])
    dispatched = ev.JobDispatched(at=2.5, key=3 << 32 | 1, attempt=1, uid="u", parts=())
    commit(store, cluster, [dispatched, ev.ElementsKilled(at=3.0, key=1, elements=Ranges.parse("1,2,4,5"))])
    commit(store, cluster, [ev.JobFinished(at=4.0, key=3 << 32 | 1, state=JobState.DONE)])
    assert not cluster.arrays.rows
    assert not load(store).arrays.rows
    reader = Reader.open(store_url)
    elements = reader.finished_jobs(Find(keys=(1,)))
    assert [(job.name, job.state, job.since) for job in elements] == [
        ("a[1]", JobState.EXIT, 3.0),
        ("a[2]", JobState.EXIT, 3.0),
        ("a[3]", JobState.DONE, 4.0),
        ("a[4]", JobState.EXIT, 3.0),
        ("a[5]", JobState.EXIT, 3.0),
    ]
    last = reader.finished_array(1)
    assert isinstance(last, Array)
    assert (last.done, last.exited) == (1, 4)
    reader.close()


def test_a_job_id_that_comes_round_again_forgets_the_old_job(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    array = ev.JobSubmitted(at=2.0, key=1, spec=1, name="a", indices=Ranges.span(1, 3), spec_text="a[1-3]")
    commit(store, cluster, [ev.SpecAdded(at=1.0, spec=1, value=SPEC), array], texts=[(1, JobText(command="old"))])
    commit(store, cluster, [ev.ElementsKilled(at=3.0, key=1, elements=Ranges.span(1, 3))])
    store.close()
    again = Store.open(store_url)
    commit(again, cluster, [ev.JobSubmitted(at=4.0, key=1, spec=1, name="new")], texts=[(1, JobText(command="new"))])
    reader = Reader.open(store_url)
    assert reader.finished_jobs(Find(keys=(1,))) == []
    assert reader.finished_array(1) is None
    assert [type(event).__name__ for _, event in reader.events_of(1)] == ["JobSubmitted"]
    assert load(again).jobs.rows == cluster.jobs.rows
    reader.close()
    again.close()


def test_a_lost_connection_before_the_commit_is_known_and_mended() -> None:
    url = new_database()
    store = Store.open(url)  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster))
    _end_connections(url)
    commit(store, cluster, submitted(cluster))
    assert load(store).version == cluster.version
    store.close()


def _end_connections(url: str) -> None:
    execute(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def test_a_connection_lost_in_the_commit_leaves_the_outcome_unknown() -> None:
    url = new_database()
    store = Store.open(url)  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster))
    execute(
        url,
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
    )
    execute(
        url,
        "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON answers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()",
    )
    store.patience = 0.0
    with pytest.raises(OutcomeUnknown):
        commit(store, cluster, submitted(cluster), answers=[("u", b"1")])
    assert store.find_answer("u") is None
    cluster = load(store)
    commit(store, cluster, submitted(cluster))
    assert load(store).version == cluster.version
    store.close()


def test_a_postgres_that_may_lose_commits_is_refused() -> None:
    url = new_database()
    Store.open(url).close()
    name = sa.engine.make_url(url).database
    execute(url, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(StoreRefused, match="synchronous_commit off"):
        Store.open(url)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_postgres_that_does_not_take_every_text_is_refused(encoding: str) -> None:
    """As initdb makes SQL_ASCII where no locale is set."""
    execute(postgres_url(), f"CREATE DATABASE of_{encoding} ENCODING {encoding} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    url = sa.engine.make_url(postgres_url()).set(database=f"of_{encoding}".lower()).render_as_string(hide_password=False)
    with pytest.raises(StoreRefused, match=f"of_{encoding.lower()} has the encoding {encoding}, and lavad needs one of UTF8"):
        Store.open(url)


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/lava.db"
    store = Store.open(url)  # noqa: F811
    with pytest.raises(StoreHeld, match=f"pid {os.getpid()} on"):
        Store.open(url)
    store.close()
    Store.open(url).close()


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "lava.db").write_bytes(b"This is a letter, not a database. " * 200)
    with pytest.raises(StoreCorrupt, match=r"lava\.db"):
        Store.open(f"sqlite:///{tmp_path}/lava.db")


def test_damaged_pages_are_corruption(tmp_path: Path) -> None:
    path = tmp_path / "lava.db"
    store = Store.open(f"sqlite:///{path}")  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster, 2000))
    store.close()
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size // 3)
        file.write(b"\xa5" * (size // 2))
    with pytest.raises(StoreCorrupt):
        load(Store.open(f"sqlite:///{path}"))


def test_a_row_that_does_not_read_is_corruption(store: Store) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster))
    with store.engine.begin() as connection:
        connection.execute(schema.live_jobs.update().values(data=b"\x01"))
    with pytest.raises(StoreCorrupt, match="a row of jobs does not read"):
        load(store)


def test_a_live_job_without_its_spec_is_corruption(store: Store) -> None:  # noqa: F811
    cluster = Cluster()
    commit(store, cluster, submitted(cluster))
    with store.engine.begin() as connection:
        connection.execute(schema.specs.delete())
    with pytest.raises(StoreCorrupt, match="spec 1"):
        load(store)


def _fill(store: Store, cluster: Cluster) -> int:  # noqa: F811
    """Commit until the store is full; how many batches went through."""
    for done in range(10_000):
        events = submitted(cluster, 20)
        texts = [(event.key, JobText(command="x" * 2000)) for event in events if isinstance(event, ev.JobSubmitted)]
        try:
            commit(store, cluster, events, texts=texts)
        except StoreFull:
            return done
    raise AssertionError("the store never got full")


def test_a_full_store_keeps_what_it_has(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/lava.db")  # noqa: F811
    with store.connection().begin():
        store.connection().exec_driver_sql("PRAGMA max_page_count=100")
    cluster = Cluster()
    assert _fill(store, cluster) > 0
    assert load(store).jobs.rows == cluster.jobs.rows
    with store.connection().begin():
        store.connection().exec_driver_sql("PRAGMA max_page_count=10000")
    commit(store, cluster, submitted(cluster))
    assert load(store).jobs.rows == cluster.jobs.rows
    store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk_keeps_what_it_has(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "1m") as folder:
        store = Store.open(f"sqlite:///{folder}/lava.db")
        cluster = Cluster()
        assert _fill(store, cluster) > 0
        assert load(store).jobs.rows == cluster.jobs.rows
        subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True)
        commit(store, cluster, submitted(cluster))
        store.close()
        again = Store.open(f"sqlite:///{folder}/lava.db")
        assert load(again).jobs.rows == cluster.jobs.rows
        again.close()


_CHILD = """
import sys
from lavad.core.cluster.cluster import Cluster
from lavad.core import events as ev
from lavad.core.events.apply import apply
from lavad.store.batch import batch_of
from lavad.store.writer import Store
store, cluster = Store.open(sys.argv[1]), Cluster()
while True:
    event = ev.HostUp(at=1.0, host=f"h{cluster.version % 7}")
    apply(cluster, event)
    store.commit(batch_of(cluster, [event]))
    cluster.forget_changes()
    print(cluster.version, flush=True)
"""


def test_what_a_killed_master_had_committed_is_there(store_url: str) -> None:  # noqa: F811
    child = subprocess.Popen([sys.executable, "-c", _CHILD, store_url], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = [int(child.stdout.readline()) for _ in range(40)]
    child.send_signal(signal.SIGKILL)
    said += [int(line) for line in child.stdout.read().split("\n")[:-1]]
    child.wait()
    child.stdout.close()
    store = Store.open(store_url)  # noqa: F811
    loaded = load(store)
    assert loaded.version >= said[-1]
    replayed = Cluster()
    reader = Reader.open(store_url)
    for _, event in reader.events_after(0, 100_000):
        apply(replayed, event)
    assert (replayed.version, replayed.hosts.rows) == (loaded.version, loaded.hosts.rows)
    reader.close()
    store.close()


def test_the_newest_configuration_is_loaded(store: Store) -> None:  # noqa: F811
    cluster = Cluster()
    for name in ("one", "two"):
        commit(store, cluster, [ev.Configured(at=1.0, conf=Conf(cluster=name))])
    assert load(store).conf == Conf(cluster="two")


def test_batch_of_takes_specs_from_their_events() -> None:
    """A spec may come and go in one batch; its finished jobs still need it."""
    cluster = Cluster()
    events = [*submitted(cluster), ev.JobFinished(at=3.0, key=1, state=JobState.DONE)]
    for event in events:
        apply(cluster, event)
    batch = batch_of(cluster, events)
    assert batch.specs == [(1, SPEC)]
    assert (batch.first, len(batch.finished), batch.jobs) == (1, 1, [])
