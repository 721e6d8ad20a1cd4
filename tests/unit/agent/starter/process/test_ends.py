"""End files: what is written over older ends, and what a crash leaves of it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from agent.starter.process import account, ends
from agent.starter.protocol.codec import text
from agent.starter.protocol.reports import End, Ended, write_report


def _end(status: int = 0, cwd: str = "") -> End:
    return account.end_of([], status, 1.0, False, account.Used())._replace(cwd=cwd)


def _write(file: ends.EndFile, uid: str, end: End) -> None:
    ends.encode_end(uid, end).write(file.fd)


def test_ends_are_written_one_after_the_other_and_from_the_beginning_again(tmp_path: Path) -> None:
    path = tmp_path / "1.end"
    file = ends.make(str(path))
    size = path.stat().st_size
    assert ends.read_ends(str(path)) == {}
    first, second, third = _end(1, "/a/longer/folder"), _end(2), _end(3)
    _write(file, "u1", first)
    _write(file, "u2", second)
    assert ends.read_ends(str(path)) == {"u1": first, "u2": second}
    file.rewind()
    _write(file, "u3", third)
    found = ends.read_ends(str(path))
    assert found["u3"] == third
    assert set(found) <= {"u2", "u3"}, "of the first one only the end is left, which is none"
    assert path.stat().st_size == size
    file.close()


def test_an_end_of_which_a_crash_has_left_half_over_an_older_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "1.end"
    file = ends.make(str(path))
    older, newer = _end(0, "/x"), _end(9, "/x")
    _write(file, "u1", older)
    before = path.read_bytes()
    file.rewind()
    _write(file, "u2", newer)
    after = path.read_bytes()
    file.close()
    line = after[: after.index(b"\n")]
    for cut in range(len(line)):
        path.write_bytes(mixed := after[:cut] + before[cut:])
        whole = {"u1": older} if mixed == before else {"u2": newer} if mixed.split(b"\n")[0].rstrip(b"\0") == line else {}
        assert ends.read_ends(str(path)) == whole, cut


def test_ends_of_a_starter_of_before_are_read(tmp_path: Path) -> None:
    path = tmp_path / "1.end"
    path.write_bytes(text(write_report(Ended("u1", _end(5)))) + b"\n" + b'{"is":"ended","uid":"u2","en')
    assert {uid: end.status for uid, end in ends.read_ends(str(path)).items()} == {"u1": 5}


def test_an_end_without_room_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "1.end"
    file = ends.make(str(path))
    _write(file, "u1", _end(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.lseek(file.fd, 0, os.SEEK_CUR) + 100, hard))
    try:
        _write(file, "u2", _end(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    _write(file, "u3", _end(3))
    assert {uid: end.status for uid, end in ends.read_ends(str(path)).items()} == {"u1": 1, "u3": 3}
    file.close()
