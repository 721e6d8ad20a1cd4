"""The masters' lease on both databases."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.store import schema
from lavad.store.errors import Fenced, StoreRefused
from lavad.store.lease import Lease
from lavad.store.writer import Store
from tests.support.stores.postgres import execute, new_database, waiting
from tests.support.stores.stores import commit, store, store_url  # noqa: F401
from tests.support.wait import wait_until


@pytest.fixture
def lease(store: Store) -> Lease:  # noqa: F811
    """As several masters share it, on whichever database."""
    shared = Lease(store.engine)
    shared.alone = False
    return shared


def _expire(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(schema.lease.update().values(expires=1.0))


def test_one_master_at_a_time(lease: Lease) -> None:
    assert lease.find_holder() is None
    assert lease.acquire("m1", 60.0) == 1
    assert lease.acquire("m2", 60.0) is None
    held = lease.find_holder()
    assert held is not None
    assert held[0] == "m1"
    assert 50.0 < held[1] <= 60.0


def test_an_expired_lease_goes_to_the_next(lease: Lease, store: Store) -> None:  # noqa: F811
    assert lease.acquire("m1", 60.0) == 1
    _expire(store.engine)
    assert lease.acquire("m2", 60.0) == 2
    assert not lease.renew(1, 60.0)
    assert not lease.release(1)
    assert lease.renew(2, 60.0)


def test_an_expired_lease_that_nobody_took_can_be_renewed(lease: Lease, store: Store) -> None:  # noqa: F811
    lease.acquire("m1", 60.0)
    _expire(store.engine)
    assert lease.renew(1, 60.0)
    assert lease.acquire("m2", 60.0) is None


def test_a_released_lease_is_free(lease: Lease) -> None:
    lease.acquire("m1", 60.0)
    assert lease.release(1)
    assert lease.find_holder() is None
    assert not lease.renew(1, 60.0)
    assert lease.acquire("m2", 60.0) == 2


def test_the_same_master_started_again_gets_a_new_epoch(lease: Lease) -> None:
    assert lease.acquire("m1", 60.0) == 1
    assert lease.acquire("m1", 60.0) == 2


def test_the_lease_of_a_store_for_one_process_waits_for_nobody(tmp_path: Path) -> None:
    """The store is locked by its process: whoever has it open is the only one, whatever the row says."""
    store = Store.open(f"sqlite:///{tmp_path}/lava.db")  # noqa: F811
    lease = Lease(store.engine)
    assert [lease.acquire(name, 60.0) for name in ("m1", "m2")] == [1, 2]
    store.close()


def test_of_many_that_try_at_once_one_wins(lease: Lease) -> None:
    won: list[int | None] = []
    threads = [threading.Thread(target=lambda n=n: won.append(lease.acquire(f"m{n}", 60.0))) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won, key=str) == [1, None, None, None, None]


def test_a_renewal_waits_for_no_commit_and_a_take_over_does() -> None:
    """A commit under way holds the epoch's row: whoever takes over comes after it or makes it fail."""
    url = new_database()
    store = Store.open(url)  # noqa: F811
    lease = Lease(store.engine)
    assert lease.acquire("m1", 60.0) == 1
    taken: list[int | None] = []
    with store.engine.connect() as commit_under_way:
        commit_under_way.exec_driver_sql(store.statements.epoch).scalar()
        assert lease.renew(1, 60.0)
        taking_over = threading.Thread(target=lambda: taken.append(lease.acquire("m1", 60.0)))
        taking_over.start()
        wait_until(lambda: waiting(store.engine), 10.0, "the take-over to wait")
        assert taken == []
        commit_under_way.rollback()
    taking_over.join()
    assert taken == [2]
    with pytest.raises(Fenced):
        commit(store, Cluster(), [ev.MasterStarted(at=1.0, epoch=1, incarnation="i")])
    store.close()


def test_a_frozen_commit_does_not_block_a_standby_for_good() -> None:
    """The database ends a transaction that idles."""
    url = new_database()
    store = Store.open(url)  # noqa: F811
    with store.engine.connect() as connection:
        limits = [
            connection.exec_driver_sql(f"SHOW {name}").scalar()
            for name in ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
        ]
    assert "0" not in limits
    frozen = store.engine.connect()
    frozen.exec_driver_sql("SET idle_in_transaction_session_timeout = '200ms'")
    frozen.commit()
    frozen.exec_driver_sql(store.statements.epoch).scalar()
    assert Lease(store.engine).acquire("m2", 60.0) == 1
    with pytest.raises(sa.exc.DBAPIError, match="idle-in-transaction"):
        frozen.exec_driver_sql("SELECT 1")
    frozen.close()
    store.close()


def test_a_renewal_survives_a_restart_of_the_database() -> None:
    url = new_database()
    store = Store.open(url)  # noqa: F811
    lease = Lease(store.engine)
    assert lease.acquire("m1", 60.0) == 1
    execute(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    assert lease.renew(1, 60.0)
    store.close()


def test_no_lease_without_a_database() -> None:
    url = sa.engine.make_url(new_database()).set(database="nowhere").render_as_string(hide_password=False)
    with pytest.raises(StoreRefused, match="nowhere"):
        Store.open(url)
