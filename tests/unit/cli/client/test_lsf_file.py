"""-f FILE: which lines of a file in LSF's form are sent, and how."""

from __future__ import annotations

import base64
import os
import zlib
from pathlib import Path

import pytest

from cli.client import lsf_file
from cli.client.context import Context, Fail

LINES = (
    '"JOB_NEW" "10.1" 1 101 1000 x',
    '"JOB_SWITCH" "10.1" 2 1000 101 "night" 0 "a"',
    '"JOB_NEW" "10.1" 3 102 1000 x',
    '"JOB_MODIFY2" "10.1" 4 "101[3]" 0',
    '"MBD_START" "10.1" 5 "h" "c" 0 0',
    "#80",
    "",
)


@pytest.mark.parametrize(
    ("jobs", "kinds", "sent"),
    [
        ([], "", [0, 1, 2, 3, 4]),
        (["101"], "", [0, 1, 3]),
        (["101[3]"], "", [0, 1, 3]),
        (["0"], "", [0, 1, 2, 3, 4]),
        ([], "MBD_START", [4]),
        (["102"], "JOB_NEW", [2]),
        (["\udcff"], "", []),
        ([], lsf_file.ANY, [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_only_what_is_asked_for_is_sent(tmp_path: Path, jobs: list[str], kinds: str, sent: list[int]) -> None:
    (tmp_path / "log").write_text("\n".join(LINES))
    options: dict[str, str | bool | list[str]] = {"f": "log"}
    lsf_file.send(Context([], str(tmp_path)), options, jobs, kinds)
    text = zlib.decompress(base64.b64decode(str(options["f"]))).decode()
    assert text.splitlines() == [LINES[at] for at in sent if LINES[at]]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Fail, match="nosuch: No such file or directory"):
        lsf_file.send(Context([], str(tmp_path)), {"f": "nosuch"}, [])


@pytest.mark.parametrize(
    ("text", "foreign"), [("root:x:0\nann:x:1\n", True), ('old\n"JOB_NEW" 1\nx\n', False), ("", False), ("#80\n\n", False)]
)
def test_a_file_without_any_record_is_another_than_was_meant(tmp_path: Path, text: str, foreign: bool) -> None:
    """bacct printed sums of nothing, and bhist that no job matches."""
    (tmp_path / "log").write_text(text)
    said = ""
    try:
        lsf_file.send(Context([], str(tmp_path)), {"f": "log"}, [])
    except Fail as fail:
        said = fail.text
    assert said == ("log: no line of it is a record of lsb.events or lsb.acct" if foreign else "")


def test_a_line_without_an_end_is_not_read_for_ever(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    os.truncate(tmp_path / "log", lsf_file.LONGEST + 1)
    with pytest.raises(Fail, match="log: a line of it is longer than 16 MB"):
        lsf_file.send(Context([], str(tmp_path)), {"f": "log"}, [])
