"""The connection to PostgreSQL is lost in a commit: what became of it is found out, and it is there once or not at all."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import JobText, Spec
from lavad.store.errors import Fenced, OutcomeUnknown, StoreAway, StoreRefused
from lavad.store.lease import Lease
from lavad.store.load import load
from lavad.store.writer import Store
from tests.support.stores.cut_proxy import CutProxy, When
from tests.support.stores.postgres import execute, new_database
from tests.support.stores.stores import commit, rows_of
from tests.support.wait import wait_until


class Site:
    """A store that is reached through a proxy, by the master of its first epoch."""

    def __init__(self, folder: Path) -> None:
        self.url = new_database()
        real = sa.engine.make_url(self.url)
        self.proxy = CutProxy(folder, f"{real.query['host']}/.s.PGSQL.5432")
        self.store = Store.open(real.set(query={"host": str(folder)}).render_as_string(hide_password=False))
        self.lease = Lease(sa.create_engine(self.url))
        self.cluster = Cluster()
        assert self.take() == 1
        commit(self.store, self.cluster, [ev.MasterStarted(at=1.0, epoch=1, incarnation="i")])
        # every statement is known to the connection from here on
        self.submit()

    def take(self) -> int | None:
        """The lease, by the master of the next epoch."""
        return self.lease.acquire("m", 1000.0)

    def submit(self, uuid: str = "") -> None:
        """Ten jobs."""
        first = self.cluster.next_job
        spec = [] if self.cluster.spec_numbers else [ev.SpecAdded(at=1.0, spec=1, value=Spec(user="ann", queue="normal"))]
        events = [*spec, *(ev.JobSubmitted(at=2.0, key=first + at, spec=1, name="j") for at in range(10))]
        commit(self.store, self.cluster, events, texts=[(first, JobText(command="x"))], answers=[(uuid or f"u{first}", b"1")])

    def jobs(self) -> list[int]:
        """What another reader sees, whose tables fit together."""
        opened = Store.open(self.url)
        loaded = load(opened)
        opened.close()
        assert loaded.version == len(rows_of(self.url)["events"])
        return sorted(loaded.jobs.rows)


@pytest.fixture
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="lava-test-cut-") as folder:
        made = Site(Path(folder))
        yield made
        made.store.close()
        made.proxy.close()


def test_a_commit_whose_connection_is_cut_is_there_once(site: Site) -> None:
    cuts: tuple[When, ...] = ("before", "within", "after", "held")
    for at, when in enumerate(cuts):
        site.proxy.cut(when)
        site.submit()
        assert site.jobs() == list(range(1, 21 + 20 * at)), when
        site.submit()
    before = rows_of(site.url)
    site.proxy.release()
    assert rows_of(site.url) == before


@pytest.mark.parametrize(("when", "there"), [("before", 10), ("after", 20)])
def test_where_another_master_is_there_meanwhile_the_outcome_is_unknown(site: Site, when: When, there: int) -> None:
    site.proxy.cut(when, site.take)
    with pytest.raises(OutcomeUnknown):
        site.submit("mine")
    assert site.jobs() == list(range(1, there + 1))
    assert (site.store.find_answer("mine") is not None) == (there == 20)
    with pytest.raises(Fenced):
        site.submit()


@pytest.mark.parametrize(("when", "there"), [("within", 10), ("after", 20)])
def test_where_the_database_stays_away_the_outcome_is_unknown(site: Site, when: When, there: int) -> None:
    site.store.patience = 0.2
    site.proxy.cut(when, site.proxy.shut)
    with pytest.raises(OutcomeUnknown):
        site.submit()
    assert site.jobs() == list(range(1, there + 1))


def test_a_connection_that_was_lost_before_is_not_in_doubt(site: Site) -> None:
    site.proxy.shut()
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    execute(site.url, f"SELECT pg_terminate_backend(pid) {others}")
    wait_until(lambda: not site.proxy.lines, 30, "the connections to end")
    with pytest.raises(StoreAway):
        site.submit()
    assert site.jobs() == list(range(1, 11))


def test_what_the_database_refuses_at_the_commit_itself_is_not_there(site: Site) -> None:
    execute(
        site.url,
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE serialization_failure; RETURN NULL; END $$",
    )
    execute(
        site.url,
        "CREATE CONSTRAINT TRIGGER no AFTER INSERT ON answers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()",
    )
    with pytest.raises(StoreRefused):
        site.submit()
    assert site.jobs() == list(range(1, 11))
    execute(site.url, "DROP TRIGGER no ON answers")
    site.submit()
    assert site.jobs() == list(range(1, 21))


def test_a_commit_waits_for_a_take_over_and_is_refused_then(site: Site) -> None:
    told: list[BaseException] = []

    def submit() -> None:
        try:
            site.submit()
        except StoreRefused as error:
            told.append(error)

    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    plain = sa.engine.make_url(site.url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as other, other.transaction():
        other.execute("SELECT 1 FROM lease WHERE id = 1 FOR UPDATE")
        committing = threading.Thread(target=submit)
        committing.start()
        wait_until(lambda: other.execute(waits).fetchone() == (1,), 30, "the commit to wait")
        other.execute("UPDATE lease SET epoch = epoch + 1")
    committing.join()
    assert [type(error) for error in told] == [Fenced]
    assert site.jobs() == list(range(1, 11))


def test_commits_go_on_after_other_work_of_the_connection_was_rolled_back(site: Site) -> None:
    def fail(_: sa.Connection) -> None:
        raise ZeroDivisionError

    for number in range(10):
        # psycopg prepares what it is asked often, and forgets all that is prepared after a rollback
        assert site.store.find_answer(str(number)) is None
    with pytest.raises(ZeroDivisionError):
        site.store.change(1, fail)
    site.submit()
    assert site.jobs() == list(range(1, 21))
