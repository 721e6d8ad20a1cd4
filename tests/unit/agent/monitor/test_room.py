"""A disk that is full, can have no more files or is read-only makes its host unwell until there is room again."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.monitor.room import STEADY, Room
from tests.support.disks import small_disk

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")


@pytest.fixture(name="disk")
def _disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "4m,nr_inodes=400") as folder:
        yield folder


@needs_root
def test_a_disk_with_room_is_well_and_so_is_a_folder_that_is_not_there_yet(disk: Path) -> None:
    assert Room([str(disk), str(disk / "later")]).look() == ""


@needs_root
def test_a_full_disk_is_named(disk: Path) -> None:
    with contextlib.suppress(OSError):
        (disk / "filler").write_bytes(b"x" * (8 << 20))
    assert Room(["/", str(disk)]).look() == f"the disk of {disk} is full"


@needs_root
def test_so_is_one_that_can_have_no_more_files(disk: Path) -> None:
    for number in range(350):
        (disk / str(number)).touch()
    assert Room([str(disk)]).look() == f"the disk of {disk} is full: it can have no more files"


@needs_root
def test_so_is_one_that_was_made_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert Room([str(disk)]).look() == f"the disk of {disk} is read-only"
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert Room([str(disk)]).look() == ""


def test_a_file_system_that_does_not_know_its_size_is_well() -> None:
    """As /proc, and many of those that run as a program (FUSE)."""
    assert os.statvfs("/proc").f_blocks == 0
    assert Room(["/proc"]).look() == ""


def test_a_disk_that_is_full_now_and_again_stays_so_until_it_has_had_room_for_a_while() -> None:
    room = Room([])
    room.note("the disk of /x is full")
    for _ in range(STEADY - 1):
        room.note("")
    assert room.why() == "the disk of /x is full"
    room.note("the disk of /x is full")
    for _ in range(STEADY):
        assert room.why() == "the disk of /x is full"
        room.note("")
    assert room.why() == ""
