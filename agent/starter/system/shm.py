"""Removes shared memory files that a killed parallel job left in /dev/shm, where they would fill the host's memory.

Rule: only files of MPI libraries and NCCL, of this user, made while the part ran, that no process has open or mapped.
"""

from __future__ import annotations

import os
import stat

from agent.starter.system import proctree

FOLDER = "/dev/shm"
NAMES = ("mpich_shm_", "ucx_shm_", "nccl-", "vader_segment.", "sm_segment.", "Intel_MPI_", "psm2_shm.", "psm3_shm.")
"""Of MPICH, UCX, NCCL, Open MPI 4 and 5, Intel MPI, and PSM on Omni-Path; ``part/native/kill.c`` has them too."""
COARSE = 0.02
"""Seconds by which the time of a file may lie before that of its making: it is that of the kernel's last tick."""


def clear(since: float, folder: str = FOLDER) -> list[str]:
    """Remove the files of a part that started at ``since`` (seconds since the epoch); returns their names."""
    left = _candidates(since, folder)
    if not left:
        return []
    in_use = _in_use(folder)
    gone: list[str] = []
    for name in left:
        if name not in in_use:
            try:
                os.unlink(os.path.join(folder, name))
                gone.append(name)
            except OSError:
                continue
    return gone


def _candidates(since: float, folder: str) -> list[str]:
    found: list[str] = []
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return found
    for entry in entries:
        if entry.name.startswith(NAMES):
            try:
                seen = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(seen.st_mode) and seen.st_uid == os.getuid() and min(seen.st_ctime, seen.st_mtime) >= since - COARSE:
                found.append(entry.name)
    return found


def _in_use(folder: str) -> set[str]:
    """The names that a process of this user has open or mapped. A process that cannot be inspected is no MPI program."""
    prefix = os.path.join(folder, "")
    found: set[str] = set()
    for pid in proctree.all_pids():
        try:
            if os.stat(f"/proc/{pid}").st_uid != os.getuid() or not os.readlink(f"/proc/{pid}/exe"):
                continue
            # Open files are read first: a process may map a file and then close it.
            paths = _open_files(f"/proc/{pid}/fd")
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
                paths += [line.split(None, 5)[5].rstrip("\n") for line in f if prefix in line]
        except (OSError, IndexError):
            continue  # it has ended, is a kernel thread, or may not be inspected
        found.update(path[len(prefix) :] for path in paths if path.startswith(prefix))
    return found


def _open_files(folder: str) -> list[str]:
    found: list[str] = []
    for fd in os.listdir(folder):
        try:
            found.append(os.readlink(os.path.join(folder, fd)))
        except FileNotFoundError:  # closed meanwhile
            continue
    return found
