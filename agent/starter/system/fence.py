"""A control group around a starter and all that it ever started, where one can be made (any hierarchy will do).

Rule: nothing leaves it by forking, by another session or by an empty environment. So whatever is in the group of a former
starter of the same folder is its, and ends before the new one takes orders, also when its shepherds were killed too.
"""

from __future__ import annotations

import hashlib
import os
import time

from agent.starter.system import cgroup, proctree

PATIENCE = 10.0
_KINDS = ("freezer", "pids", "name=systemd", "cpuacct", "memory")


def enclose(folder: str) -> str:
    """End what is left in the group of the former starter of ``folder`` and put this process into one: its path or ""."""
    note = os.path.join(folder, "group")
    _clear(cgroup.read(note).strip())
    name = "lava-" + hashlib.sha256(folder.encode()).hexdigest()[:16]
    for base in _bases():
        group = os.path.join(base, name)
        try:
            os.makedirs(group, exist_ok=True)
            _write(note, group)
            _write(os.path.join(group, "cgroup.procs"), str(os.getpid()))
        except OSError:
            continue
        _clear(group)
        return group
    return ""


def leave(group: str) -> None:
    """This process ends in good order: nothing is left in its group, which goes."""
    if not group:
        return
    _clear(group)
    try:
        _write(os.path.join(os.path.dirname(group), "cgroup.procs"), str(os.getpid()))
        for path, _, _ in os.walk(group, topdown=False):
            os.rmdir(path)
    except OSError:
        pass


def members(group: str) -> set[int]:
    """The processes in a group and in those below it, this one left out."""
    found: set[int] = set()
    for path, _, _ in os.walk(group):
        found.update(int(pid) for pid in cgroup.read(os.path.join(path, "cgroup.procs")).split())
    return found - {os.getpid(), 0}


def _clear(group: str) -> None:
    if not group or not os.path.basename(group).startswith("lava-"):
        return
    deadline = time.monotonic() + PATIENCE
    while members(group) and time.monotonic() < deadline:
        proctree.kill_all(lambda: members(group))
        time.sleep(0.01)


def _bases() -> list[str]:
    """Where this process's own groups are, the unified hierarchy first."""
    own = cgroup.own_paths()
    unified = [point + own[""].rstrip("/") for point, _ in cgroup.mounts("cgroup2") if "" in own]
    others = [
        point + own[kind].rstrip("/")
        for point, options in cgroup.mounts("cgroup")
        for kind in _KINDS
        if kind in options.split(",") and kind in own
    ]
    return unified + others


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
