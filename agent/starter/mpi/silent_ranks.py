"""Ranks that have not begun PMI: whether one of them runs Open MPI, which does not speak it and takes each for a job of one rank.

Rule: a rank that has begun PMI is not looked at. Open MPI 4 and 5 have no setting by which MPI_Init fails without mpirun; what
a process has open and mapped tells that it has called MPI_Init, not merely that it is linked with the library.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from agent.starter.system import proctree

FIRST_LOOK = 0.1
"""Seconds from the start of a rank to the first look; Open MPI's MPI_Init takes 0.3 s and more."""
LONGEST_PAUSE = 5.0
_PAUSE_SHARE = 8
"""The pause to the next look is the age of the ranks divided by this, at least."""
_COST_SHARE = 20
"""It is at least so many times what the look took."""
_MAX_READ = 1 << 20
"""Bytes of a process's maps and environment that are read."""
_PROBE = b"/dev/shm/open_mpi."
"""Open MPI tries in MPI_Init whether it can share memory, by a file of this name, which it keeps open."""
_LIBRARY = b"/libmpi.so"
"""mpirun and its daemons probe too, but map no MPI."""
_LAUNCHED = (b"PMIX_NAMESPACE=", b"OMPI_COMM_WORLD_SIZE=")
_OURS = b"PMI_RANK="

OPEN_MPI = "its program uses Open MPI, which -a mpi does not start: submit mpirun and the program without -a mpi"


class SilentRanks:
    """The ranks of this host that have not begun PMI. ``has_begun`` says of a rank whether it has."""

    def __init__(self, has_begun: Callable[[int], bool]) -> None:
        self._has_begun = has_begun
        self._pids: dict[int, int] = {}
        """Rank to the pid of its process."""
        self._began = 0.0
        self._look_at: float | None = None

    def started(self, rank: int, pid: int) -> None:
        """A rank runs."""
        if not self._pids:
            self._began = time.monotonic()
            self._look_at = self._began + FIRST_LOOK
        self._pids[rank] = pid

    def ended(self, rank: int) -> None:
        """A rank has ended."""
        self._pids.pop(rank, None)

    def wake_at(self) -> float | None:
        """When ``find`` is to be called (monotonic), None when no rank is to be looked at."""
        return self._look_at if self._pids else None

    def find(self) -> int | None:
        """The rank that runs another MPI library by itself, None when none does or it is not yet time to look."""
        now = time.monotonic()
        if self._look_at is None or now < self._look_at:
            return None
        self._pids = {rank: pid for rank, pid in self._pids.items() if not self._has_begun(rank)}
        found = next((rank for rank, pid in self._pids.items() if _runs_open_mpi(pid)), None)
        after = time.monotonic()
        by_age = min(LONGEST_PAUSE, max(FIRST_LOOK, (now - self._began) / _PAUSE_SHARE))
        self._look_at = after + max(by_age, (after - now) * _COST_SHARE)
        return found


def _runs_open_mpi(pid: int) -> bool:
    return any(is_alone_in_open_mpi(one) for one in (pid, *proctree.below([pid])))


def is_alone_in_open_mpi(pid: int) -> bool:
    """Whether a process has called MPI_Init of Open MPI as a rank of lava's, and no launcher of Open MPI has started it."""
    probes = any(name.startswith(_PROBE) for name in _open_files(pid))
    maps = _read(f"/proc/{pid}/maps") if probes else b""
    if _LIBRARY not in maps:
        return False
    env = _read(f"/proc/{pid}/environ").split(b"\0")
    return any(word.startswith(_OURS) for word in env) and not any(word.startswith(_LAUNCHED) for word in env)


def _open_files(pid: int) -> list[bytes]:
    folder = f"/proc/{pid}/fd"
    found: list[bytes] = []
    try:
        numbers = os.listdir(folder)
    except OSError:
        return []
    for number in numbers:
        try:
            found.append(os.fsencode(os.readlink(f"{folder}/{number}")))
        except OSError:
            continue
    return found


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as f:
            return f.read(_MAX_READ)
    except OSError:
        return b""
