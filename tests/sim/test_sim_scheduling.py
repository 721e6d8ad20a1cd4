"""The scheduler under random sites: what it may never do, counted apart from its own sums. Every check catches a seeded bug."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from config.model.cluster import HostConfig, Limit
from config.model.queue import QueueConfig
from config.model.values import FairShare, Limits, Preemption
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.decide.report.gpus import Cause, close_gpu
from lavad.core.events import IllegalMove
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Conf, Params, ResourceConf
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.sim.checks import (
    Broken,
    Promises,
    check_gangs,
    check_gpu_limits,
    check_gpus,
    check_hosts,
    check_licences,
    check_limits,
    check_shares,
    require,
)
from tests.support.worlds.virtual_time import VirtualSite
from tests.support.worlds.world import World

HOSTS = ("h1", "h2", "h3")
LONGEST = 30
"""Minutes: the longest run limit."""


def conf(slots: int = 4, licences: float = 3.0, bob: int = 5, cards: int = 2, reserves: int = 10_000) -> Conf:
    return Conf(
        queues=(
            QueueConfig(name="big", priority=60, slot_reserve=reserves),
            QueueConfig(name="normal", priority=30),
            QueueConfig(name="fill", priority=20, backfill=True),
            QueueConfig(
                name="urgent", priority=80, preemption=Preemption(preemptive=True, preempts=(("fill", None),)), hosts=("h1",)
            ),
        ),
        hosts=tuple(HostConfig(name=name, slots=slots) for name in HOSTS),
        resources=(ResourceConf(name="lic", kind="numeric", consumable=True, locations=((licences, ("all",)),)),),
        limits=(
            Limit(name="bob", users=("bob",), slots=bob),
            Limit(name="cards", users=("ann",), resources=(("ngpus_physical", float(cards)),)),
        ),
        params=Params(parallel_sched_by_slot=True),
    )


jobs = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["ann", "bob"]),
        "queue": st.sampled_from(["normal", "fill", "fill", "urgent"]),
        "slots": st.sampled_from([1, 1, 2, 3, 4, 6]),
        "resreq": st.sampled_from(["", "", "rusage[lic=1]", "rusage[lic=2]", "rusage[mem=6000]", "span[ptile=1]"]),
        "gpu": st.sampled_from(["", "num=1", "num=1:j_exclusive=yes", "num=2", "num=2:gmem=60G"]),
        "exclusive": st.sampled_from([False, False, False, True]),
        "limits": st.integers(1, LONGEST).map(lambda minutes: Limits(run=60 * minutes)),
    }
)


class Site(RuleBasedStateMachine):
    """A right scheduler. ``seen`` is the configuration that it schedules by, ``write`` what becomes of its decisions."""

    seen: ClassVar[Conf] = conf()
    keeps_promises: ClassVar[bool] = True
    """Whether its promises are looked at: what is seeded may break others than it is to break."""

    @initialize()
    def begin(self) -> None:
        self.world = World(conf())
        self.world.hosts(*HOSTS, slots=4, gpus=2)
        self.memory = SchedulerCache()
        self.promises = Promises()
        self.kept: dict[int, float] = {}

    def write(self, events: list[ev.Event]) -> list[ev.Event]:
        return events

    @rule(name=st.sampled_from(HOSTS), card=st.integers(0, 1), cause=st.sampled_from([None, *Cause]))
    def gpu_fails(self, name: str, card: int, cause: Cause | None) -> None:
        """What its agent says of a GPU; None: an administrator opens it again."""
        self.promises.disturb()
        world, gpu = self.world, f"GPU-{name}-{card}"
        if cause is None:
            world.apply(ev.GpuSwitched(at=world.now, host=name, gpu=gpu, closed=False, by="boss"))
        else:
            world.apply(*close_gpu(world.cluster, name, gpu, cause, "lost", world.now))

    @rule(fields=jobs, array=st.sampled_from(["", "", "", "1-6"]))
    def submit(self, fields: dict[str, Any], array: str) -> None:
        if fields["queue"] == "urgent":
            self.promises.disturb()
        self.world.submit(array=array, limit=2 if array else 0, **fields)

    @rule(slots=st.sampled_from([6, 8, 12]), minutes=st.integers(1, LONGEST))
    def submit_big(self, slots: int, minutes: int) -> None:
        self.world.submit(user="ann", queue="big", slots=slots, limits=Limits(run=60 * minutes))

    @rule(at=st.integers(0, 30))
    def finish(self, at: int) -> None:
        """A job ends before its run limit."""
        running = [key for key in self.world.cluster.started if self.world.cluster.jobs.rows[key].state is JobState.RUN]
        if running:
            self.world.finish(running[at % len(running)])

    @rule(minutes=st.sampled_from([1, 5, 20]))
    def later(self, minutes: int) -> None:
        """Minute by minute: run limits are kept, and there is a cycle whenever something has ended."""
        for _ in range(minutes):
            self.world.now += 60
            over = [key for key in self.world.cluster.started if self._is_over(key)]
            for key in over:
                self.world.finish(key)
            if over:
                self.cycle()

    def _is_over(self, key: int) -> bool:
        job = self.world.cluster.jobs.rows[key]
        limit = self.world.cluster.specs.rows[job.spec].limits.run
        assert job.run is not None
        assert limit is not None
        return job.state is JobState.RUN and self.world.now >= job.run.dispatched + limit + job.run.paused

    @rule(name=st.sampled_from(HOSTS), closed=st.booleans())
    def switch(self, name: str, closed: bool) -> None:
        self.promises.disturb()
        self.world.host_switch(name, closed)

    @rule()
    def cycle(self) -> None:
        """One cycle of the scheduler that is tried; promises are those of a right one."""
        world = self.world
        right = schedule(world.cluster, world.soft, world.now, world.local, SchedulerCache())
        self.kept = {job_of(key): promise.start for key, promise in right.promises.items() if promise.start}
        plan = right
        if self.seen != world.cluster.conf:
            ours = world.cluster.conf
            world.configure(self.seen)
            plan = schedule(world.cluster, world.soft, world.now, world.local, SchedulerCache())
            events = accept_plan(world.cluster, plan, world.now, f"c{world.cluster.version}.")
            world.configure(ours)
        else:
            plan = schedule(world.cluster, world.soft, world.now, world.local, self.memory)
            events = accept_plan(world.cluster, plan, world.now, f"c{world.cluster.version}.")
        world.apply(*self.check_open(self.write(events)))
        if any(isinstance(event, ev.JobSuspended | ev.JobResumed) or self._goes_first(event) for event in events):
            self.promises.disturb()
        if self.keeps_promises:
            self.promises.check(world.cluster, self.kept, world.now, 60.0 * LONGEST)

    def check_open(self, events: list[ev.Event]) -> list[ev.Event]:
        """No job that starts is given a closed GPU."""
        for event in (event for event in events if isinstance(event, ev.JobDispatched)):
            for part in event.parts:
                closed = {gpu.uuid for gpu in self.world.cluster.hosts.rows[part.host].closed_gpus}
                require(not closed.intersection(part.gpus), f"job {event.key} is given closed GPUs of {part.host}")
        return events

    def _goes_first(self, event: ev.Event) -> bool:
        """A job of a queue that goes before the reserving one started; one that waits there is not part of a promise."""
        cluster = self.world.cluster
        return isinstance(event, ev.JobDispatched) and cluster.specs.rows[cluster.jobs.rows[event.key].spec].queue == "urgent"

    @invariant()
    def nothing_is_given_twice(self) -> None:
        if not hasattr(self, "world"):
            return
        cluster = self.world.cluster
        check_hosts(cluster, 4, 16_000)
        check_gpus(cluster, 140_000)
        check_licences(cluster, "lic", 3)
        check_limits(cluster, "bob", 5)
        check_gpu_limits(cluster, "ann", 2)
        check_gangs(cluster)
        check_invariants(cluster)


def run(machine: type[Site], examples: int = 40) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            database=None,
            phases=(Phase.generate,),
            derandomize=True,
        ),
    )


def test_a_right_scheduler_breaks_nothing() -> None:
    """No host, GPU, licence or limit over-allocated, gangs whole, the head's promise kept, no big job starves."""
    run(Site, 100)


def _dispatches(events: list[ev.Event], change: Callable[[ev.JobDispatched], ev.JobDispatched]) -> list[ev.Event]:
    return [change(event) if isinstance(event, ev.JobDispatched) else event for event in events]


class FullHosts(Site):
    """Schedules as if hosts had more slots."""

    keeps_promises = False
    seen = conf(slots=6)


class MoreLicences(Site):
    """Counts more licences than were bought."""

    keeps_promises = False
    seen = conf(licences=9.0)


class NoLimits(Site):
    """Does not know bob's limit."""

    keeps_promises = False
    seen = conf(bob=100)


class NoGpuLimits(Site):
    """Does not know ann's limit on GPUs."""

    keeps_promises = False
    seen = conf(cards=100)


class NoReservation(Site):
    """Lets small jobs pass a big one for ever."""

    seen = conf(reserves=0)


class OneGpu(Site):
    """Gives everybody the first GPU of a host."""

    keeps_promises = False

    def write(self, events: list[ev.Event]) -> list[ev.Event]:
        def change(event: ev.JobDispatched) -> ev.JobDispatched:
            cards = ((part, tuple(f"GPU-{part.host}-0" for _ in part.gpus)) for part in event.parts)
            return replace(event, parts=tuple(replace(part, gpus=gpus) for part, gpus in cards))

        return _dispatches(events, change)


class ClosedGpus(Site):
    """Does not know that GPUs are closed."""

    keeps_promises = False

    def write(self, events: list[ev.Event]) -> list[ev.Event]:
        def change(event: ev.JobDispatched) -> ev.JobDispatched:
            closed = {
                part.host: [gpu.uuid for gpu in self.world.cluster.hosts.rows[part.host].closed_gpus] for part in event.parts
            }
            cards = ((part, (*closed[part.host], *part.gpus)[: len(part.gpus)]) for part in event.parts)
            return replace(event, parts=tuple(replace(part, gpus=gpus) for part, gpus in cards))

        return _dispatches(events, change)


class HalfGangs(Site):
    """Starts what of a gang there is room for."""

    keeps_promises = False

    def write(self, events: list[ev.Event]) -> list[ev.Event]:
        return _dispatches(events, lambda event: replace(event, parts=event.parts[:1]))


class Forgetful(Site):
    """Starts the jobs of its last plan once more."""

    last: ClassVar[list[ev.Event]] = []

    def write(self, events: list[ev.Event]) -> list[ev.Event]:
        again, type(self).last = self.last, [event for event in events if isinstance(event, ev.JobDispatched)]
        live = [event for event in again if isinstance(event, ev.JobDispatched) and event.key in self.world.cluster.started]
        return [*events, *live]


@pytest.mark.parametrize(
    ("machine", "story"),
    [
        (FullHosts, "slots in use of 4"),
        (MoreLicences, "lic are in use"),
        (NoLimits, "bob has"),
        (NoGpuLimits, "ann has . GPUs of 2"),
        (NoReservation, "was promised"),
        (OneGpu, "GPU"),
        (ClosedGpus, "is given closed GPUs"),
        (HalfGangs, "has . slots of"),
        (Forgetful, "JobDispatched met a job in RUN"),
    ],
)
def test_every_check_catches_its_bug(machine: type[Site], story: str) -> None:
    with pytest.raises((Broken, IllegalMove), match=story):
        run(machine, 200)


def test_shares_that_are_not_kept_are_caught() -> None:
    """1:2:3 over 12 hours holds within 5 % (test_fairshare_converges), and equal shares do not pass for it."""
    shares = {"ann": 1, "bob": 2, "cid": 3}

    def used(conf_shares: dict[str, int]) -> dict[str, float]:
        share = FairShare(shares=tuple(conf_shares.items()))
        world = World(Conf(queues=(QueueConfig(name="fair", share=share),), params=Params(parallel_sched_by_slot=True)))
        world.hosts(*HOSTS, slots=40)
        site = VirtualSite(world, length=lambda user: {"ann": 1700.0, "bob": 1100.0, "cid": 1450.0}[user])

        def refill(world: World) -> None:
            waiting = dict.fromkeys(shares, 0)
            for number, pending in world.cluster.pending.items():
                waiting[world.cluster.specs.rows[number].user] += len(pending)
            for user, count in waiting.items():
                for _ in range(60 - count if count < 30 else 0):
                    world.submit(user=user)

        site.run(12 * 3600.0, refill)
        return site.slot_seconds

    check_shares(used(shares), shares, 0.05)
    with pytest.raises(Broken, match="of its share"):
        check_shares(used(dict.fromkeys(shares, 1)), shares, 0.05)
