"""Start times of processes, and who is below whom."""

from __future__ import annotations

import os
import signal

from agent.starter.system import proctree


def test_starttime_and_children() -> None:
    assert proctree.starttime(os.getpid()) > 0
    assert proctree.starttime(2**22 + 1) == 0
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        assert pid in proctree.children(os.getpid())
        assert pid in proctree.below([os.getpid()])
        assert pid in proctree._below_by_scan([os.getpid()])
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
