"""Daemons go before jobs on a busy host, what works beside jobs comes last: the niceness of their session's autogroup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proto.cpu_precedence import NICENESS

_AUTOGROUP = Path("/proc/self/autogroup")
"""Reads as nothing in a session that nobody has called setsid(2) for since the host started."""
_SHOWN = """
import os, subprocess
from proto.cpu_precedence import precede_jobs
print(precede_jobs())
show = "import os; print(os.getpriority(os.PRIO_PROCESS, 0), *open('/proc/self/autogroup').read().split()[-1:])"
print(open("/proc/self/autogroup").read().strip())
for own in (False, True):
    print(subprocess.run([os.sys.executable, "-ISc", show], capture_output=True, text=True, start_new_session=own).stdout.strip())
"""


def _may_go_before() -> bool:
    """Whether this process has CAP_SYS_NICE (capabilities(7))."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return any(line.startswith("CapEff:") and int(line.split()[1], 16) >> 23 & 1 for line in lines)


def _shown(*, leads: bool) -> list[str]:
    words = [sys.executable, "-c", _SHOWN]
    return subprocess.run(words, capture_output=True, text=True, check=True, start_new_session=leads).stdout.splitlines()


@pytest.mark.skipif(not _may_go_before(), reason="needs the right to go before others, which root has not in each container")
@pytest.mark.skipif(not _AUTOGROUP.exists(), reason="this kernel has no autogroups")
def test_a_session_goes_before_others_and_those_of_its_children_do_not() -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    said, group, beside, apart = _shown(leads=True)
    assert (said, group.split()[-1]) == ("True", str(NICENESS))
    assert (beside, apart) == (f"{own} {NICENESS}", f"{own} 0")


@pytest.mark.skipif(not _AUTOGROUP.exists(), reason="this kernel has no autogroups")
def test_a_terminal_from_which_a_daemon_is_run_is_left_as_it_is() -> None:
    before = _AUTOGROUP.read_text().strip()
    said, now, *_ = _shown(leads=False)
    assert (said, now) == ("False", before)


@pytest.mark.skipif(not _AUTOGROUP.exists(), reason="this kernel has no autogroups")
@pytest.mark.parametrize("leads", [True, False])
def test_what_works_beside_jobs_comes_last_in_a_session_of_its_own(leads: bool) -> None:
    before = _AUTOGROUP.read_text()
    words = """
import os
from proto.cpu_precedence import give_way
print(give_way(), os.getpriority(os.PRIO_PROCESS, 0), open("/proc/self/autogroup").read().split()[-1])
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, start_new_session=leads)
    assert done.stdout == "True 19 19\n"
    assert _AUTOGROUP.read_text() == before
