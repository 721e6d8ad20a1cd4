"""The tasks of a part that the master leads: each end is told by itself, and each further start is an order.

Rule: such a part ends by the word to finish, by a kill or by its lease, never because its tasks have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from agent.starter.process.account import Task
from agent.starter.process.spec import Spec
from agent.starter.system import proctree


class Led:
    """``tell`` sends a report of the part."""

    def __init__(self, spec: Spec, tell: Callable[[dict[str, Any]], None]) -> None:
        self.finishing = False
        self._broken = False
        self._spec = spec
        self._tell = tell
        self._numbers: dict[int, int] = {}
        """Rank to the number of its newest start."""
        self._due: dict[int, float] = {}

    def first(self) -> Iterator[dict[str, Any]]:
        """The tasks that start with the part; one that only holds its slots has no process."""
        for of in self._spec.tasks:
            if not of.get("late") and not of.get("hold"):
                self._numbers[int(of["rank"])] = 1
                yield of

    def ask(self, rank: int, number: int, delay: float) -> None:
        """The order to start a task in so many seconds; asked again, it is done once."""
        if number > self._numbers.get(rank, 0) and not (self.finishing or self._broken):
            self._numbers[rank] = number
            self._due[rank] = time.monotonic() + max(0.0, delay)

    def wake_at(self) -> float | None:
        """When ``due`` has something (monotonic)."""
        return min(self._due.values(), default=None)

    def due(self) -> Iterator[dict[str, Any]]:
        """The tasks whose time has come."""
        now = time.monotonic()
        for rank in [rank for rank, at in self._due.items() if at <= now]:
            del self._due[rank]
            for of in self._spec.tasks:
                if int(of["rank"]) == rank:
                    yield {**of, "env": {**of["env"], "LAVA_RESTARTS": str(self._numbers[rank] - 1)}}

    def finish(self) -> None:
        """Nothing starts any more."""
        self.finishing = True
        self._due.clear()

    def fail(self) -> None:
        """The part ends though nobody said so (another host of it is gone): what its tasks do now says nothing."""
        self._broken = not self.finishing
        self._due.clear()

    def started(self, task: Task) -> None:
        """A task runs that was started by an order."""
        if task.pid and task.status is None:
            self._tell(self._about(task, "task_started") | {"starttime": proctree.starttime(task.pid)})

    def ended(self, task: Task) -> None:
        """A task ended."""
        if not self._broken:
            self._tell(self._about(task, "task_ended") | {"status": task.status, "at": task.at})

    def _about(self, task: Task, what: str) -> dict[str, Any]:
        return {
            "uid": self._spec.uid,
            "is": what,
            "rank": task.rank,
            "number": self._numbers.get(task.rank, 1),
            "pid": task.pid,
        }
