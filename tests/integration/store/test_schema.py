"""Migrations, URLs, and the private PostgreSQL."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import lavad.store
from lavad.core.job.spec import JobText
from lavad.database.check import check
from lavad.devtools import private_postgres
from lavad.store import schema
from lavad.store.connect import make_engine, parse_url
from lavad.store.errors import Fenced, StoreRefused
from lavad.store.lease import Lease
from lavad.store.read import Reader
from lavad.store.upgrade import find_version, make_newest, make_tables
from lavad.store.writer import Store
from tests.support.stores.postgres import new_database, postgres_url, waiting
from tests.support.stores.stores import store, store_url  # noqa: F401
from tests.support.wait import wait_until


def made(url: str, make: Callable[[sa.Connection], None]) -> dict[str, Any]:
    """What is in a database then, as it describes it itself: columns, keys, indexes and rows of each table."""
    engine = make_engine(url)
    with engine.connect() as connection, connection.begin():
        make(connection)
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
        looks = sa.inspect(connection)
        tables = {}
        for name in looks.get_table_names():
            columns = sorted(str({**column, "type": str(column["type"])}) for column in looks.get_columns(name))
            indexes = [
                {**index, "dialect_options": {key: str(value) for key, value in index.get("dialect_options", {}).items()}}
                for index in looks.get_indexes(name)
            ]
            rows = connection.execute(sa.text(f"SELECT * FROM {name}")).all()
            tables[name] = (columns, looks.get_pk_constraint(name), sorted(map(str, indexes)), rows)
    engine.dispose()
    return tables


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_migrations_make_the_tables(kind: str, tmp_path: Path) -> None:
    """An empty database is given the newest tables at once: they are what the migrations, one after the other, make of it."""
    urls = [f"sqlite:///{tmp_path}/{name}" if kind == "sqlite" else new_database() for name in ("migrated", "newest")]
    migrated = made(urls[0], make_tables)
    assert set(migrated) == {*schema.metadata.tables, "alembic_version"}
    assert made(urls[1], make_newest) == migrated


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(lavad.store.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == schema.HEAD


def test_a_newer_store_is_refused(store: Store, store_url: str) -> None:  # noqa: F811
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    store.close()
    with pytest.raises(StoreRefused, match="version 9999, newer than this lavad"):
        Store.open(store_url)
    with pytest.raises(StoreRefused, match="version 9999"):
        Reader.open(store_url)
    with pytest.raises(StoreRefused, match=r"version 9999, newer than this lavad \(\d{4}\)$"):
        check(store_url)


def test_only_the_holder_of_the_lease_brings_an_older_store_up_to_date(store: Store, store_url: str) -> None:  # noqa: F811
    with store.engine.begin() as connection:
        for index in ("jobs_checkpoints", "jobs_gpus", "texts_env", "specs_current", "specs_retired", "arrays_finished"):
            connection.exec_driver_sql(f"DROP INDEX {index}")
        gpus, checkpoints = "gpu_held gpu_used gpu_idle gpu_energy", "checkpoints checkpoint_cost restarts work_lost"
        for column in ("slot_seconds", *gpus.split(), *checkpoints.split()):
            connection.exec_driver_sql(f"ALTER TABLE jobs DROP COLUMN {column}")
        for name in ("learnt", "tokens", "paces"):
            connection.exec_driver_sql(f"DROP TABLE {name}")
        connection.exec_driver_sql("ALTER TABLE specs DROP COLUMN retired")
        connection.exec_driver_sql("ALTER TABLE texts DROP COLUMN env")
        connection.exec_driver_sql("DROP TABLE live_jobs")
        connection.exec_driver_sql("CREATE INDEX jobs_live ON jobs (id) WHERE finished_at IS NULL")
        columns = ('id, "user", queue, project, name, state, submitted, finished_at, data', "'u', 'q', 'p', 'n', 1, 1.0")
        job = sa.text(f"INSERT INTO jobs ({columns[0]}) VALUES (:id, {columns[1]}, :finished, :data)")
        rows: list[dict[str, object]] = [
            {"id": 7 << 32, "finished": 2.0, "data": b"over"},
            {"id": 8 << 32, "finished": None, "data": b"waits"},
        ]
        connection.execute(job, rows)
        text = msgspec.msgpack.encode(JobText(command="true", env="abc"))
        connection.execute(sa.text("INSERT INTO texts (job, data) VALUES (7, :data)"), {"data": text})
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0007'")
    store.close()
    standby = Store.open(store_url)
    lease = Lease(standby.engine)
    with pytest.raises(Fenced):
        standby.take_over(epoch=7)
    assert _version(standby) == "0007"
    epoch = lease.acquire("m2", 20.0)
    assert epoch is not None
    assert standby.take_over(epoch) == "0007"
    assert _version(standby) == schema.HEAD
    assert standby.take_over(epoch) is None
    with standby.engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT env FROM texts WHERE job = 7").scalar() == "abc"
        assert connection.execute(sa.select(schema.live_jobs)).all() == [(8 << 32, b"waits")]
        assert connection.execute(sa.select(schema.jobs.c.id, schema.jobs.c.data)).all() == [(7 << 32, b"over")]
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
    with standby.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreRefused, match="newer than this lavad"):
        standby.take_over(epoch)
    standby.close()


def test_an_upgrade_that_takes_long_keeps_the_lease() -> None:
    """It is renewed meanwhile: else the master that upgrades lost its office, and a standby began to fight for it."""
    url = new_database()
    store = Store.open(url)  # noqa: F811
    lease = Lease(store.engine)
    assert lease.acquire("m1", 60.0) == 1
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE paces")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0014'")
    upgraded: list[str | None] = []
    upgrading = threading.Thread(target=lambda: upgraded.append(store.take_over(1)))
    with store.engine.connect() as in_the_way:
        in_the_way.exec_driver_sql("LOCK TABLE alembic_version IN SHARE MODE")
        upgrading.start()
        wait_until(lambda: waiting(store.engine), 10.0, "the upgrade to wait")
        assert lease.renew(1, 60.0)
        in_the_way.rollback()
    upgrading.join()
    assert upgraded == ["0014"]
    assert _version(store) == schema.HEAD
    store.close()


def _version(store: Store) -> str | None:  # noqa: F811
    with store.engine.begin() as connection:
        return find_version(connection)


def test_no_store_is_made_where_none_is_wanted(store_url: str) -> None:  # noqa: F811
    with pytest.raises(StoreRefused, match="there is no store"):
        Store.open(store_url, create=False)
    Store.open(store_url).close()
    Store.open(store_url, create=False).close()


def test_sqlite_is_set_to_keep_what_it_commits(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/lava.db")  # noqa: F811
    with store.connection().begin():
        ask = store.connection().exec_driver_sql
        assert ask("PRAGMA journal_mode").scalar() == "wal"
        assert ask("PRAGMA synchronous").scalar() == 2
    store.close()


@pytest.mark.parametrize(
    ("url", "story"),
    [
        ("nonsense", "not a database URL"),
        ("mysql://u:secret@h/d", "only sqlite and postgresql"),
        ("sqlite://", "needs a file"),
        ("sqlite:////no/such/folder/lava.db", "No such file or directory"),
    ],
)
def test_urls_that_are_refused(url: str, story: str) -> None:
    with pytest.raises(StoreRefused, match=story) as refused:
        Store.open(url)
    assert "secret" not in str(refused.value)


def test_postgres_urls_use_psycopg() -> None:
    assert parse_url("postgresql://h/d").drivername == "postgresql+psycopg"
    assert parse_url("postgres://h/d").drivername == "postgresql+psycopg"


def test_a_postgres_that_is_not_there_is_refused_without_its_password() -> None:
    with pytest.raises(StoreRefused, match="sesame") as refused:
        Store.open("postgresql://ann:open@127.0.0.1:1/sesame")
    assert ":open" not in str(refused.value)


def _is_lost(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return True
    return False


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: else it runs as this user, who reaches the programs")
def test_a_private_postgres_runs_though_its_user_cannot_reach_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a checkout below /root. They are copied, and find their libraries where they are then."""
    reachable = private_postgres._reachable
    monkeypatch.setattr(private_postgres, "_reachable", lambda path: path.name != "bin" and reachable(path))
    with tempfile.TemporaryDirectory(prefix="lava-test-private-") as folder:
        Path(folder).chmod(0o711)
        server = Path(folder) / "server"
        try:
            Store.open(private_postgres.start(server)).close()
            (postmaster,) = (server / "data/postmaster.pid").read_text().split("\n", 1)[:1]
            loaded = Path(f"/proc/{postmaster}/maps").read_text()
            assert f"{server}/postgresql/" in loaded
            assert "site-packages" not in loaded
        finally:
            private_postgres.stop(server)


def test_a_private_postgres_starts_stops_and_keeps_its_data() -> None:
    postgres_url()  # the shared server must not be disturbed by another
    with tempfile.TemporaryDirectory(prefix="lava-test-private-") as folder:
        Path(folder).chmod(0o711)
        # too long for a socket's path
        server = Path(folder) / ("d" * 100) / "server"
        server.parent.mkdir(mode=0o755)
        url = private_postgres.start(server)
        try:
            assert private_postgres.start(server) == url
            Store.open(url).close()
            private_postgres.stop(server)
            with pytest.raises(StoreRefused):
                Store.open(url)
            assert private_postgres.start(server) == url
            Store.open(url, create=False).close()
            with psycopg.connect(sa.engine.make_url(url).set(drivername="postgresql").render_as_string(False)) as connection:
                os.kill(connection.info.backend_pid, signal.SIGKILL)
                wait_until(lambda: _is_lost(connection), 30, "the server to begin its recovery")
                assert private_postgres.start(server) == url
            with pytest.raises(StoreRefused, match="password"):
                Store.open(sa.engine.make_url(url).set(password="wrong").render_as_string(hide_password=False))
        finally:
            private_postgres.stop(server)
        private_postgres.stop(server)
