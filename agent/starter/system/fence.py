"""A cgroup around a starter and everything that it started, where one can be made (in any hierarchy).

Rule: no process leaves a cgroup by a fork, setsid or another environment. So whatever is in the cgroup of a former starter
of the same folder was started by it, and is ended before the new starter accepts orders, even if the shepherds are dead.
"""

from __future__ import annotations

import hashlib
import os
import time

from agent.starter.system import cgroup, proctree

PATIENCE = 10.0
_KINDS = ("freezer", "pids", "name=systemd", "cpuacct", "memory")


def enclose(folder: str) -> str:
    """Kill what is left in the cgroup of the former starter of ``folder``, and enter one; its path, "" if none can be made."""
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
    """The starter ends: kill what is left in its cgroup, and remove that."""
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
    """The processes in a cgroup and those below it, without this process."""
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
    """The folders of this process's own cgroups, the unified hierarchy first."""
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
