"""A signal that asks a job for something, and would end whoever does not expect it: sent only to those who catch it.

Rule: of each task the process itself, or the first below it that catch it; who does not yet is looked at again until a
time. A program that is still starting gets it when it is ready, a shell around the program never.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from agent.starter import proctree

LOOK_AGAIN = 0.1


def catches(pid: int, sig: int) -> bool:
    """Whether the process has a handler for the signal."""
    try:
        with open(f"/proc/{pid}/status", "rb") as f:
            for line in f:
                if line.startswith(b"SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (sig - 1) & 1)
    except (OSError, ValueError, IndexError):
        pass
    return False


def catchers(pid: int, sig: int) -> list[int]:
    """The process if it catches the signal, else the nearest below it that do."""
    found: list[int] = []
    to_do = [pid]
    while to_do:
        one = to_do.pop()
        if catches(one, sig):
            found.append(one)
        else:
            to_do += proctree.children(one)
    return found


class Catching:
    """One such signal on its way to the tasks of a part."""

    def __init__(self, sig: int, within: float) -> None:
        self.sig = sig
        self._until = time.monotonic() + within
        self._done: set[int] = set()

    @property
    def in_vain(self) -> bool:
        """Nobody has got it."""
        return not self._done

    def send(self, tasks: Iterable[int]) -> bool:
        """Send it to those who catch it now; True when all have it or the time is over."""
        waiting = [pid for pid in tasks if pid not in self._done]
        for pid in waiting:
            found = catchers(pid, self.sig)
            for one in found:
                proctree.send(one, self.sig)
            if found:
                self._done.add(pid)
        return self._done.issuperset(waiting) or time.monotonic() >= self._until
