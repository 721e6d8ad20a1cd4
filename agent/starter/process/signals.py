"""Signals to a part, among them signals that are sent only to processes with a handler for them (others would be killed).

Rule: such a signal goes to the task process or, if it has no handler, to its nearest descendants that have one. Tasks without
a handler are checked again for some time: a program gets the signal once it is ready, a shell around it never does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping

from agent.starter.process.account import Task
from agent.starter.process.progress import Timer, Timers
from agent.starter.system import proctree

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
    """The process if it has a handler for the signal, else its nearest descendants that have one."""
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
    """A signal that is being sent to the tasks that catch it, for ``within`` seconds."""

    def __init__(self, sig: int, within: float) -> None:
        self.sig = sig
        self._until = time.monotonic() + within
        self._done: set[int] = set()

    @property
    def is_ignored(self) -> bool:
        """Whether no process had a handler for it so far."""
        return not self._done

    def send(self, tasks: Iterable[int]) -> bool:
        """Send it to the tasks that catch it now; True when all have got it or the time is over."""
        waiting = [pid for pid in tasks if pid not in self._done]
        for pid in waiting:
            found = catchers(pid, self.sig)
            for one in found:
                proctree.send(one, self.sig)
            if found:
                self._done.add(pid)
        return self._done.issuperset(waiting) or time.monotonic() >= self._until


class Signals:
    """Sends signals to a part: to its tasks, to every process group, or to the tasks that catch them (``ask``).

    ``running``: the running tasks by pid. Sets the timer ASK of the part.
    """

    def __init__(self, running: Mapping[int, Task], timers: Timers) -> None:
        self._running = running
        self._timers = timers
        self._asking: Catching | None = None
        self._to_kill: dict[int, float] = {}
        """Pid of each task that was asked to end, to when it is killed (monotonic)."""

    def send(self, sig: int, tasks_only: bool = False) -> None:
        """Signal the task processes only, or every process group of the part."""
        for pid in self._running if tasks_only else ():
            proctree.send(pid, sig)
        proctree.signal_groups(() if tasks_only else proctree.below([os.getpid()]), sig)

    def ask(self, sig: int, within: float) -> int | None:
        """Signal the tasks that have a handler now or within ``within`` seconds; returns what ``ask_again`` returns."""
        self._asking = Catching(sig, within)
        return self.ask_again()

    def ask_again(self) -> int | None:
        """The timer is due: try again. Returns the signal when its time is over and no task had a handler, else None."""
        asking = self._asking
        if asking is None:
            return None
        if not asking.send(self._running):
            self._timers[Timer.ASK] = time.monotonic() + LOOK_AGAIN
            return None
        return asking.sig if asking.is_ignored else None

    def end_task(self, rank: int, seconds: float | None = None) -> None:
        """SIGKILL one task and all its descendants, or ask them to end by SIGTERM and kill them after so many seconds."""
        for pid in [task.pid for task in self._running.values() if task.rank == rank]:
            if seconds is None:
                _kill_from(pid)
            elif pid not in self._to_kill:
                self._to_kill[pid] = time.monotonic() + seconds
                proctree.signal_groups({pid} | proctree.below([pid]), signal.SIGTERM)

    def wake_at(self) -> float | None:
        """When ``kill_asked`` has something to do (monotonic)."""
        return min(self._to_kill.values(), default=None)

    def kill_asked(self) -> None:
        """SIGKILL tasks that were asked to end, and have not in time."""
        now = time.monotonic()
        for pid in [pid for pid, at in self._to_kill.items() if at <= now]:
            del self._to_kill[pid]
            _kill_from(pid)

    def ended(self, pid: int) -> None:
        """A task has ended, and is not reaped yet: what one that was asked to end has left of its session is killed."""
        if self._to_kill.pop(pid, None) is not None:
            proctree.kill_all(lambda: {one for one in proctree.below([os.getpid()]) if one != pid and _session(one) == pid})


def _kill_from(root: int) -> None:
    proctree.kill_all(lambda: {root} | proctree.below([root]))


def _session(pid: int) -> int:
    """Its session, 0: it is gone."""
    fields = proctree.stat_fields(pid)
    return int(fields[3]) if len(fields) > 3 else 0
