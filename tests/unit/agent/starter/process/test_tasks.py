"""How a task is started, and why it is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agent.starter.process import tasks


def test_where_a_command_is_looked_for() -> None:
    assert tasks.candidates("./x", "/a:/b") == (b"./x",)
    assert tasks.candidates("x", "/a::/b") == (b"/a/x", b"./x", b"/b/x")
    assert tasks.candidates("x", None)[0] == b"/bin/x"


@pytest.mark.parametrize("nice", [0, 1])
def test_start_says_why_it_could_not(tmp_path: Path, nice: int) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    try:
        with pytest.raises(tasks.ExecError) as e:
            tasks.start(["x"], (bytes(tmp_path / "x"),), [], (null, null, null), nice=nice)
        assert e.value.errno == errno.ENOENT
    finally:
        os.close(null)
