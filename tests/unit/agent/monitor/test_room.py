"""A disk that is full, can have no more files or is read-only makes its host unwell until there is room again."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.monitor.room import Room
from tests.support.disks import small_disk

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")


@pytest.fixture(name="disk")
def _disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "4m,nr_inodes=400") as folder:
        yield folder


def test_a_disk_with_room_is_well_and_so_is_a_folder_that_is_not_there_yet(disk: Path) -> None:
    assert Room([str(disk), str(disk / "later")]).look() == ""


def test_a_full_disk_is_named(disk: Path) -> None:
    with contextlib.suppress(OSError):
        (disk / "filler").write_bytes(b"x" * (8 << 20))
    assert Room(["/", str(disk)]).look() == f"the disk of {disk} is full"


def test_so_is_one_that_can_have_no_more_files(disk: Path) -> None:
    for number in range(350):
        (disk / str(number)).touch()
    assert Room([str(disk)]).look() == f"the disk of {disk} is full: it can have no more files"


def test_so_is_one_that_was_made_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert Room([str(disk)]).look() == f"the disk of {disk} is read-only"
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert Room([str(disk)]).look() == ""
