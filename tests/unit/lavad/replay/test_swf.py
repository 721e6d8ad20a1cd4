"""Traces as they come: headers, unknown fields, gzip, damage."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lavad.replay.swf import LONGEST, Trace, TraceError, parse, read_trace

HEAD = ["; Version: 2.2", ";  MaxNodes:   64 (two frames)", "; MaxProcs: 128", ";", "", "# another comment"]


def line(number: int, submit: object, run: object, slots: object, asked: object = -1, wanted: object = -1) -> str:
    return f"{number} {submit} -1 {run} {slots} -1 -1 {wanted} {asked} -1 1 7 1 -1 0 -1 -1 -1"


def test_fields() -> None:
    """The size is what was allocated, else what was wanted; without a requested time it is the run time."""
    trace = parse([*HEAD, line(1, 5, 10, 4, 60, 8), line(2, 6, 11, -1, -1, 8), line(3, 7, 0, 1, 0)], "t")
    assert [(job.slots, job.run, job.requested) for job in trace.jobs] == [(4, 10, 60), (8, 11, 11), (1, 0, 0)]
    assert [(job.number, job.line, job.user) for job in trace.jobs] == [(1, 7, 7), (2, 8, 7), (3, 9, 7)]
    assert trace.find_machine() == 128


def test_queue_order_is_submit_time_then_line() -> None:
    """Whatever the jobs' numbers are."""
    trace = parse([line(9, 5, 1, 1), line(1, 5, 1, 1), line(5, 2, 1, 1)], "t")
    assert [job.number for job in trace.jobs] == [5, 9, 1]


def test_unknown_jobs_are_counted() -> None:
    """No run time, no size, no submit time: left out, each with its reason."""
    trace = parse([line(1, 5, -1, 1), line(2, 5, 1, 0), line(3, -1, 1, 1), line(4, 0, 1, 1), line(5, 5, -1, 4)], "t")
    assert [job.number for job in trace.jobs] == [4]
    assert trace.skipped == {"unknown run time": 2, "unknown size": 1, "unknown submit time": 1}


def test_fractions_and_further_fields() -> None:
    """Some traces have seconds with fractions, or fields of their own at the end."""
    trace = parse([line(1, 0.5, 1.25, 2.0) + " 3 4", line(2, "1e2", 1, 1)], "t")
    assert [(job.submit, job.run, job.slots) for job in trace.jobs] == [(0.5, 1.25, 2), (100, 1, 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 2 3", "t:2: 3 fields where a job has 18: '1 2 3'"),
        (line(1, "x", 1, 1), "t:2: 'x' is not a number that can stand here"),
        (line(1, "nan", 1, 1), "t:2: 'nan' is not a number that can stand here"),
        (line(1, 0, "inf", 1), "t:2: 'inf' is not a number that can stand here"),
        (line(1, 0, "9" * 5000, 1), f"t:2: '{'9' * 40}...' is not a number that can stand here"),
        (line(1, 0, 1, 1.5), "t:2: 1.5 is no number of processors"),
    ],
)
def test_a_malformed_line_is_named(text: str, said: str) -> None:
    """File, line and what is wrong with it, in one line."""
    with pytest.raises(TraceError) as failed:
        parse([line(1, 0, 1, 1), text], "t")
    assert str(failed.value) == said


@given(st.lists(st.text(alphabet="0123456789 .-e;#\t:xMaxProcs", max_size=60) | st.text(max_size=20), max_size=5))
@example([line(1, 2, 3, 4)])
@example(["\ufeff; MaxProcs: 99999999999999999999"])
def test_any_text_is_a_trace_or_a_named_fault(lines: list[str]) -> None:
    """Nothing else is ever raised, and what is said is one line."""
    try:
        found: Trace | str = parse(lines, "t")
    except TraceError as error:
        found = str(error)
    if isinstance(found, Trace):
        assert found.find_machine() >= 0
    else:
        assert found.startswith("t:")
        assert "\n" not in found


def test_gzip(tmp_path: Path) -> None:
    """As the archives hold them; a damaged one is named."""
    text = "\n".join([*HEAD, *(line(number, number, 1, 1) for number in range(500))]).encode()
    (tmp_path / "t.swf.gz").write_bytes(gzip.compress(text))
    assert len(read_trace(str(tmp_path / "t.swf.gz")).jobs) == 500
    for damaged in (gzip.compress(text)[:-400], gzip.compress(text)[:60] + b"?" * 60, b"\x1f\x8b"):
        (tmp_path / "bad.gz").write_bytes(damaged)
        with pytest.raises(TraceError, match=r"bad\.gz: "):
            read_trace(str(tmp_path / "bad.gz"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The file and why."""
    with pytest.raises(TraceError, match="nothing: No such file or directory"):
        read_trace(str(tmp_path / "nothing"))
    with pytest.raises(TraceError, match="Is a directory"):
        read_trace(str(tmp_path))


def test_a_line_without_an_end(tmp_path: Path) -> None:
    """It is refused before all of it is read."""
    (tmp_path / "endless").touch()
    os.truncate(tmp_path / "endless", LONGEST + 1)
    with pytest.raises(TraceError, match="endless: a line of it is longer than 1 MB"):
        read_trace(str(tmp_path / "endless"))
