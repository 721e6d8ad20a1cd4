"""`lava db` on both databases: a backup while somebody writes, what is found wrong, and a restore into either."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.database.check import check
from lavad.database.held_lease import HOLDER, held_lease
from lavad.database.main import main
from lavad.database.restore import LEAST_MARGIN, Wanted, restore
from lavad.store import schema
from lavad.store.backup import backup, fill
from lavad.store.errors import StoreCorrupt, StoreHeld, StoreRefused
from lavad.store.lease import Lease
from lavad.store.load import load
from lavad.store.writer import Store
from tests.support.stores.postgres import execute, new_database
from tests.support.stores.stores import commit, rows_of, store_url  # noqa: F401
from tests.support.wait import wait_until
from tests.support.worlds.history import VERBS, Author

_VERBS = list(VERBS)
SOME = Wanted()
NOW = 4e9


class Site:
    """A store with a history, as a master of epoch 1 writes it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = Store.open(url)
        epoch = Lease(self.store.engine).acquire("m1", 3600.0)
        assert epoch == 1
        self.cluster = Cluster()
        self.author = Author(self.cluster)
        self.number = 0
        commit(self.store, self.cluster, self.author.opening(epoch=1))
        conf = msgspec.structs.replace(self.cluster.conf, queues=(QueueConfig(name="normal"), QueueConfig(name="night")))
        commit(self.store, self.cluster, [ev.Configured(at=self.author.now, conf=conf)])

    def go_on(self, count: int = 10) -> None:
        for _ in range(count):
            self.number += 1
            verb = random.Random(self.number).choice(_VERBS)
            events = self.author.write(verb, self.number, self.number * 3)
            if events:
                commit(self.store, self.cluster, events)

    def end(self) -> None:
        Lease(self.store.engine).release(1)
        self.store.close()


@pytest.fixture
def site(store_url: str) -> Site:  # noqa: F811
    made = Site(store_url)
    made.go_on(150)
    return made


def test_a_backup_while_a_master_writes_is_of_one_moment(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            site.go_on(5)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for _ in range(5):
            backup(site.url, str(file))
            checked = check(f"sqlite:///{file}")
            assert checked.problems == []
            assert checked.counts["events"] > 100
    finally:
        done.set()
        writing.join()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("backup")] == ["backup"]
    assert check(site.url).problems == []
    backup(site.url, str(file))
    assert rows_of(f"sqlite:///{file}") == rows_of(site.url)
    site.end()


def test_a_backup_that_fails_leaves_the_one_before(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    backup(site.url, str(file))
    whole = file.read_bytes()
    with pytest.raises(StoreRefused):
        backup("postgresql://nobody@127.0.0.1:1/none", str(file))
    with pytest.raises(StoreRefused, match="there is no store"):
        backup(f"sqlite:///{tmp_path}/none.sqlite", str(file))
    assert file.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []
    site.end()


def test_rows_that_are_not_what_the_events_say_are_named(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    job = next(key for key in site.cluster.jobs.rows if not key >> 32)
    with site.store.engine.begin() as connection:
        rows = schema.jobs.c
        last = connection.execute(sa.select(rows.id).order_by(rows.id)).scalars().first()
        connection.execute(sa.delete(schema.jobs).where(rows.id == last))
        connection.execute(sa.delete(schema.live_jobs).where(schema.live_jobs.c.id == job << 32))
    (finished, live) = check(site.url).problems
    assert finished.startswith("finished jobs are not what the events say: ")
    assert "(no row)" in finished
    assert live == f"live records are not what the events say: jobs {job}"
    assert main(["check", "--database", site.url]) == 1
    assert "2 problems" in capsys.readouterr().out
    site.end()


def test_a_host_with_fewer_slots_than_are_in_use_is_nothing_wrong(site: Site) -> None:
    cluster = site.cluster
    host = max(cluster.use.hosts, key=lambda name: cluster.use.hosts[name].slots)
    assert cluster.use.hosts[host].slots > 0
    conf = msgspec.structs.replace(cluster.conf, hosts=tuple(HostConfig(name=name, slots=0) for name in cluster.hosts.rows))
    commit(site.store, cluster, [ev.Configured(at=site.author.now, conf=conf)])
    assert check(site.url).problems == []
    site.end()


def test_a_damaged_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Site(f"sqlite:///{tmp_path}/lava.db")
    made.go_on(150)
    made.end()
    with contextlib.closing(sqlite3.connect(tmp_path / "lava.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray((tmp_path / "lava.db").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 8192] = os.urandom(8192)
    (tmp_path / "lava.db").write_bytes(data)
    assert main(["check", "--database", made.url]) == 1
    with pytest.raises(StoreCorrupt):
        backup(made.url, str(tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()
    capsys.readouterr()


@pytest.mark.parametrize("into", ["sqlite", "postgres"])
def test_a_restore_is_a_new_incarnation_with_the_same_jobs(site: Site, tmp_path: Path, into: str) -> None:
    file, target = str(tmp_path / "backup"), f"sqlite:///{tmp_path}/new/lava.db" if into == "sqlite" else new_database()
    (tmp_path / "new").mkdir()
    backup(site.url, file)
    site.end()
    restored = restore(file, target, SOME, NOW)
    assert check(target).problems == []
    before, after = site.cluster, load(store := Store.open(target))
    assert after.jobs.rows == before.jobs.rows
    assert after.arrays.rows == before.arrays.rows
    assert after.incarnation != before.incarnation
    assert list(after.former) == [before.incarnation]
    assert after.next_job == restored.next_job >= before.next_job + LEAST_MARGIN
    assert restored.queues
    assert {after.queue_state(name).active for name in restored.queues} == {False}
    old, new = rows_of(f"sqlite:///{file}"), rows_of(target)
    assert new["events"][: len(old["events"])] == old["events"]
    for table in ("jobs", "arrays", "specs", "texts", "blobs", "answers", "charges"):
        assert new[table] == old[table]
    assert Lease(store.engine).acquire("m2", 5.0) is not None
    store.close()


def test_a_store_that_is_there_is_replaced_only_when_asked(site: Site, tmp_path: Path) -> None:
    file = str(tmp_path / "backup")
    backup(site.url, file)
    site.go_on(60)
    went_on = site.cluster.next_job
    with pytest.raises(StoreHeld):
        restore(file, site.url, Wanted(replace=True), NOW)
    site.end()
    with pytest.raises(StoreRefused, match="--replace"):
        restore(file, site.url, SOME, NOW)
    restored = restore(file, site.url, Wanted(replace=True, hold=False), NOW)
    assert restored.queues == ()
    assert restored.next_job >= went_on
    if restored.kept:
        assert check(f"sqlite:///{restored.kept}").counts["events"] > check(site.url).counts["events"]
    again = restore(file, site.url, Wanted(replace=True, first_job=500_000), NOW)
    assert again.next_job == 500_000
    store = Store.open(site.url)
    assert load(store).former.keys() == {site.cluster.incarnation}
    store.close()


def test_a_store_whose_restore_was_killed_is_no_empty_one(tmp_path: Path) -> None:
    """A master that began a history there would have agents end all jobs of the site, whose store is another."""
    site, url = Site(f"sqlite:///{tmp_path}/lavad.sqlite"), new_database()
    site.go_on()
    backup(site.url, file := str(tmp_path / "backup"))
    site.end()

    class Killed(BaseException):
        pass

    def tell(what: str, _done: int, _of: int) -> None:
        if what.endswith("of specs"):
            raise Killed

    with pytest.raises(Killed):
        restore(file, url, SOME, NOW, tell)
    store = Store.open(url)
    with pytest.raises(StoreRefused, match=r"^store test_\d+: a restore into it has not ended: run lava db restore again$"):
        load(store)
    restored = restore(file, url, SOME, NOW)
    assert load(store).next_job == restored.next_job
    store.close()


def test_a_restore_that_is_refused_leaves_an_empty_store(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path}/nothing.sqlite").close()
    with pytest.raises(StoreRefused, match="nothing was ever committed"):
        restore(str(tmp_path / "nothing.sqlite"), url := new_database(), SOME, NOW)
    store = Store.open(url)
    assert load(store).next_job == 1
    store.close()


def test_while_a_store_is_filled_the_lease_can_be_renewed(tmp_path: Path) -> None:
    """However long it takes, no master takes the lease meanwhile."""
    site, url = Site(f"sqlite:///{tmp_path}/lavad.sqlite"), new_database()
    site.go_on()
    backup(site.url, file := str(tmp_path / "backup"))
    site.end()
    store = Store.open(url)
    lease = Lease(store.engine)
    epoch = lease.acquire("lava db", 60.0)
    assert epoch is not None
    renewed = []

    def tell(what: str, _done: int, _of: int) -> None:
        if not what.endswith("of lease"):  # the last one: replaced at the very end
            renewed.append(lease.renew(epoch, 60.0))

    fill(url, file, epoch, tell)
    assert len(renewed) > 3
    assert all(renewed)
    assert lease.find_holder() is None
    store.close()


def test_who_works_on_a_store_renews_its_lease(tmp_path: Path) -> None:
    """So that one that is killed keeps masters waiting for seconds only."""
    store = Store.open(new_database())
    lease = Lease(store.engine)
    with held_lease(store, seconds=1.0) as epoch:
        holder, left = lease.find_holder() or ("", 0.0)
        assert holder == HOLDER
        assert 0 < left <= 1.0
        first = _expires(store)
        wait_until(lambda: _expires(store) > first, 10.0, "a renewal")
        assert lease.acquire("host1/1 boot token", 60.0) is None
    assert lease.acquire("host1/1 boot token", 60.0) == epoch + 1
    with pytest.raises(StoreHeld, match=r"the store has a master: host1/1$"), held_lease(store):
        pass
    store.close()


def _expires(store: Store) -> float:
    with store.engine.connect() as connection:
        return float(connection.execute(sa.select(schema.lease.c.expires)).scalar_one())


def test_what_an_older_lava_cannot_back_up_is_told(tmp_path: Path) -> None:
    Store.open(url := new_database()).close()
    execute(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreRefused, match=rf"^store is at version 9999, newer than this lavad \({schema.HEAD}\)$"):
        backup(url, str(tmp_path / "backup"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_backup_is_refused(tmp_path: Path, store_url: str) -> None:  # noqa: F811
    (tmp_path / "text").write_text("hello")
    Store.open(f"sqlite:///{tmp_path}/empty.sqlite").close()
    for name, story in (("text", "not a backup"), ("none", "No such file"), ("empty.sqlite", "nothing was ever committed")):
        with pytest.raises(StoreRefused, match=story):
            restore(str(tmp_path / name), store_url, SOME, NOW)
    assert main(["restore", "--database", store_url, str(tmp_path / "text")]) == 1


def test_an_upgrade_needs_the_lease(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", "--database", site.url]) == 1
    assert "lava db upgrade: " in capsys.readouterr().err
    site.end()
    assert main(["upgrade", "--database", site.url]) == 0
    assert capsys.readouterr().out == f"version {schema.HEAD}\n"


def test_a_store_that_cannot_be_named_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", "--dir", str(tmp_path)]) == 1
    said = "which should hold the URL of the database: No such file or directory"
    assert capsys.readouterr().err == f"lava db check: {tmp_path}/run/database, {said}\n"
