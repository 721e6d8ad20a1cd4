"""A cluster in memory for tests of the deciding code: made by events and ``apply`` alone, with a clock of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.control.by_time import decay_rusage
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.decide.report.report import decide_report
from lavad.core.events.apply import apply_all
from lavad.core.job.job import End
from lavad.core.job.spec import Spec
from lavad.core.lang.gpureq import GpuReq, merge
from lavad.core.lang.gpureq import parse as parse_gpu
from lavad.core.lang.ids import job_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft, WhyClass
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts, Gpu
from lavad.core.site.pend_reason import PendReason
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.reports import report_of

QUIET = {
    "r15s": 0.0,
    "r1m": 0.0,
    "r15m": 0.0,
    "ut": 0.0,
    "pg": 0.0,
    "io": 0.0,
    "ls": 0.0,
    "it": 100.0,
    "tmp": 10_000.0,
    "swp": 8_000.0,
    "mem": 16_000.0,
}
"""Load of an idle host."""


class World:
    """``hosts`` join, ``submit`` submits, ``schedule`` plans, ``accept`` makes the plan true, ``finish`` ends a job."""

    def __init__(self, conf: Conf | None = None, now: float = 1_000_000.0) -> None:
        self.cluster = Cluster()
        self.soft = Soft()
        self.memory = SchedulerCache()
        self.now = now
        self.local = (1, 12 * 3600)
        self.plans = 0
        self.wake_at = 0.0
        self.apply(ev.MasterStarted(at=now, epoch=1, incarnation="test"))
        self.configure(conf or Conf())

    def apply(self, *events: ev.Event) -> None:
        """Fold events, as the engine does."""
        apply_all(self.cluster, events)

    def hear(self, what: str, key: int, uid: str, host: str, *values: Any) -> list[ev.Event]:
        """An agent reports (as ``report_of`` has it), and what follows is applied."""
        events = decide_report(self.cluster, report_of(what, key, uid, host, *values), self.now)
        self.apply(*events)
        return events

    def configure(self, conf: Conf | None = None, **changes: Any) -> None:
        """Take a configuration, or the one in force with changes."""
        self.apply(ev.Configured(at=self.now, conf=conf or replace(self.cluster.conf, **changes)))

    def queues(self, *queues: QueueConfig) -> None:
        """Configure these queues only."""
        self.configure(queues=queues)

    def host_conf(self, *hosts: HostConfig) -> None:
        """Configure hosts (MXJ, resources, thresholds); they still have to join."""
        self.configure(hosts=hosts)

    def hosts(
        self,
        *names: str,
        slots: int = 4,
        mem: int = 16_000,
        gpus: int = 0,
        load: dict[str, float] | None = None,
        **facts: Any,
    ) -> None:
        """Hosts join, are up and idle."""
        for name in names:
            cards = tuple(Gpu(uuid=f"GPU-{name}-{at}", index=at, model="H200", memory=140_000) for at in range(gpus))
            known: dict[str, Any] = {"ncpus": slots, "max_mem": mem, "max_swap": 8_000, "max_tmp": 10_000, "gpus": cards} | facts
            self.apply(ev.HostJoined(at=self.now, host=name, facts=Facts(**known)), ev.HostUp(at=self.now, host=name))
            self.load(name, **{"mem": float(mem), **(load or {})})

    def load(self, host: str, **indices: float) -> None:
        """A host reports these load indices (others: idle)."""
        self.soft.load[host] = QUIET | indices

    def spec(self, user: str = "alice", queue: str = "", gpu: str = "", **fields: Any) -> int:
        """The number of a spec; a new one is added. ``gpu`` is text as of ``bsub -gpu``."""
        if gpu:
            fields["gpu"] = merge(parse_gpu(gpu), GpuReq())
        fields["max_slots"] = max(fields.get("slots", 1), fields.get("max_slots", 1))
        spec = Spec(user=user, queue=queue or self.cluster.conf.queues[0].name, **fields)
        number = self.cluster.spec_numbers.get(spec)
        if number is None:
            number = self.cluster.next_spec
            self.apply(ev.SpecAdded(at=self.now, spec=number, value=spec))
        return number

    def submit(self, name: str = "job", array: str = "", limit: int = 0, held: bool = False, **fields: Any) -> int:
        """Submit a job (or an array of these indices); the job id. ``fields`` are those of ``Spec``."""
        key = self.cluster.next_job
        indices = Ranges.parse(array) if array else None
        event = ev.JobSubmitted(
            at=self.now,
            key=key,
            spec=self.spec(**fields),
            name=name,
            held=held,
            indices=indices,
            limit=limit,
            spec_text=f"{name}[{array}]" if array else "",
        )
        self.apply(event)
        return key

    def schedule(self, memory: SchedulerCache | None = None) -> Plan:
        """One cycle."""
        return schedule(self.cluster, self.soft, self.now, self.local, memory or self.memory)

    def accept(self, plan: Plan) -> list[ev.Event]:
        """What the master makes of a plan, applied."""
        self.plans += 1
        events = accept_plan(self.cluster, plan, self.now, f"{self.plans:08x}")
        self.apply(*events)
        return events

    def step(self) -> dict[int, dict[str, int]]:
        """One cycle, accepted: job key to its hosts and slots."""
        plan = self.schedule()
        events = self.accept(plan)
        assert len(events) == len(plan.placements), "a plan made on this very version is accepted whole"
        self.soft.why.update(plan.why)
        self.soft.why_job = plan.why_job
        self.wake_at = plan.wake_at
        return {p.key: {part.host: part.slots for part in p.parts} for p in plan.placements}

    def finish(self, key: int, status: int = 0) -> None:
        """A running job ends and every part of it is gone."""
        job = self.cluster.jobs.rows[key]
        assert job.run is not None
        for part in job.run.parts:
            self.apply(ev.PartGone(at=self.now, key=key, attempt=job.attempt, host=part.host))
        state = JobState.EXIT if status else JobState.DONE
        self.apply(ev.JobFinished(at=self.now, key=key, state=state, end=End(status=status, at=self.now)))

    def leave(self, key: int) -> None:
        """Nothing of a job that is to wait again is left on its hosts: it waits."""
        run = self.cluster.jobs.rows[key].run
        assert run is not None
        for part in run.parts:
            self.apply(ev.PartGone(at=self.now, key=key, attempt=run.number, host=part.host))
        self.apply(ev.JobRequeued(at=self.now, key=key))

    def later(self, seconds: float) -> None:
        """Time passes, and what is reserved for a part of a job's life decays."""
        self.now += seconds
        self.apply(*decay_rusage(self.cluster, self.now).events)

    def running(self) -> dict[int, dict[str, int]]:
        """Started jobs with hosts and slots."""
        rows = self.cluster.jobs.rows
        runs = {key: rows[key].run for key in self.cluster.started}
        return {key: {part.host: part.slots for part in run.parts} for key, run in runs.items() if run is not None}

    def why(self, key: int) -> list[tuple[int, int]]:
        """Why a job's class waits, after ``step``: (reason, number of hosts)."""
        found: WhyClass | None = self.soft.why.get(self.cluster.get(key).spec)
        return [] if found is None else [(code, count) for code, count, _ in found.reasons]

    def why_names(self, key: int) -> list[tuple[str, Sequence[str]]]:
        """As ``why``, with the names of reasons and hosts."""
        found = self.soft.why.get(self.cluster.get(key).spec)
        known = {int(reason): reason.name for reason in PendReason}
        return [(known.get(code, str(code)), hosts) for code, _, hosts in found.reasons] if found is not None else []

    def queue_switch(self, queue: str, open: bool = True, active: bool = True) -> None:
        """badmin qopen, qclose, qact, qinact."""
        self.apply(ev.QueueSwitched(at=self.now, queue=queue, open=open, active=active, by="admin"))

    def host_switch(self, host: str, closed: bool) -> None:
        """badmin hopen, hclose."""
        self.apply(ev.HostSwitched(at=self.now, host=host, closed=closed, by="admin"))

    def pending(self) -> set[int]:
        """Ids of jobs and arrays that wait."""
        return {job_of(key) for jobs in self.cluster.pending.values() for key in jobs}


def one_host(slots: int = 1) -> World:
    """A world with the one host h1."""
    world = World()
    world.hosts("h1", slots=slots)
    return world
