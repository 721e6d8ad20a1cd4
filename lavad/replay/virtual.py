"""A cluster on a virtual clock: the master's own events, conditions, scheduler and plan acceptance, with simulated hosts.

Rule: at one instant, ends come first, then actions of users and administrators, then conditions, then plans until nothing more is
decided. The run time of a job is given and does not depend on its hosts; its progress is lost when it is requeued, and kept when
it is suspended.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from itertools import count

import msgspec

from config.model.values import LOAD_INDICES
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.control.by_time import decay_rusage
from lavad.core.decide.depend.depend import ConditionQueue
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.decide.report import parts
from lavad.core.events import IllegalMove
from lavad.core.events.apply import apply
from lavad.core.job.job import End, Job
from lavad.core.job.reports import EndedReport, StartedReport
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.core.lang.windows import local_of
from lavad.core.plan.volatile import Soft
from lavad.core.site.host import Facts
from lavad.core.site.limit_book import LimitBook
from lavad.local_time import local_time
from lavad.processes.site_policy import SitePolicies
from lavad.progress import Tell, silent
from lavad.replay.simulate import Run
from lavad.replay.swf import TraceJob
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache

ROUNDS = 100
"""Plans of one instant."""
JUDGED = 10_000
IDLE = 1_000
"""Maximum number of consecutive instants at which only time passes."""


class Life(msgspec.Struct, frozen=True):
    """How a job runs: seconds, CPU seconds and the wait status that it ends with."""

    seconds: float
    cpu: float = 0.0
    status: int = 0


Lives = Callable[[Job], Life]


def idle_load(facts: Facts) -> dict[str, float]:
    """The load of an idle host, so that only reservations count."""
    return dict.fromkeys(LOAD_INDICES, 0.0) | {
        "it": 1000.0,
        "tmp": float(facts.max_tmp),
        "swp": float(facts.max_swap),
        "mem": float(facts.max_mem),
    }


class Virtual:
    """Runs until nothing is left to happen. ``done`` has the jobs that ended by themselves."""

    def __init__(self, cluster: Cluster, lives: Lives, specs: Mapping[int, Spec], now: float) -> None:
        """``specs``: of all jobs that may come."""
        self.cluster = cluster
        self._conditions = ConditionQueue(cluster.conditions)
        self._specs = specs
        self.now = now
        self.soft = Soft()
        self.done: dict[int, Run] = {}
        self.skipped = 0
        """Recorded actions that were skipped, as the job was in another state than recorded."""
        self.history: list[ev.Event] | None = None
        """Told every event, if it is a list."""
        self._lives = lives
        self._cache = SchedulerCache()
        self._cache.scorer = SitePolicies().score
        self._book = LimitBook(cluster.conf)
        self._actions: list[tuple[float, int, ev.Event]] = []
        self._ends: list[tuple[float, int, int, str]] = []
        self._left: dict[str, float] = {}
        """Attempts that are suspended, and the seconds that they still have to run."""
        self._until: dict[str, float] = {}
        self._numbers = count()
        self._wake_at = 0.0
        self._idle = 0
        """Instants in a row at which nothing but time can change anything."""
        for host in cluster.hosts.rows.values():
            self.soft.load[host.name] = idle_load(host.facts)
        for key in list(cluster.started):
            self._go_on(cluster.jobs.rows[key])

    def add(self, actions: Iterable[ev.Event]) -> None:
        """What users, administrators and hosts do, each at its time."""
        for event in actions:
            heapq.heappush(self._actions, (event.at, next(self._numbers), event))

    def run(self, tell: Tell = silent, what: str = "") -> None:
        """To the end; ``what`` is how many jobs have ended."""
        self._plan()
        while self.step():
            tell(what, len(self.done), 0)

    @property
    def never(self) -> int:
        """Jobs and elements that still wait."""
        rows = self.cluster.arrays.rows.values()
        return sum(not job.run for job in self.cluster.jobs.rows.values()) + sum(len(a.pending) + len(a.held) for a in rows)

    def step(self) -> bool:
        """The next instant; False if there is none."""
        times = [line[0][0] for line in (self._ends, self._actions) if line]
        self._idle = 0 if times else self._idle + 1
        if (self.cluster.pending or self.cluster.suspended) and self._wake_at > self.now and self._idle < IDLE:
            times.append(self._wake_at)
        if self.cluster.use.decaying:
            times.append(min(self.cluster.use.decaying.values()))
        if not times:
            return False
        self.now = max(self.now, min(times))
        while self._ends and self._ends[0][0] <= self.now:
            at, _, key, uid = heapq.heappop(self._ends)
            if self._until.get(uid) == at:
                self._end(key)
        while self._actions and self._actions[0][0] <= self.now:
            self._act(heapq.heappop(self._actions)[2])
        if self.cluster.use.decaying:
            self._apply(decay_rusage(self.cluster, self.now).events)
        self._plan()
        return True

    def _plan(self) -> None:
        for _ in range(ROUNDS):
            self._settle()
            local = local_of(local_time(self.now))
            plan = schedule(self.cluster, self.soft, self.now, local, self._cache)
            self._wake_at = plan.wake_at
            if self._book.conf is not self.cluster.conf:
                self._book = LimitBook(self.cluster.conf)
            events = accept_plan(self.cluster, plan, self.now, f"{next(self._numbers):x}.", self._book) if plan.decides else []
            if not events:
                return
            self._apply(events)
            for event in events:
                self._obey(event)

    def _settle(self) -> None:
        local = local_of(local_time(self.now))
        while self._conditions and (events := self._conditions.settle(self.cluster, self.now, local, JUDGED)):
            self._apply(events)

    def _apply(self, events: list[ev.Event]) -> None:
        if self.history is not None:
            self.history += events
        for event in events:
            apply(self.cluster, event)
        self.cluster.forget_changes()

    def _act(self, event: ev.Event) -> None:
        """Repeat a recorded action, if the state of the job still allows it."""
        if isinstance(event, ev.JobFinished) and event.key in self.cluster.started:
            self._kill(self.cluster.jobs.rows[event.key])
            return
        if isinstance(event, ev.HostJoined):
            self.soft.load[event.host] = idle_load(event.facts)
        number = getattr(event, "spec", 0)
        if number in self._specs and number not in self.cluster.specs.rows:
            self._apply([ev.SpecAdded(at=event.at, spec=number, value=self._specs[number])])
        try:
            self._apply([event])
        except (IllegalMove, KeyError):
            self.skipped += 1

    def _obey(self, event: ev.Event) -> None:
        """The reaction of the hosts to a decision."""
        if not isinstance(event, ev.JobDispatched | ev.JobSuspended | ev.JobResumed | ev.SignalRequested):
            return
        job = self.cluster.jobs.rows.get(event.key)
        if job is None or job.run is None:
            return
        uid = job.run.uid
        if isinstance(event, ev.JobDispatched):
            for part in job.run.parts:
                report = StartedReport(key=job.key, uid=uid, host=part.host, pid=1, started=self.now)
                self._apply(parts.started(self.cluster, report, self.now))
            self._go_on(self.cluster.jobs.rows[event.key])
        elif isinstance(event, ev.JobSuspended):
            self._left[uid] = self._until.pop(uid, self.now) - self.now
        elif isinstance(event, ev.JobResumed):
            self._go_on(job)
        elif event.pending.ends:
            self._kill(job)

    def _go_on(self, job: Job) -> None:
        """A started job runs for what it has left."""
        assert job.run is not None
        if job.state is not JobState.RUN and job.state is not JobState.UNKWN:
            ran = job.since - (job.run.started or job.run.dispatched) - job.run.paused
            self._left.setdefault(job.run.uid, max(0.0, self._lives(job).seconds - ran))
            return
        left = self._left.pop(job.run.uid, None)
        if left is None:
            ran = self.now - (job.run.started or job.run.dispatched) - job.run.paused
            left = max(0.0, self._lives(job).seconds - ran)
        until = self._until[job.run.uid] = self.now + left
        heapq.heappush(self._ends, (until, next(self._numbers), job.key, job.run.uid))

    def _end(self, key: int) -> None:
        """A job has run its time."""
        job = self.cluster.jobs.rows[key]
        life = self._lives(job)
        spec = self.cluster.specs.rows[job.spec]
        assert job.run is not None
        slots = sum(part.slots for part in job.run.parts)
        requested = spec.limits.run or life.seconds
        trace = TraceJob(key & 0xFFFFFFFF, key >> 32, job.submitted, life.seconds, slots, requested, spec.user)
        again = key in self.done
        self.done[key] = Run(trace, self.now - life.seconds)
        self._over(job, End(status=0 if again else life.status, at=self.now, started=job.run.started, utime=life.cpu))

    def _kill(self, job: Job) -> None:
        self._over(job, End(status=9, at=self.now, started=job.run.started if job.run is not None else 0.0))

    def _over(self, job: Job, end: End) -> None:
        assert job.run is not None
        self._until.pop(job.run.uid, None)
        self._left.pop(job.run.uid, None)
        for part in job.run.parts:
            report = EndedReport(key=job.key, uid=job.run.uid, host=part.host, end=end, gone=True)
            self._apply(parts.ended(self.cluster, report, self.now))
