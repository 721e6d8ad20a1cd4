"""What the scheduler keeps of service classes with goals in time: which pursue one now, and what jobs they have.

Rule: jobs of a class that pursues a goal stand before all others in line, by PRIORITY of the classes; others of it as if there
were no class (LSF).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from config.model.guarantees import Goal
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import HostUse
from lavad.core.job.spec import Spec
from lavad.core.rules.goals.work import Clock, pursued, seconds_of
from lavad.core.site.conf import Conf
from lavad.core.site.service_classes import ServiceClasses

if TYPE_CHECKING:
    from lavad.sched.state.scheduler_cache import PendingClass

_FIRST = 1 << 40
"""A priority above that of every queue."""
Started = dict[int, tuple[float, int | None]]
"""Job to when it was dispatched, and how many seconds it is expected to run (None: unknown)."""


class GoalCache:
    """What was made from one configuration."""

    def __init__(self, conf: Conf) -> None:
        self._of = ServiceClasses(conf).with_goals
        self.services = {one.name: one for one in sorted(conf.service_classes, key=lambda one: -one.priority) if one.goals}
        """By PRIORITY, of the same priority in the order of the file."""
        self._ranks = {name: _FIRST - at for at, name in enumerate(self.services)}
        self.windows = {goal.windows for one in self.services.values() for goal in one.goals if goal.windows}
        self.pursued: dict[str, list[Goal]] = {}
        """Class to the goals that it pursues now; others are left out."""
        self.members: dict[str, dict[int, int | None]] = {name: {} for name in self.services}
        """Service class to its waiting classes of jobs, with the seconds that each job is expected to run (None: unknown)."""
        self.names: dict[int, str] = {}
        """Waiting class of jobs to its service class."""
        self._hosts: dict[str, tuple[HostUse, int, dict[str, Started]]] = {}
        """Host to its use with its ``touched``, and the jobs of each service class there as of these."""

    def renew(self, classes: Mapping[int, PendingClass], clock: Clock) -> None:
        """Windows may have opened or closed: the places in line of whose they are will be worked out again."""
        now = {name: goals for name, one in self.services.items() if (goals := pursued(one, clock))}
        for name in now.keys() ^ self.pursued.keys():
            for number in self.members[name]:
                classes[number].touched = -1
        self.pursued = now

    def join(self, number: int, spec: Spec) -> None:
        """A class of jobs has waiting ones now."""
        if name := self._of(spec):
            self.members[name][number] = seconds_of(spec)
            self.names[number] = name

    def leave(self, number: int) -> None:
        """It has none any more."""
        if name := self.names.pop(number, ""):
            del self.members[name][number]

    def active(self, spec: Spec) -> str:
        """The service class of jobs of a spec, if it pursues a goal now; else ""."""
        return name if (name := self._of(spec)) in self.pursued else ""

    def rank(self, spec: Spec, rank: int) -> int:
        """The place of its queue among all, ``rank``, or before all queues where its service class pursues a goal."""
        name = self.active(spec)
        return self._ranks[name] if name else rank

    def started(self, cluster: Cluster) -> dict[str, Started]:
        """The started jobs of each service class."""
        found: dict[str, Started] = {name: {} for name in self.services}
        for name, use in cluster.use.hosts.items():
            known = self._hosts.get(name)
            if known is None or known[0] is not use or known[1] != use.touched:
                known = self._hosts[name] = use, use.touched, self._on_host(cluster, use)
            for service, jobs in known[2].items():
                found[service].update(jobs)
        return found

    def _on_host(self, cluster: Cluster, use: HostUse) -> dict[str, Started]:
        found: dict[str, Started] = {}
        for key in use.jobs:
            job = cluster.jobs.rows[key]
            spec = cluster.specs.rows[job.spec]
            name = self._of(spec)
            if name and job.run is not None:
                found.setdefault(name, {})[key] = job.run.dispatched, seconds_of(spec)
        return found


def goal_cache(conf: Conf) -> GoalCache | None:
    """None: no service class has goals in time."""
    return GoalCache(conf) if any(one.goals for one in conf.service_classes) else None
