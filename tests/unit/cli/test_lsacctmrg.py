"""lsacctmrg: several task logs become one, in order; what is wrong changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.client import lsf_file
from tests.unit.cli.caller import Caller


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    found = Caller(tmp_path)
    (tmp_path / "one").write_text('"10.1" 1 0 0 300 "c"\n"10.1" 2 0 0 100 "a"')
    (tmp_path / "two").write_text('"10.1" 3 0 0 200 "b"\n\n')
    (tmp_path / "bad").write_text("no log\n")
    (tmp_path / "folder").mkdir()
    return found


def test_lines_come_in_the_order_of_their_ends(caller: Caller) -> None:
    assert caller.run("lsacctmrg", "one", "two", "all") == (0, "", "")
    assert [line[-2:-1] for line in (caller.folder / "all").read_text().splitlines()] == ["a", "b", "c"]
    assert caller.run("lsacctmrg", "one", "two", "all") == (255, "", "all: File exists; -f replaces it\n")
    assert caller.run("lsacctmrg", "-f", "two", "all").status == 0
    assert (caller.folder / "all").read_text() == '"10.1" 3 0 0 200 "b"\n'


@pytest.mark.parametrize(
    ("words", "err"),
    [
        (("bad", "all"), "bad: not a task log of LSF\n"),
        (("nosuch", "all"), "nosuch: No such file or directory\n"),
        (("one", "nosuch/all"), "nosuch/all: No such file or directory\n"),
        (("-f", "one", "folder"), "folder: Is a directory\n"),
    ],
)
def test_what_is_wrong_changes_nothing(caller: Caller, words: tuple[str, ...], err: str) -> None:
    before = sorted(path.name for path in caller.folder.iterdir())
    assert caller.run("lsacctmrg", *words) == (255, "", err)
    assert sorted(path.name for path in caller.folder.iterdir()) == before


def test_a_line_without_an_end_is_refused(caller: Caller) -> None:
    """As by ``bhist -f``; not all of it is read."""
    (caller.folder / "endless").touch()
    os.truncate(caller.folder / "endless", lsf_file.LONGEST + 1)
    assert caller.run("lsacctmrg", "endless", "all") == (255, "", "endless: a line of it is longer than 16 MB\n")
