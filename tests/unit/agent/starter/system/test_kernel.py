"""What the kernel says of a child that has ended, before it is reaped."""

from __future__ import annotations

import os

import pytest

from agent.starter.system import kernel


@pytest.mark.parametrize("look", [kernel.look_at_ended_child, kernel._look_by_os])
def test_an_ended_child_is_seen_before_it_is_reaped(look: object) -> None:
    assert callable(look)
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "kill -9 $$"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    seen = look()
    assert seen[:2] == (pid, 9)
    assert os.waitpid(pid, 0) == (pid, 9)
