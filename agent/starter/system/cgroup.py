"""Limits of a part through a cgroup (v2 or v1), where the starter may make one; elsewhere the part runs without.

Rule: best effort; nothing here fails a part. The shepherd is moved into the group, so that all its children are in it.
"""

from __future__ import annotations

import os

from agent.starter.protocol.part import CgroupLimits

_PERIOD_US = 100_000


class _Groups:
    """Where groups can be made: folder by controller, found when the first part needs one."""

    folders: dict[str, str] | None = None
    unified = False


def create(uid: str, limits: CgroupLimits, pid: int) -> list[str]:
    """Make the groups of a part with its limits and move its shepherd (``pid``) into them; returns their folders."""
    folders = _find()
    wanted = [name for name, limit in (("memory", limits.memory_bytes), ("cpu", limits.cpus)) if limit]
    made: list[str] = []
    for name in wanted:
        base = folders.get(name)
        if base is None:
            continue
        folder = os.path.join(base, "lava-" + uid.replace("/", "_"))
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            continue
        if folder not in made:
            made.append(folder)
        for file, value in _settings(name, limits):
            _write(os.path.join(folder, file), value)
    for folder in made:
        _write(os.path.join(folder, "cgroup.procs"), str(pid))
    return made


def remove(folders: list[str], pid: int) -> None:
    """Move the shepherd out (``pid`` 0: it is dead) and remove the groups; empties ``folders``."""
    for folder in folders:
        if pid:
            _write(os.path.join(_home(folder), "cgroup.procs"), str(pid))
        try:
            os.rmdir(folder)
        except OSError:
            continue
    folders.clear()


def _settings(name: str, limits: CgroupLimits) -> list[tuple[str, str]]:
    if name == "memory":
        size = str(limits.memory_bytes)
        if _Groups.unified:
            return [("memory.max", size), ("memory.swap.max", "0")]
        return [("memory.limit_in_bytes", size), ("memory.memsw.limit_in_bytes", size)]
    quota = str(max(1000, int(limits.cpus * _PERIOD_US)))
    if _Groups.unified:
        return [("cpu.max", f"{quota} {_PERIOD_US}")]
    return [("cpu.cfs_period_us", str(_PERIOD_US)), ("cpu.cfs_quota_us", quota)]


def _home(folder: str) -> str:
    base = os.path.dirname(folder)
    leaf = os.path.join(base, "lava-starter")
    return leaf if _Groups.unified and os.path.isdir(leaf) else base


def _write(path: str, value: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, value.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def read(path: str) -> str:
    """A file's text, "" where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except OSError:
        return ""


def _find() -> dict[str, str]:
    if _Groups.folders is None:
        _Groups.folders = _find_v1()
        if not _Groups.folders:
            _Groups.folders = _find_v2()
            _Groups.unified = True
    return _Groups.folders


def mounts(kind: str) -> list[tuple[str, str]]:
    """(mount point, options) of the cgroup file systems of a kind."""
    found: list[tuple[str, str]] = []
    for line in read("/proc/self/mounts").splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[2] == kind:
            found.append((fields[1], fields[3]))
    return found


def own_paths() -> dict[str, str]:
    """This process's group by controller, under "" that of the unified hierarchy (v2)."""
    found: dict[str, str] = {}
    for line in read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            found[name] = path
    return found


def _find_v1() -> dict[str, str]:
    own = own_paths()
    found: dict[str, str] = {}
    for point, options in mounts("cgroup"):
        for name in ("memory", "cpu"):
            if name in options.split(","):
                folder = point + own.get(name, "/").rstrip("/")
                if os.access(folder, os.W_OK):
                    found[name] = folder
    return found


def _find_v2() -> dict[str, str]:
    own = own_paths().get("")
    points = mounts("cgroup2")
    if own is None or not points:
        return {}
    base = points[0][0] + own.rstrip("/")
    offered = read(os.path.join(base, "cgroup.controllers")).split()
    names = [name for name in ("memory", "cpu") if name in offered]
    if not names or not os.access(base, os.W_OK):
        return {}
    # cgroup v2: a group that enables controllers for its children may have no processes itself; move ours into a leaf.
    leaf = os.path.join(base, "lava-starter")
    try:
        os.makedirs(leaf, exist_ok=True)
    except OSError:
        return {}
    for pid in read(os.path.join(base, "cgroup.procs")).split():
        _write(os.path.join(leaf, "cgroup.procs"), pid)
    enabled = _write(os.path.join(base, "cgroup.subtree_control"), " ".join(f"+{name}" for name in names))
    return dict.fromkeys(names, base) if enabled else {}
