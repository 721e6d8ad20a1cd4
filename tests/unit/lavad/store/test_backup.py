"""Where a backup may go."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from lavad.store.backup import backup
from lavad.store.errors import StoreRefused


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
