"""The tasks of a part: started together or, in a role job, one by one, and followed until all have ended.

Rule: a part of a role job ends by the order to finish, by a kill or by its lease, never because its tasks have ended.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import islice

from agent.starter.mpi.gang import TaskFiles
from agent.starter.part import task_start
from agent.starter.part.native_parts import TakenTask
from agent.starter.part.part_resources import PartResources
from agent.starter.process import account
from agent.starter.process.account import Task
from agent.starter.process.progress import Timers
from agent.starter.process.signals import Signals
from agent.starter.process.spec import Spec
from agent.starter.protocol.part import NO_RANK, TaskSpec
from agent.starter.protocol.reports import End, Started, TaskEnded, TaskStarted
from agent.starter.system import kernel, proctree

AT_ONCE = 64
"""Tasks that may be started together: so many have their files open in the shepherd at once."""


class RoleTasks:
    """The tasks of a role job on this host: which start next, and the report of each."""

    def __init__(self, spec: Spec) -> None:
        self.finishing = False
        self._aborted = False
        self._spec = spec
        self._numbers: dict[int, int] = {}
        """Rank to the number of its newest start."""
        self._due: dict[int, float] = {}

    def first(self) -> Iterator[TaskSpec]:
        """The tasks that start with the part; one that only holds its slots has no process."""
        for task in self._spec.tasks:
            if not task.late and not task.hold:
                self._numbers[task.rank] = 1
                yield task

    def ask(self, rank: int, number: int, delay: float) -> None:
        """Start a task in so many seconds. A ``number`` that is not higher than before is a repeated order, and ignored."""
        if number > self._numbers.get(rank, 0) and not (self.finishing or self._aborted):
            self._numbers[rank] = number
            self._due[rank] = time.monotonic() + max(0.0, delay)

    def wake_at(self) -> float | None:
        """When ``due`` has something (monotonic)."""
        return min(self._due.values(), default=None)

    def due(self) -> Iterator[TaskSpec]:
        """The tasks whose time has come."""
        now = time.monotonic()
        for rank in [rank for rank, at in self._due.items() if at <= now]:
            del self._due[rank]
            for task in self._spec.tasks:
                if task.rank == rank:
                    again = self._numbers[rank] - 1
                    yield task._replace(env={**task.env, "LAVA_RESTARTS": str(again)}) if again else task

    def finish(self) -> None:
        """Nothing starts any more."""
        self.finishing = True
        self._due.clear()

    def abort(self) -> None:
        """Another host of the job is gone: exit statuses from here on are ignored."""
        self._aborted = not self.finishing
        self._due.clear()

    def started(self, task: Task) -> TaskStarted | None:
        """The report of a task that an order started; None where it has ended at once."""
        if not task.pid or task.status is not None:
            return None
        return TaskStarted(self._spec.uid, task.rank, self._number(task), task.pid, proctree.starttime(task.pid))

    def ended(self, task: Task) -> TaskEnded | None:
        """The report of a task that has ended; None after ``abort``."""
        if self._aborted:
            return None
        return TaskEnded(self._spec.uid, task.rank, self._number(task), task.pid, task.status or 0, task.at)

    def newest(self, rank: int) -> int:
        """The number of the newest start of a task, 0: none was ordered."""
        return self._numbers.get(rank, 0)

    def _number(self, task: Task) -> int:
        return self._numbers.get(task.rank, 1)


class PartTasks:
    """The task processes of one part. Reports of single tasks are queued in ``reports``."""

    def __init__(self, spec: Spec, resources: PartResources, timers: Timers) -> None:
        self.reports: list[TaskStarted | TaskEnded] = []
        self.role = RoleTasks(spec) if spec.part.led else None
        """In a role job."""
        self.began = 0.0
        """When the first of them were started, 0: they were not."""
        self._spec = spec
        self._resources = resources
        self._all: list[Task] = []
        self._running: dict[int, Task] = {}
        self.signals = Signals(self._running, timers)

    @property
    def none_yet(self) -> bool:
        """No task was ever started."""
        return not self._all

    @property
    def running(self) -> bool:
        """Whether a task runs."""
        return bool(self._running)

    def start(self) -> None:
        """Start those that start with the part."""
        self.began = time.time()
        self._resources.starts()
        gang = self._resources.gang
        asked = iter(self.role.first() if self.role else self._spec.tasks)
        while some := list(islice(asked, 1 if self.role else AT_ONCE)):
            self._start(some)
            if gang and gang.failed:
                break
        self._resources.started()
        os.chdir("/")

    def take_over(self, taken: TakenTask) -> None:
        """Follow the one task of the part, which native code has started."""
        task = Task(NO_RANK, taken.pid)
        self.began = taken.began
        self._all.append(task)
        if taken.end:
            task.status = taken.status
        else:
            self._running[task.pid] = task

    def wake_at(self) -> float | None:
        """When ``on_time`` or ``start_due`` has something to do (monotonic)."""
        times = (self._resources.wake_at(), self.role.wake_at() if self.role else None, self.signals.wake_at())
        return min((at for at in times if at is not None), default=None)

    def on_time(self) -> None:
        """What is due of their resources; those that were asked to end, and have not in time, are killed."""
        self._resources.on_time()
        self.signals.kill_asked()

    def end_task(self, rank: int, number: int, asked: bool) -> None:
        """End one task and all its descendants, unless a later start than this ``number`` was ordered (0: whichever runs).

        ``asked``: SIGTERM first, and SIGKILL after the grace of the part.
        """
        if not number or (self.role and self.role.newest(rank) == number):
            self.signals.end_task(rank, self._spec.part.grace if asked else None)

    def start_due(self) -> None:
        """Start the tasks of a role job that were ordered and whose time has come."""
        if self.role is None:
            return
        for asked in self.role.due():
            [task] = self._start([asked._replace(cwd=asked.cwd or self._resources.cwd)])
            if report := self.role.started(task):
                self.reports.append(report)
            os.chdir("/")

    def _start(self, asked: list[TaskSpec]) -> list[Task]:
        """Start tasks; once one has failed no further one is begun."""
        tasks, gang, around = [Task(one.rank, 0) for one in asked], self._resources.gang, self._resources.surroundings()
        found: list[TaskFiles | None] = [None]
        if len(asked) > 1:
            found = task_start.begin_together(tasks, asked, self._spec, around)
        for task, one, files in zip(tasks, asked, found, strict=True):
            if not task.pid:
                if gang and gang.failed:
                    continue
                task_start.begin(task, one, self._spec, around, files)
            self._all.append(task)
            if task.pid:
                self._running[task.pid] = task
            if gang:
                gang.started(task)
                if task.status is not None:
                    self._over(task)
        return tasks

    def ended(self, seen: kernel.Ended) -> bool:
        """A child of the shepherd has ended; False: it is not a task."""
        task = self._running.pop(seen[0], None)
        if task is None:
            return False
        task.ended(seen)
        self.signals.ended(task.pid)
        self._over(task)
        return True

    def _over(self, task: Task) -> None:
        if self._resources.gang:
            self._resources.gang.task_ended(task)
        if self.role and (report := self.role.ended(task)):
            self.reports.append(report)

    def started_report(self) -> Started:
        """The report that they run."""
        return account.started(self._spec.uid, self._all, self.began)

    def status(self) -> int:
        """The wait status of the part."""
        if self._resources.gang:
            return self._resources.gang.status()
        status = self._all[0].status if self._all else None
        return int(signal.SIGKILL) if status is None else status

    def end(self, expired: bool, lost: bool) -> End:
        """The end of the part; ``expired``: by its lease; ``lost``: the master will not hear of it."""
        return self._resources.end(self._all, self.status(), self.began, expired, lost)
