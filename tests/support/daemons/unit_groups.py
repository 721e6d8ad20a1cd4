"""Cgroups of version 2 as systemd makes one for a service with Delegate=yes: with controllers, and the starter alone in it.

A test's own group has other processes, and so may give no controllers to groups below it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from pathlib import Path

from agent.starter.system import cgroup

_numbers = itertools.count()


def make_unit_group() -> Path | None:
    """A new group beside this process's own, or higher up; None where version 2 has no controllers or this is not root."""
    points, own = cgroup.mounts("cgroup2"), cgroup.own_paths().get("")
    if os.geteuid() != 0 or not points or own is None:
        return None
    top = Path(points[0][0])
    for above in Path(f"{top}{own}").parents:
        if above.is_relative_to(top) and {"memory", "pids"} <= set(cgroup.read(str(above / "cgroup.subtree_control")).split()):
            group = above / f"lava-test-{os.getpid()}-{next(_numbers)}"
            group.mkdir()
            return group
    return None


def remove_unit_group(group: Path) -> None:
    """It and what a starter left in it, once nothing runs there."""
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def inside(group: Path) -> list[str]:
    """Words in front of a program that is to begin in a group."""
    return ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(group)]


def keeps(log: str, limit: str) -> bool:
    """Whether cgroups keep jobs' limits of memory, CPU time, processes or device files, as the starter's log says."""
    said = re.findall(r"cgroups \(version \d\) keep jobs' limits of ([^;\n]*)", log)
    return bool(said) and limit in said[-1]
