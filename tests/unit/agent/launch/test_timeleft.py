"""The file that says when a part must end."""

from __future__ import annotations

import time
from pathlib import Path

from agent.launch.timeleft import TimeLeft, path_of


def test_the_file_is_written_when_the_end_changes(tmp_path: Path) -> None:
    files, path = TimeLeft(str(tmp_path)), Path(path_of(str(tmp_path), "u"))
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
    assert list(tmp_path.iterdir()) == []
