"""The master of a site: what may not start is checked at each start, counted from jobs and their events alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control import by_time
from lavad.core.decide.control.depart import depart, is_due
from lavad.core.decide.depend.depend import ConditionQueue
from lavad.core.decide.reserve import reservations
from lavad.core.events.apply import apply_all
from lavad.core.lang.ids import index_of, job_of, show
from lavad.core.lang.states import JobState
from lavad.core.lang.windows import local_of
from lavad.core.plan.plan import Plan
from lavad.sched.state.scheduler_cache import SchedulerCache
from proto.answers import Answer
from tests.sim.agents import Host
from tests.sim.checks import check_limit, require, running
from tests.sim.master import Ask, Master
from tests.sim.net import Stream

LICENCES = 3
GROUP = "/team"
MANY = 100_000
BRUN = "brun"
"""How the uids of attempts begin that an administrator starts."""

OFTEN = 5
"""Of so many cycles one is compared with that of a scheduler without memory."""
DECIDED = ("placements", "chunks", "preemptions", "resumes", "suspensions", "releases", "holds", "growths")


def local(now: float) -> datetime:
    """The time of day at the site."""
    return datetime.fromtimestamp(now, UTC)


class SiteMaster(Master):
    """Judges conditions, begins and ends reservations, lets hosts leave."""

    capacity_changes = True
    cycle = 1.0

    def __init__(self, *words: Any) -> None:
        self.conditions: ConditionQueue | None = None
        super().__init__(*words)
        self.conditions = ConditionQueue(self.cluster.conditions)
        self._loop(1.0, self._turn_of_reservations)
        self._loop(2.0, self._depart)

    def _turn_of_reservations(self) -> None:
        if any(self.time.now >= row.end for row in self.cluster.reservations.rows.values()):
            self.ask(lambda cluster, now: reservations.turn(cluster, now, local(now)))

    def _depart(self) -> None:
        for name in [name for name in self.cluster.hosts.rows if is_due(self.cluster, name, self.time.now)]:
            self.ask(partial(_departs, name), answer=partial(self._left, name))
        if by_time.migrations(self.cluster, self.time.now).events:
            self.ask(by_time.migrations)

    def _left(self, host: str, answer: Answer | None, why: str) -> None:
        if host not in self.cluster.hosts.rows:
            self.sessions.forget_host_left(host)
            self.leases.forget(host)
            if host in self.streams:
                self.streams[host].cut()

    def plan(self, memory: SchedulerCache) -> Plan:
        """What the scheduler proposes; now and then also as one that remembers nothing of earlier cycles would."""
        plan = super().plan(memory)
        if self.seeds % OFTEN == 0:
            fresh = super().plan(SchedulerCache(chunks=True))
            for name in DECIDED:
                kept, anew = getattr(plan, name), getattr(fresh, name)
                require(kept == anew, f"{name} are {kept}, and without memory {anew}")
        return plan

    def greet(self, host: Host, stream: Stream) -> None:
        """A host that the configuration does not name may come back only while it is still to leave."""
        if host.name in self.cluster.host_conf or host.name in self.cluster.hosts.rows:
            super().greet(host, stream)
        else:
            stream.cut()

    def _decide(self, ask: Ask, events: list[ev.Event]) -> Answer:
        answer: Answer = {}
        for decide in ask.decides:
            decided = decide(self.cluster, self.time.now + self.day_clock)
            self._take(decided.events, events)
            while decided.more is not None:
                decided = decided.more(self.cluster, self.time.now + self.day_clock)
                self._take(decided.events, events)
            answer = decided.answer
        return answer

    def _take(self, new: list[ev.Event], events: list[ev.Event]) -> None:
        started = [event for event in new if isinstance(event, ev.JobDispatched)]
        by_hand = self._by_hand([*events, *new]) if started else set()
        before = {event.key: self._why_not(event, events) for event in started if event.key not in by_hand}
        apply_all(self.cluster, new)
        events += new
        for event in started:
            require(not before.get(event.key), f"job {show(event.key)} is started: {before.get(event.key)}")
        if started:
            amended = {
                event.key for event in [*self.disk.events, *events] if isinstance(event, ev.JobModified) and event.reserved
            }
            self._check_room(started, by_hand, amended)
        while self.conditions:
            judged = self.conditions.settle(self.cluster, self.time.now, local_of(local(self.time.now)), MANY)
            apply_all(self.cluster, judged)
            events += judged

    def _by_hand(self, events: list[ev.Event]) -> set[int]:
        """Jobs that an administrator has started, whatever their conditions and limits."""
        past = (event for event in [*self.disk.events, *events] if isinstance(event, ev.JobDispatched))
        return {event.key for event in past if event.uid.startswith(BRUN)}

    def _why_not(self, event: ev.JobDispatched, events: list[ev.Event]) -> str:
        """Why this job may not start now; "": it may."""
        cluster = self.cluster
        row = cluster.jobs.rows.get(event.key) or cluster.arrays.rows[job_of(event.key)]
        spec = cluster.specs.rows[row.spec]
        if row.depend is not None and not self._holds(row.depend.text, index_of(event.key), events):
            return f"{row.depend.text} does not hold"
        if not cluster.queue_state(spec.queue).active:
            return f"queue {spec.queue} is inactive"
        if closed := [part.host for part in event.parts if cluster.hosts.rows[part.host].closed]:
            return f"hosts {closed} are closed"
        if spec.reservation:
            rsv = cluster.reservations.rows.get(spec.reservation)
            if rsv is None or not rsv.begin <= self.time.now < rsv.end:
                return f"it is not the time of {spec.reservation}"
            if not {part.host for part in event.parts} <= {name for name, _ in rsv.hosts}:
                return f"{event.parts} are not in {rsv.hosts}"
        return ""

    def _holds(self, condition: str, index: int, events: list[ev.Event]) -> bool:
        """The condition by what has finished, as the events of all times say it."""
        finished: dict[int, dict[int, bool]] = {}
        elements: dict[int, set[int]] = {}
        for event in [*self.disk.events, *events]:
            if isinstance(event, ev.JobFinished):
                finished.setdefault(job_of(event.key), {})[index_of(event.key)] = event.state is JobState.DONE
            elif isinstance(event, ev.ElementsKilled):
                finished.setdefault(event.key, {}).update(dict.fromkeys(event.elements, False))
            elif isinstance(event, ev.JobSubmitted):
                elements[event.key] = set(event.indices) if event.indices is not None else {0}

        def stands(found: tuple[str, str, str]) -> bool:
            what, job, same = found
            ended = finished.get(int(job), {})
            if same:
                return ended.get(index) is True if what == "done" else index in ended
            return set(ended) == elements[int(job)] and (what == "ended" or all(ended.values()))

        questions = map(stands, re.findall(r"(done|ended)\((\d+)(\[\*\])?\)", condition))
        return any(questions) if "||" in condition else all(questions)

    def _check_room(self, started: list[ev.JobDispatched], by_hand: set[int], amended: set[int]) -> None:
        """After starts: no more in use than there is."""
        cluster = self.cluster
        now = running(cluster)
        touched = {part.host for event in started for part in event.parts}
        for host in touched:
            here = [(job, spec, part) for job, spec, parts in now for part in parts if part.host == host]
            used = sum(part.slots for job, _, part in here if not job.preempted_for)
            most = cluster.slots_of(host) if host in cluster.host_conf else 0
            require(used <= most, f"{host} has {used} slots in use of {most}")
            awake = [(job, spec) for job, spec, _ in here if not job.preempted_for and job.key not in by_hand]
            alone = any(spec.exclusive for _, spec in awake)
            require(
                not alone or len(awake) == 1, f"{host} is not alone with its exclusive job: {[show(j.key) for j, _ in awake]}"
            )
        licences = sum(dict(part.reserved).get("lic", 0.0) for job, _, parts in now if job.key not in amended for part in parts)
        require(licences <= LICENCES, f"{licences} of {LICENCES} licences are in use")
        for event in started:
            job = cluster.jobs.rows[event.key]
            wanted = re.search(r"lic=(\d+)", cluster.specs.rows[job.spec].resreq)
            has = sum(dict(part.reserved).get("lic", 0.0) for part in event.parts)
            lacks = wanted is not None and int(wanted[1]) != has and event.key not in by_hand
            require(not lacks, f"job {show(event.key)} has {has} of the licences in {wanted and wanted[0]}")
        keys = {event.key for event in started} - by_hand
        for limit in cluster.conf.limits:
            check_limit(cluster, limit, keys - amended)
        row = cluster.groups.rows.get(GROUP)
        inside = [job.key for job, spec, _ in now if spec.group == GROUP and not job.preempted_for]
        if row is not None and row.limit is not None and keys & set(inside):
            require(len(inside) <= row.limit, f"{len(inside)} jobs of {GROUP} run, of {row.limit}")


def _departs(host: str, cluster: Cluster, now: float) -> Decided:
    return Decided(events=depart(cluster, host, now))
