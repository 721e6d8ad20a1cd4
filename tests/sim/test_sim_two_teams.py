"""Two teams share a cluster: little of it is idle while anybody wants it, and no team is kept under its share for long."""

from __future__ import annotations

import random
from heapq import heappop, heappush

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import FairShare, JobAction, JobControl, Preemption
from lavad.core import events as ev
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Conf, Params
from tests.support.worlds.world import World

HOUR = 3600.0
SLOTS = 64
SHARES = {"red": 1, "blue": 1}
LONGEST = 2 * HOUR
"""Of all jobs."""
PATIENCE = 1.25 * LONGEST
"""A team that comes back waits for the other's jobs to end, and a little for room for its gangs."""


def share_conf(split: bool) -> Conf:
    """One queue that both teams share fairly, and a queue for work that may be preempted; ``split``: half the hosts each."""
    share = FairShare(shares=tuple(SHARES.items()), hist_hours=1.0)
    queues: tuple[QueueConfig, ...] = (
        QueueConfig(
            name="shared", priority=40, share=share, preemption=Preemption(preemptive=True, preempts=(("scavenge", None),))
        ),
        QueueConfig(name="scavenge", priority=1, job_controls=(JobControl(JobAction.SUSPEND, "brequeue"),)),
    )
    if split:
        halves = [tuple(f"h{at}" for at in range(8 * half, 8 * half + 8)) for half in range(2)]
        queues = tuple(QueueConfig(name=team, priority=40, hosts=halves[at]) for at, team in enumerate(SHARES))
    return Conf(
        queues=queues,
        params=Params(parallel_sched_by_slot=True),
        hosts=tuple(HostConfig(name=f"h{at}", slots=4) for at in range(16)),
    )


class Teams:
    """A trace of two teams: blue works by day, red all the time, each wants more than its half when it works."""

    def __init__(self, split: bool = False, scavenge: bool = False) -> None:
        self.world = World(share_conf(split))
        self.world.hosts(*(f"h{at}" for at in range(16)), slots=4)
        self.split, self.scavenge = split, scavenge
        self.random = random.Random(11)
        self.begin = self.world.now
        self.ends: list[tuple[float, int, str]] = []
        self.busy = 0.0
        self.best = 0.0
        self.under = dict.fromkeys(SHARES, 0.0)
        """Seconds in a row for which a team that wants more has had less than its share."""
        self.longest = dict.fromkeys(SHARES, 0.0)

    def run(self, hours: float) -> None:
        """Minute by minute."""
        world = self.world
        while world.now < self.begin + hours * HOUR:
            self._come()
            world.step() if not self.scavenge else world.accept(world.schedule())
            for key in world.cluster.started:
                run = world.cluster.jobs.rows[key].run
                if run is not None and run.dispatched == world.now:
                    heappush(self.ends, (world.now + self.random.uniform(0.2, 1) * LONGEST, key, run.uid))
            self._leave_requeued()
            self._count(60.0)
            world.now += 60.0
            while self.ends and self.ends[0][0] <= world.now:
                _, key, uid = heappop(self.ends)
                job = world.cluster.jobs.rows.get(key)
                if job is not None and job.run is not None and job.run.uid == uid and job.state is JobState.RUN:
                    world.finish(key)

    def _leave_requeued(self) -> None:
        """What is told to make way is gone within the minute."""
        world = self.world
        for key in list(world.cluster.suspended):
            job = world.cluster.jobs.rows[key]
            if job.preempted_for_good and job.run is not None:
                for part in job.run.parts:
                    world.apply(ev.PartGone(at=world.now, key=key, attempt=job.run.number, host=part.host))
                world.apply(ev.JobRequeued(at=world.now, key=key))

    def _come(self) -> None:
        hour = (self.world.now - self.begin) / HOUR % 24
        if self._waiting("red") < 40:
            self._submit("red")
        if 8 <= hour < 18 and self._waiting("blue") < 40:
            self._submit("blue")
        if self.scavenge and self._waiting("nobody") < 80:
            for _ in range(80):
                self.world.submit(user="nobody", queue="scavenge", slots=1)

    def _submit(self, team: str) -> None:
        for _ in range(20):
            self.world.submit(user=team, queue=team if self.split else "shared", slots=self.random.choice([1, 1, 2, 4]))

    def _waiting(self, team: str) -> int:
        cluster = self.world.cluster
        return sum(len(jobs) for number, jobs in cluster.pending.items() if cluster.specs.rows[number].user == team)

    def _count(self, seconds: float) -> None:
        used = dict.fromkeys((*SHARES, "nobody"), 0)
        for key in self.world.cluster.started:
            job = self.world.cluster.jobs.rows[key]
            if job.run is not None and not job.preempted_for:
                used[self.world.cluster.specs.rows[job.spec].user] += sum(part.slots for part in job.run.parts)
        assert sum(used.values()) <= SLOTS
        wants = any(self._waiting(team) for team in (*SHARES, "nobody"))
        self.busy += seconds * sum(used.values())
        self.best += seconds * (SLOTS if wants else sum(used.values()))
        for team in SHARES:
            is_under = self._waiting(team) > 0 and used[team] < SLOTS / 2 - 3
            self.under[team] = self.under[team] + seconds if is_under else 0.0
            self.longest[team] = max(self.longest[team], self.under[team])


def test_shared_fairly_little_is_idle_and_nobody_is_kept_under_its_share() -> None:
    """Utilisation at least 0.9 of the best, and no team that wants more under its share for much longer than a job."""
    teams = Teams()
    teams.run(30)
    assert teams.busy >= 0.9 * teams.best
    assert max(teams.longest.values()) <= PATIENCE


def test_half_the_hosts_each_wastes_the_night() -> None:
    """The same trace on a cluster that is split: nobody is under its share, and a sixth of it is idle."""
    teams = Teams(split=True)
    teams.run(30)
    assert teams.busy < 0.87 * teams.best


def test_scavengers_fill_what_is_idle_and_make_way() -> None:
    """With a queue of work that may be preempted nearly nothing is idle, and both teams fare as without it."""
    teams = Teams(scavenge=True)
    teams.run(30)
    assert teams.busy >= 0.97 * teams.best == pytest.approx(0.97 * SLOTS * 30 * HOUR)
    assert max(teams.longest.values()) <= PATIENCE


def test_the_checks_see_a_team_that_is_kept_under_its_share() -> None:
    """First come, first served lets red, which came first, keep all of it."""
    teams = Teams()
    plain = tuple(replace(queue, share=None) for queue in teams.world.cluster.conf.queues)
    teams.world.queues(*plain)
    for _ in range(2000):
        teams.world.submit(user="red", queue="shared", slots=1)
    teams.run(30)
    assert teams.longest["blue"] > PATIENCE
