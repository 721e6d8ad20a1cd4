"""A shepherd that its job stops goes on; one that is frozen for good keeps nothing alive."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.daemons.starters import Rig, boottime
from tests.support.processes import is_alive, parent_of

FREEZER = """
import ctypes, os, sys
pid, any_child = int(sys.argv[1]), 0x40000000
assert ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0  # PTRACE_ATTACH
os.waitpid(pid, any_child)
print("frozen", flush=True)
os.waitpid(pid, any_child)  # its end
"""


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A tracer has stopped a process, and nothing but SIGKILL has it go on or end."""
    with subprocess.Popen([sys.executable, "-c", FREEZER, str(pid)], stdout=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == "frozen\n"
        yield
        tracer.kill()


def test_a_job_that_stops_its_shepherd_ends_as_any_other(rig: Rig) -> None:
    assert os.waitstatus_to_exitcode(rig.run("one", "kill -STOP $PPID; kill -STOP $PPID; exit 3")["status"]) == 3
    assert os.waitstatus_to_exitcode(rig.run("next", "exit 4")["status"]) == 4


def test_a_job_that_stops_its_shepherd_all_the_time_is_lost_and_costs_no_other(rig: Rig) -> None:
    rig.order(rig.part("other", "sleep 1000"))
    other = rig.pid_of("other")
    rig.order(rig.part("stops", "while :; do kill -STOP $PPID; done"))
    assert rig.report("stops", "lost")["reason"].endswith("was killed by signal 9")
    assert is_alive(other)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to trace a shepherd")
def test_a_frozen_shepherd_cannot_keep_its_part_from_a_kill(rig: Rig) -> None:
    rig.order(rig.part("esc", "sleep 100"))
    task = rig.pid_of("esc")
    with frozen(parent_of(task)):
        rig.send({"do": "kill", "uids": ["esc"]})
        rig.report("esc", "lost")
        assert not is_alive(task)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to trace a shepherd")
def test_a_frozen_shepherd_cannot_outlive_its_lease(rig: Rig) -> None:
    rig.order(rig.part("st", "sleep 100", deadline=boottime() + 2.0))
    task = rig.pid_of("st")
    with frozen(parent_of(task)):
        assert rig.report("st", "lost")["reason"].endswith("was killed by signal 9, as the lease had passed")
        assert not is_alive(task)
