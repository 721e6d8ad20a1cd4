"""Processes are ended by number and time of start: a number may be another process's by then."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from cli.local.daemons import begun, children, end

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 1000 & wait; done"


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[str]]:
    """A shell that SIGTERM does not end, with a child of its own."""
    with subprocess.Popen(["/bin/sh", "-c", STUBBORN], stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def test_one_that_takes_no_notice_is_killed(stubborn: subprocess.Popen[str]) -> None:
    assert end(begun([stubborn.pid]), 0.1) == set()
    assert stubborn.wait(10) == -signal.SIGKILL


def test_another_process_with_the_number_of_one_that_has_ended_is_left_alone(stubborn: subprocess.Popen[str]) -> None:
    former = {pid: at - 1 for pid, at in begun(children([stubborn.pid])).items()}
    assert stubborn.pid in former
    assert end(former, 0.1) == set()
    assert stubborn.poll() is None


def test_what_has_ended_has_no_time() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert begun([process.pid, 0]) == {}, "it waits to be reaped"
