"""What /proc says of one process; nothing when it is gone."""

from __future__ import annotations

import os
from collections.abc import Sequence


def folder_of(pid: int) -> str:
    """Its current folder."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def parent_of(tasks: Sequence[tuple[int, int, int]]) -> int:
    """The parent of the first of a part's task processes (rank, pid, start time): its shepherd."""
    if not tasks:
        return 0
    try:
        with open(f"/proc/{tasks[0][1]}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
