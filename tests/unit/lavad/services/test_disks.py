"""Disks of the master that are nearly full."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad.services import disks
from lavad.services.disks import Disks, sqlite_folder


def test_a_disk_is_named_once_and_only_where_it_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Disks([str(tmp_path), str(tmp_path / ".."), "", "/no/such/folder"])
    monkeypatch.setattr(disks, "LEAST_BYTES", 0)
    assert watched.notices() == []
    monkeypatch.setattr(disks, "LEAST_BYTES", 1 << 60)
    monkeypatch.setattr(disks, "LEAST_SHARE", 2.0)
    (line,) = watched.notices()
    assert " MB left (" in line


@pytest.mark.parametrize(
    ("url", "folders"),
    [
        ("sqlite:////var/lib/lava/lavad.sqlite", ["/var/lib/lava"]),
        ("postgresql+psycopg://db/lava", []),
        ("sqlite:///a.db", ["."]),
    ],
)
def test_the_folder_of_a_store(url: str, folders: list[str]) -> None:
    assert sqlite_folder(url) == folders
