"""Finds the descendants of a process, and kills them all.

Rule: stop all that is found and search again until nothing new is found, and only then kill: none can fork away meanwhile.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable

_HAS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
_MAX_LOOKS = 40


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = os.read(fd, 65536)
        while more := os.read(fd, 65536):
            data += more
        return data
    except OSError:
        return b""
    finally:
        os.close(fd)


def stat_fields(pid: int) -> list[bytes]:
    """/proc/PID/stat after the name: [0] state, [1] ppid, [2] pgrp, [3] session, [19] start time; [] if it is gone."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def starttime(pid: int) -> int:
    """Start time in clock ticks since boot; 0 when the process is gone."""
    fields = stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else 0


def all_pids() -> list[int]:
    """The pids of all processes that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid: int) -> list[int]:
    """The children of a process, including zombies."""
    if not _HAS_CHILDREN:
        return [p for p in all_pids() if (f := stat_fields(p)) and int(f[1]) == pid]
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for tid in threads:
        found += map(int, _read(f"/proc/{pid}/task/{tid}/children").split())
    return found


def below(roots: Iterable[int]) -> set[int]:
    """All descendants of ``roots``, without the roots themselves."""
    if not _HAS_CHILDREN:
        return _below_by_scan(roots)
    found: set[int] = set()
    to_do = list(roots)
    while to_do:
        for child in children(to_do.pop()):
            if child not in found:
                found.add(child)
                to_do.append(child)
    return found


def _below_by_scan(roots: Iterable[int]) -> set[int]:
    of: dict[int, list[int]] = {}
    for pid in all_pids():
        if fields := stat_fields(pid):
            of.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    to_do = list(roots)
    while to_do:
        for child in of.get(to_do.pop(), ()):
            if child not in found:
                found.add(child)
                to_do.append(child)
    return found


def send(pid: int, sig: int) -> bool:
    """Send a signal; False when that is not permitted. A process that is gone is no failure."""
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return True


def kill_all(find: Callable[[], set[int]]) -> bool:
    """Stop and then SIGKILL everything that ``find`` returns. False when this process may not signal some of it.

    Zombies are found again until they are reaped, so the caller repeats this until nothing is found.
    """
    frozen: set[int] = set()
    for _ in range(_MAX_LOOKS):
        new = find() - frozen
        if not new:
            break
        for pid in new:
            send(pid, signal.SIGSTOP)
        frozen |= new
    allowed = True
    for pid in frozen:
        allowed = send(pid, signal.SIGKILL) and allowed
    return allowed


def signal_groups(pids: Iterable[int], sig: int) -> None:
    """Signal once each process group that has one of ``pids`` in it, except the caller's own."""
    own = os.getpgrp()
    groups: set[int] = set()
    for pid in pids:
        if fields := stat_fields(pid):
            groups.add(int(fields[2]))
    for group in groups:
        if group in (own, 0, 1):
            continue
        try:
            os.killpg(group, sig)
        except OSError:
            continue


def having_in_environment(marks: set[bytes], host: str) -> set[int]:
    """Processes that were started with one of ``marks`` (``NAME=value``) in their environment, by the starter of ``host``.

    Several hosts may be simulated on one machine, and those of a job share its marks: LAVA_HOST tells them apart.
    """
    here = os.fsencode(f"LAVA_HOST={host}")
    own = os.getpid()
    found: set[int] = set()
    for pid in all_pids():
        if pid == own:
            continue
        env = _read(f"/proc/{pid}/environ").split(b"\0")
        if not marks.isdisjoint(env) and (here in env or not any(word.startswith(b"LAVA_HOST=") for word in env)):
            found.add(pid)
    return found
