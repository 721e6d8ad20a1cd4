"""The file that says when a part must end."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from agent.launch import timeleft
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


def test_a_disk_without_room_keeps_nothing_else_from_the_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong here would keep the kill sequence of the part from going on, and end the agent. It is written later."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    files, path = TimeLeft(HostFiles(str(tmp_path))), Path(path_of(str(tmp_path), "u"))
    boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    files.begin("u", boot + 500)
    with monkeypatch.context() as patched:
        patched.setattr(timeleft, "replace_file", full)
        files.tell("u", boot + 10)
        files.tell("u", None)
    assert abs(int(path.read_text()) - time.time() - 500) < 60
    files.tell("u", boot + 10)
    assert int(path.read_text()) < time.time() + 60
    files.over("u")
    assert not path.exists()


def test_a_part_that_gets_an_end_changes_no_other_file(tmp_path: Path) -> None:
    files = TimeLeft(HostFiles(str(tmp_path)))
    paths = [Path(path_of(str(tmp_path), uid)) for uid in "uvw"]
    paths[2].write_text("left by an earlier part\n")
    for uid in "uvw":
        files.begin(uid, None)
    assert [path.read_text() for path in paths] == ["", "", ""]
    files.tell("u", time.clock_gettime(time.CLOCK_BOOTTIME) + 500)
    assert paths[0].read_text() != ""
    assert paths[1].read_text() == ""
    files.begin("x", None)
    assert Path(path_of(str(tmp_path), "x")).read_text() == ""


def test_a_file_that_was_empty_all_the_time_is_given_to_the_next_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = HostFiles(str(tmp_path))
    files, soon = TimeLeft(hosts), time.clock_gettime(time.CLOCK_BOOTTIME) + 500
    used = files.begin("u", None)
    told = files.begin("v", None)
    files.tell("v", soon)
    files.over("u")
    files.over("v")
    assert not Path(told).exists(), "what says when another part must end is given to nobody"
    own = files.begin("w", soon)
    assert own == path_of(str(tmp_path), "w")
    assert files.begin("x", None) == used
    assert Path(used).read_text() == ""
    files.tell("x", soon)
    assert Path(used).read_text() != ""
    files.over("x")
    assert not Path(used).exists()
    old = files.begin("y", None)
    files.over("y")
    monkeypatch.setattr(hosts, "period", lambda: 0)
    assert files.begin("z", None) == path_of(str(tmp_path), "z")
    assert not Path(old).exists()


def test_after_a_restart_of_the_agent_a_part_has_the_file_that_it_was_given(tmp_path: Path) -> None:
    before, after = TimeLeft(HostFiles(str(tmp_path))), TimeLeft(HostFiles(str(tmp_path)))
    before.begin("u", None)
    before.over("u")
    path = before.begin("v", None)
    after.adopt({"v": path})
    after.tell("v", time.clock_gettime(time.CLOCK_BOOTTIME) + 500)
    assert Path(path).read_text() != ""
    after.over("v")
    assert not Path(path).exists()


def test_a_part_that_is_over_changes_nothing_of_the_part_that_has_its_file_now(tmp_path: Path) -> None:
    files = TimeLeft(HostFiles(str(tmp_path)))
    files.begin("u", None)
    files.over("u")
    path = Path(files.begin("v", None))
    files.tell("u", time.clock_gettime(time.CLOCK_BOOTTIME) + 500)
    assert path.read_text() == ""
    files.over("u")
    assert path.exists()


def test_a_part_of_an_agent_of_before_has_the_file_of_its_uid(tmp_path: Path) -> None:
    files, path = TimeLeft(HostFiles(str(tmp_path))), Path(path_of(str(tmp_path), "u"))
    path.write_text("")
    files.adopt({"u": ""})
    files.tell("u", time.clock_gettime(time.CLOCK_BOOTTIME) + 500)
    assert path.read_text() != ""
    files.over("u")
    assert not path.exists()


def test_parts_with_the_same_end_have_one_file_until_one_of_them_gets_another(tmp_path: Path) -> None:
    files, soon = TimeLeft(HostFiles(str(tmp_path))), time.clock_gettime(time.CLOCK_BOOTTIME) + 500
    paths = {uid: Path(files.begin(uid, None)) for uid in "uvwxy"}
    for uid in "uvw":
        files.tell(uid, soon)
    said = paths["u"].read_text()
    assert said.strip().isdigit()
    assert {paths[uid].read_text() for uid in "uvw"} <= {said, f"{int(said) + 1}\n", f"{int(said) - 1}\n"}
    assert len({paths[uid].stat().st_ino for uid in "uvw"}) < 3
    files.tell("w", soon + 100)
    assert int(paths["w"].read_text()) > int(said) + 50
    assert int(paths["v"].read_text()) < int(said) + 50
    files.over("w")
    files.tell("x", soon + 100)
    assert int(paths["x"].read_text()) > int(said) + 50, "the file of the part that is over is gone"
    assert paths["y"].read_text() == ""
    assert sorted(one.name for one in tmp_path.iterdir()) == ["empty", "u.end", "v.end", "x.end", "y.end"]
