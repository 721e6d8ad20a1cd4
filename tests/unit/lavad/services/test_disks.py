"""Disks of the master that are nearly full."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from lavad.services import disks
from lavad.services.disks import Disks, sqlite_folder


def test_a_disk_is_named_once_and_only_where_it_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Disks([str(tmp_path), str(tmp_path / ".."), "", "/no/such/folder"])
    monkeypatch.setattr(disks, "LEAST_BYTES", 0)
    assert watched.look() == []
    monkeypatch.setattr(disks, "LEAST_BYTES", 1 << 60)
    monkeypatch.setattr(disks, "LEAST_SHARE", 2.0)
    (line,) = watched.look()
    assert " MB left (" in line


def test_a_disk_that_hangs_holds_up_nothing_and_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "LEAST_BYTES", 1 << 60)
    monkeypatch.setattr(disks, "LEAST_SHARE", 2.0)
    hang = threading.Event()

    async def noticed(watched: Disks, part: str) -> None:
        async with asyncio.timeout(20):
            while part not in " ".join(watched.notices()):  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def story() -> None:
        watched = Disks([str(tmp_path)])
        await noticed(watched, " MB left (")
        assert watched._looking is not None
        await watched._looking
        stuck = watched._thread.begin(hang.wait)
        monkeypatch.setattr(disks, "HANGS", 0.0)
        await noticed(watched, f"the disk of {tmp_path} does not answer: a look at it has not ended for 0 s")
        assert not stuck.done()
        hang.set()
        monkeypatch.setattr(disks, "HANGS", 3600.0)
        await noticed(watched, " MB left (")

    asyncio.run(story())


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
