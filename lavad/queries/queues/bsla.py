"""bsla: service classes with what is guaranteed to them, or with their goals in time and how they are reached; their jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from config.model.guarantees import Goal, ServiceClass
from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import JobState
from lavad.core.rules.goals.optimum import HOUR, Work, done_after, is_on_time, optimum_of
from lavad.core.rules.goals.work import seconds_left
from lavad.core.rules.guarantees.pools import PoolUse
from lavad.queries.facts.service_goals import ServiceGoals
from lavad.queries.frame.formats import full_time
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.queues.guarantees import pools

_STATES = ("PEND", "RUN", "SSUSP", "USUSP")
_ENDED = "FINISH"
Counts = Counter[str]
"""Jobs of a service class, or their slots, by state."""


def show_bsla(request: Request) -> Iterator[Shown]:
    """bsla [-N] [class]: each service class and its jobs (-N: their slots)."""
    options = request.options()
    classes = request.cluster.conf.service_classes
    if not classes and not request.words:
        raise Refused("No service class is configured")
    unknown = next((word for word in request.words if all(one.name != word for one in classes)), "")
    if unknown:
        raise Refused(f"{unknown[:80]}: No such service class")
    shown = [one for one in classes if not request.words or one.name in request.words]
    found, counts = pools(request), _counts(request, slots="N" in options)
    goals = _Goals(request) if any(one.goals for one in shown) else None
    for one in shown:
        jobs, title = counts.get(one.name, Counter()), "NSLOTS" if "N" in options else "NJOBS"
        parts = _class_with_guarantees(one, found) if goals is None or not one.goals else goals.of(one)
        if goals is not None and one.goals:
            jobs[_ENDED] = goals.ended(one, slots="N" in options)
        states = (*_STATES, _ENDED) if one.goals else _STATES
        yield out("".join((*parts, *_table(jobs, title, states))))


def _table(jobs: Counts, title: str, states: tuple[str, ...]) -> Iterator[str]:
    yield f"\n{title:>6} {' '.join(f'{state:>6}' for state in states)}\n"
    yield f"{sum(jobs[state] for state in states):>6} {' '.join(f'{jobs[state]:>6}' for state in states)}\n\n"


def _class_with_guarantees(one: ServiceClass, found: list[PoolUse]) -> Iterator[str]:
    yield f"SERVICE CLASS NAME:  {one.name}\n -- {one.description}\n"
    lists = (
        ("QUEUES", one.queues),
        ("USERS", one.users),
        ("FAIRSHARE_GROUPS", one.fairshare_groups),
        ("APPS", one.apps),
        ("PROJECTS", one.projects),
    )
    access = " ".join(f"{name}[{' '.join(names)}]" for name, names in lists if names)
    if access:
        yield f"ACCESS CONTROL:  {access}\n"
    yield f"AUTO ATTACH:  {'Y' if one.auto_attach else 'N'}\n\nGOAL:  GUARANTEE\n\n"
    yield f"{'':<32}{'GUARANTEE':>10}{'GUARANTEE':>11}{'TOTAL':>8}\n"
    yield f"{'POOL NAME':<24}{'TYPE':<8}{'CONFIG':>10}{'USED':>11}{'USED':>8}\n"
    for pool in found:
        most = pool.guaranteed.get(one.name)
        if most is not None:
            used = pool.used[one.name]
            yield f"{pool.pool.name:<24}{pool.pool.type:<8}{most:>10}{min(used, most):>11}{used:>8}\n"


class _Goals:
    """The classes with goals in time, with what has ended of them."""

    def __init__(self, request: Request) -> None:
        self._view = request.view
        self._now = ServiceGoals(request.view, request.now)
        self._period = request.view.params.clean_period
        since = request.now - self._period
        self._ended: Counter[int] = Counter(mark.spec for mark in request.view.finished_marks(since))
        """Number of a spec to the jobs that ended within CLEAN_PERIOD."""

    def ended(self, one: ServiceClass, slots: bool = False) -> int:
        """The jobs of a class that ended within CLEAN_PERIOD, or their slots."""
        specs = ((self._view.spec_numbered(number), count) for number, count in self._ended.items())
        of = self._view.service_classes.with_goals
        return sum(count * (spec.slots if slots else 1) for spec, count in specs if of(spec) == one.name)

    def of(self, one: ServiceClass) -> Iterator[str]:
        """The head of a class, and each of its goals."""
        yield f"SERVICE CLASS NAME:  {one.name}\n -- {one.description}\nPRIORITY:  {one.priority}\n"
        if one.users:
            yield f"USER_GROUP:  {' '.join(one.users)}\n"
        work, ended = self._now.work(one), self.ended(one)
        for goal in one.goals:
            yield f"\nGOAL:  {goal}\nACTIVE WINDOW:  {f'({goal.windows})' if goal.windows else 'Always Open'}\n"
            is_active = self._now.clock.is_open(goal.windows)
            yield f"STATUS:  {self._status(goal, work, ended) if is_active else 'Inactive'}\n"
            yield f"SLA THROUGHPUT:  {ended:.2f} JOBS/CLEAN_PERIOD\n"
            if is_active and goal.kind != "velocity":
                yield from self._aims(goal, work)

    def _status(self, goal: Goal, work: Work, ended: int) -> str:
        rate = ended * HOUR / self._period if self._period else 0.0
        return f"Active:{'On time' if is_on_time(goal, work, seconds_left(goal, self._now.clock), rate) else 'Delayed'}"

    def _aims(self, goal: Goal, work: Work) -> Iterator[str]:
        """When all will be over, where there is a window, and how many should run."""
        if goal.windows and (work.waiting or work.ends):
            end = self._now.now + done_after(work, max(1, len(work.ends)))
            yield f"ESTIMATED FINISH TIME:  ({full_time(end).rpartition(':')[0]})\n"
        yield f"OPTIMUM NUMBER OF RUNNING JOBS:  {optimum_of(goal, work, seconds_left(goal, self._now.clock))}\n"


def _counts(request: Request, slots: bool) -> dict[str, Counts]:
    """Service class to its jobs, or their slots, by state. Those that wait are counted by kinds of jobs, not one by one."""
    cluster, of_spec = request.cluster, request.view.service_classes.of
    specs, waiting = cluster.specs.rows, Counter(cluster.spec_jobs)
    found: dict[str, Counts] = {}
    for key in cluster.started:
        job = cluster.jobs.rows[key]
        waiting[job.spec] -= 1
        if name := of_spec(specs[job.spec]):
            many = sum(part.slots for part in job.run.parts) if job.run is not None else 0
            found.setdefault(name, Counter())[_state(job)] += many if slots else 1
    for array in cluster.arrays.rows.values():
        waiting[array.spec] += len(array.pending) + len(array.held) - 1
    for number, count in waiting.items():
        if name := of_spec(specs[number]):
            found.setdefault(name, Counter())["PEND"] += count * (specs[number].slots if slots else 1)
    return found


def _state(job: Job) -> str:
    return job.state.name if job.state in (JobState.SSUSP, JobState.USUSP) else "RUN"
