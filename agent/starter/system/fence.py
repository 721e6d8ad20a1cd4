"""Cgroups around a starter and everything that it started, where some can be made: one in each hierarchy with limits of jobs.

Rule: no process leaves a cgroup by a fork, setsid or another environment. So whatever is in the cgroup of a former starter
of the same folder was started by it, and is ended before the new starter accepts orders, even if the shepherds are dead.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import NamedTuple

from agent.starter.system import cgroup, proctree

PATIENCE = 10.0
MOMENT = 0.5
"""Seconds for what is empty to be removed."""
_LIMITING = ("pids", "memory", "devices")
"""Version 1: hierarchies with limits of jobs; one of the others is entered where none of these can be. In a group of ``cpu`` all
jobs of the host together would get as much time as one other process.
"""
_OTHERS = ("freezer", "name=systemd", "cpuacct")


class Fence(NamedTuple):
    """The groups that a starter is in, one of each hierarchy."""

    groups: list[str]
    again: bool
    """The former starter of the folder was in some: what they held has been ended."""


def enclose(folder: str) -> Fence:
    """Kill what is left in the cgroups of the former starter of ``folder``, and enter such groups."""
    note = os.path.join(folder, "group")
    former = [group for group in cgroup.read(note).split("\n") if group and _clear(group)]
    name = "lava-" + hashlib.sha256(folder.encode()).hexdigest()[:16]
    first, then = ([os.path.join(base, name) for base in _bases(kinds)] for kinds in (_LIMITING, _OTHERS))
    _write(note, "\n".join([*first, *then]))
    entered = [group for group in first if _enter(group)]
    if not entered:
        entered = [group for group in then if _enter(group)]
    _write(note, "\n".join(entered))
    return Fence(entered, bool(former))


def _enter(group: str) -> bool:
    """Make a group and enter it; False where that is not possible."""
    try:
        os.makedirs(group, exist_ok=True)
        _write(os.path.join(group, "cgroup.procs"), str(os.getpid()))
    except OSError:
        cgroup.removed(group)
        return False
    _clear(group)
    return True


def leave(fence: Fence) -> None:
    """The starter ends: kill what is left in its cgroups, and remove them."""
    for group in fence.groups:
        _clear(group)
        try:
            _write(os.path.join(os.path.dirname(group), "cgroup.procs"), str(os.getpid()))
        except OSError:
            continue
        _remove(group)


def members(group: str) -> set[int]:
    """The processes in a cgroup and those below it, without this process."""
    found: set[int] = set()
    for path, _, _ in os.walk(group):
        found.update(map(int, _processes(path)))
    return found - {os.getpid(), 0}


def _clear(group: str) -> bool:
    """Kill what is in a group and remove the empty ones below it; False: there is no such group of a starter."""
    if not os.path.basename(group).startswith("lava-") or not os.path.isdir(group):
        return False
    deadline = time.monotonic() + PATIENCE
    while members(group) and time.monotonic() < deadline:
        cgroup.stop_forks(group)
        proctree.kill_all(lambda: members(group))
        time.sleep(0.01)
    cgroup.stop_forks(group, allowed=True)
    _remove(group, but=group)
    return True


def _remove(group: str, but: str = "") -> None:
    """Remove a group and those below it that hold no process, without one.

    The kernel may find a group busy for a moment after the last process in it was reaped.
    """
    deadline = time.monotonic() + MOMENT
    while True:
        empty = [path for path, _, _ in os.walk(group, topdown=False) if path != but and not _processes(path)]
        busy = [path for path in empty if not cgroup.removed(path)]
        if not busy or time.monotonic() > deadline:
            return
        time.sleep(0.01)


def _processes(group: str) -> list[str]:
    return cgroup.read(os.path.join(group, "cgroup.procs")).split()


def _bases(kinds: tuple[str, ...]) -> list[str]:
    """The folders of this process's own cgroups, the unified hierarchy first."""
    own = cgroup.own_paths()
    unified = [point + own[""].rstrip("/") for point, _ in cgroup.mounts("cgroup2") if "" in own]
    others = [
        point + own[kind].rstrip("/")
        for point, options in cgroup.mounts("cgroup")
        for kind in kinds
        if kind in options.split(",") and kind in own
    ]
    return unified + others


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
