"""Daemons go before jobs on a busy host, what works beside jobs comes last: the niceness of their session's autogroup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.starter.system.proctree import starttime
from proto.daemon.cpu_precedence import NICENESS, make_nice
from tests.support.autogroups import AUTOGROUP, needs_autogroups, needs_precedence

_SHOWN = """
import os, subprocess
from proto.daemon.cpu_precedence import precede_jobs
print(precede_jobs())
show = "import os; print(os.getpriority(os.PRIO_PROCESS, 0), *open('/proc/self/autogroup').read().split()[-1:])"
print(open("/proc/self/autogroup").read().strip())
for own in (False, True):
    print(subprocess.run([os.sys.executable, "-ISc", show], capture_output=True, text=True, start_new_session=own).stdout.strip())
"""


def _shown(*, leads: bool) -> list[str]:
    words = [sys.executable, "-c", _SHOWN]
    return subprocess.run(words, capture_output=True, text=True, check=True, start_new_session=leads).stdout.splitlines()


@needs_precedence
def test_a_session_goes_before_others_and_those_of_its_children_do_not() -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    said, group, beside, apart = _shown(leads=True)
    assert (said, group.split()[-1]) == ("True", str(NICENESS))
    assert (beside, apart) == (f"{own} {NICENESS}", f"{own} 0")


@needs_autogroups
def test_a_terminal_from_which_a_daemon_is_run_is_left_as_it_is() -> None:
    before = AUTOGROUP.read_text().strip()
    said, now, *_ = _shown(leads=False)
    assert (said, now) == ("False", before)


@needs_autogroups
@pytest.mark.parametrize("leads", [True, False])
def test_what_works_beside_jobs_comes_last_in_a_session_of_its_own(leads: bool) -> None:
    before = AUTOGROUP.read_text()
    words = """
import os
from proto.daemon.cpu_precedence import give_way
print(give_way(), os.getpriority(os.PRIO_PROCESS, 0), open("/proc/self/autogroup").read().split()[-1])
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, start_new_session=leads)
    assert done.stdout == "True 19 19\n"
    assert AUTOGROUP.read_text() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others may change one session in a tenth of a second")
@needs_autogroups
def test_the_session_of_another_process_is_made_nice_and_its_processes_are_left_as_they_are() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as leader:
        before = os.getpriority(os.PRIO_PROCESS, leader.pid)
        group = Path(f"/proc/{leader.pid}/autogroup")
        assert not make_nice(leader.pid, starttime(leader.pid) + 1, 7), "another process of this number"
        assert group.read_text().endswith("nice 0\n")
        assert make_nice(leader.pid, starttime(leader.pid), 7)
        assert group.read_text().endswith("nice 7\n")
        assert os.getpriority(os.PRIO_PROCESS, leader.pid) == before
    assert not make_nice(leader.pid, 1, 7), "it has gone"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as member:
        own = AUTOGROUP.read_text()
        assert not make_nice(member.pid, starttime(member.pid), 7), "the session is another's"
        assert AUTOGROUP.read_text() == own
