"""How service classes with goals in time stand: what each has to do, and which come before other jobs now."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from config.model.guarantees import ServiceClass
from lavad.core.job.spec import Spec
from lavad.core.lang.windows import is_open, next_change, parse_windows
from lavad.core.rules.goals.optimum import Work
from lavad.core.rules.goals.work import Clock, elements_waiting, optimum_now, pursued, seconds_of, work_of
from lavad.queries.frame.formats import week_second
from lavad.queries.frame.view import View


class ServiceGoals:
    """The classes of one view at one moment."""

    def __init__(self, view: View, now: float) -> None:
        self._cluster = view.cluster
        self._of = view.service_classes.with_goals
        self.now = now
        local = week_second(now)
        self.clock = Clock(lambda text: is_open(parse_windows(text), local), lambda text: next_change(parse_windows(text), local))

    def work(self, one: ServiceClass) -> Work:
        """What a class has to do."""
        waiting, running = self._waiting.get(one.name, ()), self._running.get(one.name, ())
        return work_of(waiting, running, self._cluster.paces.rows.get(one.name), self.now)

    @cached_property
    def _waiting(self) -> dict[str, list[tuple[int, int | None]]]:
        """Of all classes, for which the jobs are looked through once."""
        specs, elements = self._cluster.specs.rows, elements_waiting(self._cluster)
        found: dict[str, list[tuple[int, int | None]]] = {}
        for number, keys in self._cluster.pending.items():
            if name := self._of(specs[number]):
                found.setdefault(name, []).append((len(keys) + elements[number], seconds_of(specs[number])))
        return found

    @cached_property
    def _running(self) -> dict[str, list[tuple[float, int | None]]]:
        """As ``_waiting``, of those that have started."""
        found: dict[str, list[tuple[float, int | None]]] = {}
        for job in map(self._cluster.jobs.rows.__getitem__, self._cluster.started):
            spec = self._cluster.specs.rows[job.spec]
            if job.run is not None and (name := self._of(spec)):
                found.setdefault(name, []).append((job.run.dispatched, seconds_of(spec)))
        return found

    def before(self, spec: Spec) -> Iterator[tuple[str, int]]:
        """The classes that come before jobs of a spec now, each with how many more of its waiting jobs it is to have at once."""
        services = sorted((one for one in self._cluster.conf.service_classes if one.goals), key=lambda one: -one.priority)
        own = self._of(spec)
        for one in services:
            goals = pursued(one, self.clock)
            if goals and one.name == own:
                return
            work = self.work(one) if goals else None
            more = 0 if work is None else min(work.waiting, optimum_now(goals, work, self.clock) - len(work.ends))
            if more > 0:
                yield one.name, more
