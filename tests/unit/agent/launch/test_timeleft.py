"""The file that says when a part must end."""

from __future__ import annotations

import time
from pathlib import Path

from agent.launch.hostfiles import HostFiles
from agent.launch.timeleft import TimeLeft, path_of


def test_the_file_is_written_when_the_end_changes(tmp_path: Path) -> None:
    files, path = TimeLeft(HostFiles(str(tmp_path))), Path(path_of(str(tmp_path), "u"))
    boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    files.begin("u", None)
    assert path.read_text() == ""
    assert path.stat().st_mode & 0o777 == 0o644
    files.tell("u", boot + 500)
    assert abs(int(path.read_text()) - time.time() - 500) < 60
    first = path.stat().st_ino
    files.tell("u", boot + 500.5)
    assert path.stat().st_ino == first, "it is written on changes alone"
    files.tell("u", boot + 900)
    assert abs(int(path.read_text()) - time.time() - 900) < 60
    files.tell("u", None)
    assert path.read_text() == ""
    files.over("u")
    files.over("u")
    assert [one.name for one in tmp_path.iterdir()] == ["empty"]


def test_a_part_that_gets_an_end_changes_no_other_file(tmp_path: Path) -> None:
    files = TimeLeft(HostFiles(str(tmp_path)))
    paths = [Path(path_of(str(tmp_path), uid)) for uid in "uvw"]
    paths[2].write_text("left by a part of before\n")
    for uid in "uvw":
        files.begin(uid, None)
    assert [path.read_text() for path in paths] == ["", "", ""]
    files.tell("u", time.clock_gettime(time.CLOCK_BOOTTIME) + 500)
    assert paths[0].read_text() != ""
    assert paths[1].read_text() == ""
    files.begin("x", None)
    assert Path(path_of(str(tmp_path), "x")).read_text() == ""
