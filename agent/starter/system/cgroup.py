"""Limits of parts through cgroups (v2 or v1), where the starter may make some; elsewhere a part runs without.

Rule: best effort; nothing here fails a part. The shepherd is moved into the group, so that all its children are in it. A shepherd
has one group for as long as it lives, with the limit of processes and, of version 2, the rules for device files, which most jobs
on a host with GPUs have; one for other limits is made for the part that has them. A move stops all forks of the machine for a
moment: few parts should need one.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from typing import NamedTuple

from agent.starter.protocol.part import CgroupLimits, DeviceRule
from agent.starter.system import devices

CONTROLLERS = ("memory", "pids", "cpuset")
_LIMITS = {"memory": "memory", "cpuset": "CPUs", "pids": "processes", "devices": "device files"}
_LEAF = "lava-starter"


class Places(NamedTuple):
    """Where groups can be made: folder by controller; ``unified``: they are of version 2."""

    folders: dict[str, str]
    unified: bool

    def says(self) -> str:
        """One line for the log: which limits of jobs are kept by what."""
        kept = [name for controller, name in _LIMITS.items() if controller in self.folders]
        others = [name for controller, name in _LIMITS.items() if controller not in self.folders]
        version = 2 if self.unified else 1
        lines = [f"cgroups (version {version}) keep jobs' limits of {', '.join(kept)}"] if kept else []
        lines += [f"no cgroup keeps jobs' limits of {', '.join(others)}"] if others else []
        return "; ".join(lines)


NOWHERE = Places({}, False)
_BATCH = 32 * 4096
"""Bytes that the kernel takes at a time: so near a limit nothing more may be had."""


class Removals:
    """Groups that are to go. The kernel may find one busy for a moment after the last process in it was reaped."""

    FIRST, LONGEST = 0.02, 60.0
    """Seconds between two tries: twice as many each time."""

    def __init__(self) -> None:
        self._left: list[str] = []
        self._pause = self.FIRST
        self._at = 0.0

    def add(self, folder: str) -> None:
        """Remove a group now, or as soon as that is possible."""
        if not removed(folder):
            self._left.append(folder)
            self._pause = self.FIRST
            self._at = time.monotonic() + self._pause

    def wait_for(self) -> float:
        """Seconds until ``on_time`` has something to do, ``inf``: nothing is left."""
        return max(0.0, self._at - time.monotonic()) if self._left else math.inf

    def on_time(self) -> None:
        """Try once more, when it is time."""
        if self._left and (now := time.monotonic()) >= self._at:
            self._left = [folder for folder in self._left if not removed(folder)]
            self._pause = min(2 * self._pause, self.LONGEST)
            self._at = now + self._pause


class Groups:
    """The groups of one shepherd (its number). ``places``: where they are made; ``removals``: what removes them."""

    __slots__ = ("_home", "_kept", "_part", "_pid", "_pids", "_places", "_program", "_removals", "_there")

    def __init__(self, places: Places, number: int, removals: Removals) -> None:
        self._places = places
        self._removals = removals
        self._pid = 0
        self._pids = 0
        self._part: list[str] = []
        self._kept = False
        """The part is kept on CPUs of its own."""
        self._there = False
        self._program = -1
        base = places.folders.get("pids", "") or (places.folders.get("devices", "") if places.unified else "")
        self._home = _made(base, f"lava-shepherd-{os.getpid()}-{number}") if base else ""

    @property
    def home(self) -> str:
        """The folder of the group that it is in while it lives, "": there is none."""
        return self._home

    def take(self, pid: int, moved: bool = False) -> None:
        """The shepherd is this process. ``moved``: it is in its group.

        One process that moves another makes the kernel wait until none on the machine forks: a hundredth of a second.
        """
        self._pid = pid
        self._there = moved or (bool(self._home) and _write(os.path.join(self._home, "cgroup.procs"), str(pid)))

    def begin(self, uid: str, limits: CgroupLimits) -> None:
        """The limits of the part that the shepherd gets now."""
        if not (limits.memory_bytes or limits.cpuset or limits.devices or self._part) and limits.pids == self._pids:
            return
        for name in self._needed(limits):
            self._limit(name, "lava-" + uid.replace("/", "_"), limits)
        self._limit_processes(limits.pids)
        for folder in self._part:
            _write(os.path.join(folder, "cgroup.procs"), str(self._pid))

    def _needed(self, limits: CgroupLimits) -> list[str]:
        """The controllers by which the part needs a group of its own."""
        asked = {"memory": limits.memory_bytes, "cpuset": limits.cpuset, "devices": limits.devices}
        names = [name for name, limit in asked.items() if limit and name in self._places.folders]
        return [] if self._places.unified and names == ["devices"] and self._rule_home(limits.devices) else names

    def _limit(self, controller: str, group: str, limits: CgroupLimits) -> None:
        """What one controller keeps, in a group that it may share with others."""
        folder = _made(self._places.folders[controller], group)
        if not folder:
            return
        if folder not in self._part:
            self._part.append(folder)
        if controller == "devices":
            _deny(folder, limits.devices, self._places.unified)
            return
        if controller == "cpuset":
            self._kept = True
            _keep_on(folder, limits, self._places.unified)
            return
        for file, value in _memory(limits.memory_bytes, self._places.unified):
            _write(os.path.join(folder, file), value)

    def _limit_processes(self, most: int) -> None:
        if self._places.unified and self._part:
            # of version 2 it is in one group only, the part's, which has all limits then
            _write(os.path.join(self._part[0], "pids.max"), _pids_max(most))
        elif self._home and most != self._pids:
            self._pids = most
            _write(os.path.join(self._home, "pids.max"), _pids_max(most))

    def _rule_home(self, rules: tuple[DeviceRule, ...]) -> bool:
        """The part has these rules where its shepherd is: whether that could be."""
        if not self._there or self._program >= 0:
            return False
        with contextlib.suppress(OSError):
            self._program = devices.attach(self._home, rules)
        return self._program >= 0

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of the part, which had reached its memory limit."""
        for folder in self._part:
            counts = _counts(os.path.join(folder, "memory.events" if self._places.unified else "memory.oom_control"))
            if not counts.get("oom_kill"):
                continue
            if self._places.unified:
                return counts.get("oom", 0) > 0
            # not by the count of failures, which newer kernels leave at 0
            most, limit = (_number(os.path.join(folder, f"memory.{name}_in_bytes")) for name in ("max_usage", "limit"))
            return most + _BATCH >= limit
        return False

    def end(self, alive: bool = True) -> None:
        """The part is gone: remove its groups. ``alive``: its shepherd is not, and leaves them first."""
        if self._program >= 0:
            with contextlib.suppress(OSError):
                devices.detach(self._home, self._program)
            os.close(self._program)
            self._program = -1
        for folder in self._part:
            if alive:
                _write(os.path.join(self._refuge(folder), "cgroup.procs"), str(self._pid))
            self._removals.add(folder)
        self._part.clear()
        if self._kept and alive:
            # what it has bound itself to for its tasks, and back, was within the group
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._pid, os.sched_getaffinity(0))
        self._kept = False

    def forbid_forks(self) -> None:
        """The shepherd is dead: what it has left makes no process more, so that all of it can be found and killed."""
        for folder in (self._home, *self._part):
            if folder:
                stop_forks(folder)

    def discard(self) -> None:
        """The shepherd is dead, and nothing of it is left."""
        self.end(alive=False)
        if self._home:
            self._removals.add(self._home)

    def _refuge(self, folder: str) -> str:
        """Where a shepherd goes that leaves ``folder``."""
        base = os.path.dirname(folder)
        if not self._places.unified:
            return base
        return self._home or os.path.join(base, _LEAF)


def stop_forks(folder: str, allowed: bool = False) -> None:
    """Let no process of a group fork, or (``allowed``) as many as its parents let; nothing where it has no limit of processes."""
    _write(os.path.join(folder, "pids.max"), "max" if allowed else "0")


def _pids_max(processes: int) -> str:
    """The shepherd itself counts too."""
    return str(processes + 1) if processes else "max"


def _memory(most: int, unified: bool) -> list[tuple[str, str]]:
    if unified:
        return [("memory.max", str(most)), ("memory.swap.max", "0")]
    return [("memory.limit_in_bytes", str(most)), ("memory.memsw.limit_in_bytes", str(most))]


def _keep_on(folder: str, limits: CgroupLimits, unified: bool) -> None:
    """The CPUs and NUMA nodes of a group. One of version 1 takes no process before it has both."""
    nodes = ",".join(map(str, limits.nodes))
    if not unified:
        nodes = nodes or read(os.path.join(os.path.dirname(folder), "cpuset.mems")).strip()
    for file, value in (("cpuset.mems", nodes), ("cpuset.cpus", ",".join(map(str, limits.cpuset)))):
        if value:
            _write(os.path.join(folder, file), value)


def _deny(folder: str, rules: tuple[DeviceRule, ...], unified: bool) -> None:
    with contextlib.suppress(OSError):
        if unified:
            os.close(devices.attach(folder, rules))
            return
        fd = os.open(os.path.join(folder, "devices.deny"), os.O_WRONLY | os.O_CLOEXEC)
        try:
            for line in devices.lines(rules):
                os.write(fd, line.encode())
        finally:
            os.close(fd)


def _made(base: str, name: str) -> str:
    """The folder of a group, "" where it cannot be made."""
    folder = os.path.join(base, name)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return ""
    return folder


def removed(folder: str) -> bool:
    """Remove a group: whether it is not there any more."""
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


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


def _counts(path: str) -> dict[str, int]:
    """What a file of names and numbers says, {} where it cannot be read."""
    rows = map(str.split, read(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _number(path: str) -> int:
    """What a file of one number says, 0 where it cannot be read."""
    text = read(path).strip()
    return int(text) if text.isdigit() else 0


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


def find() -> Places:
    """Where this process may make groups with limits; those of version 1 where both are there."""
    own, folders = own_paths(), {}
    for point, options in mounts("cgroup"):
        for name in set(_LIMITS).intersection(options.split(",")):
            folder = point + own.get(name, "/").rstrip("/")
            if os.access(folder, os.W_OK):
                folders[name] = folder
    if folders or "" not in own:
        return Places(folders, False)
    for point, _ in mounts("cgroup2"):
        return unified_at(point + own[""].rstrip("/"))
    return NOWHERE


def unified_at(base: str) -> Places:
    """Groups of version 2 below ``base``, the group of this process: it moves into a leaf below.

    A group that gives controllers to those below it may have no processes itself. That holds for the group around ``base`` as
    well, the service's, which this process has left for ``base`` and which gives it no controllers by itself.
    """
    enable(os.path.dirname(base))
    leaf = _made(base, _LEAF)
    if not leaf or not os.access(base, os.W_OK):
        return NOWHERE
    for pid in read(os.path.join(base, "cgroup.procs")).split():
        _write(os.path.join(leaf, "cgroup.procs"), pid)
    kept = enable(base)
    return Places(dict.fromkeys([*kept, "devices"] if devices.can_attach() else kept, base), True)


def enable(group: str) -> list[str]:
    """Give the controllers that a group of version 2 has to those below it, each by itself, as one may be refused."""
    offered = read(os.path.join(group, "cgroup.controllers")).split()
    control = os.path.join(group, "cgroup.subtree_control")
    return [name for name in CONTROLLERS if name in offered and _write(control, f"+{name}")]
