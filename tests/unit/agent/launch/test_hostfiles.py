"""Files that say on which hosts a job is."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.launch import hostfiles
from agent.launch.hostfiles import HostFiles


def test_host_files_are_shared_and_have_a_line_a_slot(tmp_path: Path) -> None:
    files = HostFiles(str(tmp_path))
    one = files.of(["a", "a", "b"])
    assert one == files.of(["a", "a", "b"])
    assert Path(one[0]).read_text() == "a\na\nb\n"
    assert Path(one[1]).read_text() == "a\na\na\nb\n"
    assert Path(one[0]).stat().st_mode & 0o777 == 0o644


def test_host_files_go_when_no_part_can_need_them(tmp_path: Path) -> None:
    """Neither one that was just given out nor one of a part that has been here for long; what is gone is written again."""
    now = time.time()
    for name in ("a", "b"):
        files = HostFiles(str(tmp_path))
        found = files.of([name])
    for path in tmp_path.iterdir():
        os.utime(path, (now - 8 * 86400,) * 2)
    assert files.old(now - 2 * 86400) == []
    old = files.old(now)
    assert len(old) == 4
    files.drop(old)
    assert sorted(map(str, tmp_path.iterdir())) == sorted(found)
    again = HostFiles(str(tmp_path)).of(["a"])
    assert Path(again[0]).read_text() == "a\n"
    assert sorted(files.old(now)) == sorted(found)


def test_a_file_that_goes_while_old_ones_are_looked_for_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of parts that end are in the same folder; what is raised here would end the agent."""
    files = HostFiles(str(tmp_path))
    old, gone = tmp_path / "old", tmp_path / "gone"
    old.touch()
    gone.touch()
    for path in (old, gone):
        os.utime(path, (0, 0))

    def listed(folder: str) -> list[os.DirEntry[str]]:
        found = list(os.scandir(folder))
        gone.unlink()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(hostfiles, "os", SimpleNamespace(scandir=listed))
        assert files.old(time.time()) == [str(old)]
    tmp_path.rename(tmp_path.with_name("elsewhere"))
    assert files.old(time.time()) == []
