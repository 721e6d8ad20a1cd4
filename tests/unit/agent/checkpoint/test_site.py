"""What the end of a part that makes a checkpoint says."""

from __future__ import annotations

import pytest

from agent.checkpoint.site import outcome
from agent.starter.protocol.reports import End

END = End(status=0, at=0.0, started=0.0, utime=0.0, stime=0.0, maxrss_kb=0, tasks=(), first=None, lease=False)


@pytest.mark.parametrize(
    ("status", "note", "found"),
    [
        (0, "3 4096", (3, 4096, "")),
        (1 << 8, "Traceback\nthe disk is full", (-1, 0, "the disk is full")),
        (1 << 8, "", (-1, 0, "the checkpoint was ended: exit code 1")),
        (0, "", (-1, 0, "the checkpoint was ended: exit code 0")),
        (9, "3 4096", (-1, 0, "the checkpoint was ended: killed by signal 9")),
    ],
)
def test_it_is_whole_only_when_it_says_so_and_ends_well(status: int, note: str, found: tuple[int, int, str]) -> None:
    assert outcome(END._replace(status=status, note=note), "") == found


def test_without_an_end_there_is_the_reason() -> None:
    assert outcome(None, "its shepherd died") == (-1, 0, "its shepherd died")
    assert outcome(None, "", "copy") == (-1, 0, "it is not known how the copy ended")
