"""RTASK_GONE_ACTION: which end of a task ends its job."""

from __future__ import annotations

import pytest

from cli.terminal.gone import VARIABLE, ends_job, link_of
from cli.terminal.tasklink import TaskLink

DONE, EXIT = "KILLJOB_TASKDONE", "KILLJOB_TASKEXIT"


@pytest.mark.parametrize(
    ("actions", "ends"),
    [
        (DONE, [0]),
        (EXIT, [1, 128, 137]),
        (f"{DONE} {EXIT}", [0, 1, 128, 137]),
        (f"IGNORE_TASKCRASH {EXIT}", [1, 128]),
        ("killjob_taskexit ignore_taskcrash", [1, 128]),
        ("IGNORE_TASKCRASH", []),
        ("", []),
        ("KILLJOB", []),
    ],
)
def test_which_codes_end_the_job(actions: str, ends: list[int]) -> None:
    assert [code for code in (0, 1, 128, 137) if ends_job(actions, code)] == ends


def test_a_job_without_it_has_the_plain_link() -> None:
    assert link_of({}) is link_of({VARIABLE: ""}) is TaskLink
    assert issubclass(link_of({VARIABLE: DONE}), TaskLink)
