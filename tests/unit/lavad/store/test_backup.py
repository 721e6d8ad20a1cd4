"""Where a backup may go, and what is in it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from lavad.store.backup import backup, copy_file, settle
from lavad.store.errors import StoreCorrupt, StoreRefused


@pytest.mark.parametrize("name", ["store", "./store", "link"])
def test_a_backup_does_not_take_the_place_of_its_store(tmp_path: Path, name: str) -> None:
    store = tmp_path / "store"
    with contextlib.closing(sqlite3.connect(store)) as made:
        made.execute("CREATE TABLE t (a)")
    (tmp_path / "link").symlink_to("store")
    before = store.stat().st_ino
    with pytest.raises(StoreRefused, match="this is the store"):
        backup(f"sqlite:///{store}", f"{tmp_path}/{name}")
    assert store.stat().st_ino == before
    assert (tmp_path / "link").is_symlink()
    backup(f"sqlite:///{store}", f"{tmp_path}/other")


def test_a_copy_has_what_was_committed_before_it_and_is_proven_sound(tmp_path: Path) -> None:
    source, target = tmp_path / "lava.db", tmp_path / "copy.db"
    target.touch()
    with contextlib.closing(sqlite3.connect(source, isolation_level=None)) as store:
        store.execute("PRAGMA journal_mode=WAL")
        store.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, data TEXT)")
        store.executemany("INSERT INTO jobs VALUES (?, ?)", [(n, "x" * 500) for n in range(200)])
        store.execute("BEGIN")
        store.execute("INSERT INTO jobs VALUES (999, 'not committed')")
        copy_file(str(source), str(target))
    settle(str(target))
    with contextlib.closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT count(*), max(id) FROM jobs").fetchone() == (200, 199)
    data = bytearray(target.read_bytes())
    data[8192:12288] = bytes(4096)
    target.write_bytes(data)
    with pytest.raises(StoreCorrupt, match="is corrupt"):
        settle(str(target))
