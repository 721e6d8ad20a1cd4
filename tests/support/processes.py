"""What /proc says of a process."""

from __future__ import annotations

from pathlib import Path


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name: state, parent, process group …; raises OSError where there is none."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def state_of(pid: int) -> str:
    """R, S, D, T, Z …; raises OSError."""
    return stat(pid)[0]


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped it, or the child for whose exec a shell waits in vfork(2), when it is in state D."""
    try:
        state = state_of(pid)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if state == "D" else []
    except OSError:  # it has ended meanwhile
        return False
    return state == "T" or any(is_stopped(int(child)) for child in children)


def parent_of(pid: int) -> int:
    """Raises OSError."""
    return int(stat(pid)[1])


def is_alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return state_of(pid) not in "ZX"
    except (OSError, IndexError):
        return False
