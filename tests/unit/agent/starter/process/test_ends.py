"""End files: what is written over older ends, and what a crash leaves of it."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

from agent.starter.process import account, ends
from agent.starter.protocol.codec import read, text
from agent.starter.protocol.reports import End, Ended, EndedTask, find_report, write_report
from agent.starter.supervisor.parts import Part


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


TOLD = (
    b'{"is":"ended","uid":"ab01","end":{"status":256,"at":1795000000.123456,"started":1795000000.000000,"utime":0.000512,'
    b'"stime":0.001000,"maxrss_kb":1500,"tasks":[{"rank":-1,"pid":4711,"status":256,"utime":0.000512,"stime":0.001000,'
    b'"maxrss_kb":1500,"at":1795000000.123456}],"first":null,"lease":false,"shepherd_kb":3000,"cwd":"/tmp/a b"},"gone":true}'
)


@pytest.mark.parametrize("ranks", [0, 1, 64])
def test_an_end_that_is_told_to_the_letter_is_read_when_it_is_asked_for(ranks: int) -> None:
    tasks = tuple(
        EndedTask(rank, 100 + rank, 0, round(rank * 0.00001, 6), 0.1, 1500, 1795000000.25 + rank) for rank in range(ranks)
    )
    end = _end(0)._replace(tasks=tasks, cwd="/tmp", at=1795000000.1, started=1795000000.0)
    said = ends.encode_end("ab01", end).report(gone=True) if ranks else TOLD
    told = ends.find_told(said)
    assert told is not None
    part = Part("ab01", 7, 1, 1)
    assert not part.has_ended
    encoded = part.ended(told)
    assert encoded.report(gone=True) == said
    assert part.has_ended
    report = find_report(json.loads(said))
    assert isinstance(report, Ended)
    assert part.end == report.end == read(Ended, json.loads(encoded.text)).end


@pytest.mark.parametrize(
    ("was", "is_"),
    [
        (b'"status":256', b'"status":0256'),
        (b'"status":256', b'"status":-1'),
        (b'"utime":0.000512', b'"utime":0'),
        (b'"utime":0.000512', b'"utime":5e+300'),
        (b"}],", b"},],"),
        (b"}],", b"}{}],"),
        (b'"pid":4711', b'"pid":4.7e9'),
        (b'"at":1795000000.123456}', b'"at":1795000000.123456,"more":1}'),
        (b"/tmp/a b", b'/tmp","x":"'),
        (b"/tmp/a b", b"/tmp\\u0000"),
        (b"/tmp/a b", b"/tmp\n"),
        (b"/tmp/a b", "/\u00e4".encode()),
        (b'"ab01"', b'"ab\\"01"'),
        (b',"gone":true', b""),
        (b'"gone":true}', b'"gone":true} '),
        (b'"first":null', b'"first":{}'),
    ],
)
def test_what_is_told_otherwise_is_read_at_once(was: bytes, is_: bytes) -> None:
    assert was in TOLD
    assert ends.find_told(TOLD.replace(was, is_)) is None


def test_a_file_that_is_larger_than_any_may_be_holds_no_end_and_is_made_anew(tmp_path: Path) -> None:
    """It was written by somebody who is no shepherd; 8 TiB of nothing would be all the memory that there is."""
    path = tmp_path / "1.end"
    file = ends.make(str(path))
    _write(file, "u1", _end(1))
    os.ftruncate(file.fd, 8 << 40)
    file.close()
    assert ends.read_ends(str(path)) == {}
    ends.make(str(path)).close()
    assert path.stat().st_size == ends.ROOM


def test_lines_that_a_user_has_put_into_an_end_file_are_none(tmp_path: Path) -> None:
    """It is open in the shepherd, a process of the user's; the starter reads it once that is gone."""
    deep, large = b"[" * 100_000, b'{"is":"ended","uid":"u1","end":{"status":0,"at":1' + b"0" * 400 + b"}}"
    end = _end(3)
    good = text(write_report(Ended("u2", end)))
    (tmp_path / "1.end").write_bytes(b"\n".join([deep, b'{"uid":' + deep, large, b"\xff\xfe", b"null", good]))
    assert ends.read_ends(str(tmp_path / "1.end")) == {"u2": end}
