"""Growth of resizable jobs: running jobs that want more get what waiting jobs of the same and of higher queues leave.

Rule: a growth never takes reserved slots; more slots on hosts that the job has come before new hosts; one growth of a job
at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as replace_fields
from itertools import chain

from msgspec.structs import replace

from lavad.core.job.job import Job, Placed
from lavad.core.job.resize import by_hosts, wants, why_not_grow
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Growth
from lavad.sched.hosts.candidates import Candidates
from lavad.sched.hosts.choose import Offer, choose
from lavad.sched.hosts.fit import place_on, units
from lavad.sched.hosts.gates import why_not_queue
from lavad.sched.hosts.over_hosts import retries
from lavad.sched.needs.needs import PLAIN, Need, ways_of
from lavad.sched.needs.rows import Row, read_values
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible

MAX_GROWTHS = 200
"""Growths of one cycle."""


class ElasticGrowth:
    """The growths of one cycle, jobs of high queues first."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.found: list[Growth] = []
        self._served: list[tuple[int, float, Job, Spec]] = []
        """Those that had their turn where what others do not use may be lent at the end of the cycle."""
        self._line = sorted(self._wanting(), key=lambda row: row[:2]) if state.cluster.use.elastic else []

    def _wanting(self) -> Iterator[tuple[int, float, Job, Spec]]:
        state = self.state
        cluster = state.cluster
        for key in cluster.use.elastic:
            job = cluster.jobs.rows[key]
            spec = cluster.specs.rows[job.spec]
            queue = cluster.queue_conf.get(spec.queue)
            if job.run is not None and job.run.grow_after > state.now:
                state.wake(job.run.grow_after)
            if queue is not None and job.state is JobState.RUN and not why_not_grow(job, spec, state.now):
                yield -queue.priority, job.submitted, job, spec

    @property
    def waiting(self) -> bool:
        """Whether any job has not had its turn."""
        return bool(self._line)

    def before(self, priority: int) -> Iterator[Need]:
        """Serve all that come before waiting jobs of a queue of this priority.

        Yields each need before it is served, for the caller to make it the need in turn.
        """
        while self._line and -self._line[0][0] > priority:
            yield from self._next()

    def rest(self) -> Iterator[Need]:
        """Serve all that have not had their turn, as ``before`` does, and again those that got nothing: more may be lent now."""
        grown = {growth.key for growth in self.found}
        self._line = [one for one in (*self._served, *self._line) if one[2].key not in grown]
        while self._line:
            yield from self._next()

    def _next(self) -> Iterator[Need]:
        one = self._line.pop(0)
        _, _, job, spec = one
        if self.state.pools is not None or self.state.cache.rules.has_guarantees:
            self._served.append(one)
        need = self._need(job, spec)
        if need is None or self.state.free <= 0 or len(self.found) >= MAX_GROWTHS:
            return
        if why_not_queue(self.state, need.queue) or job.key in self.state.preempted:
            return
        yield need
        run = job.run
        with self.state.limits.of_started(() if run is None else (part.host for part in run.parts)):
            self._serve(job, spec, need)

    def _need(self, job: Job, spec: Spec) -> Need | None:
        """The job's need, for the slots that it wants more; None: it can have none."""
        state = self.state
        run = job.run
        queue = state.cluster.queue_conf.get(spec.queue)
        if run is None or queue is None:
            return None
        least, most = wants(run, spec)
        if not most:
            return None
        # at least two slots: a class of one-slot jobs is placed by other rules
        wanted = replace(spec, slots=least, max_slots=max(most, 2))
        found = ways_of(spec, queue)
        need = Need.of(job.spec, wanted, queue, state.cluster.conf, found[min(run.way, len(found) - 1)])
        if need.terms:
            # LSF: slots added to a job with a compound requirement are of its last term
            need = need.terms[-1]
            need.slots, need.most = least, max(most, 2)
        need.shared = ()
        if need.shape.per_job:
            rest = replace_fields(need.shape, per_job=())
            need.shape = PLAIN if rest == PLAIN else rest
        return need

    def _serve(self, job: Job, spec: Spec, need: Need) -> None:
        state, run = self.state, job.run
        assert run is not None
        most = min(wants(run, spec)[1], state.limits.left(spec)[0])
        if most < need.slots:
            return
        own = {part.host for part in run.parts}
        offers = self._offers(job, need)
        for some in chain([offers], retries(state, need, offers)):
            chosen = choose(state, need, some, most)
            parts = tuple(_placed(state, need.further(row.name in own), row, slots) for row, slots in chosen)
            if not parts or not state.limits.why_not(spec, parts):
                break
        else:
            return
        if not parts:
            return
        state.ledger.grow(spec, parts, own)
        state.shares.charge(spec, parts)
        for row, _ in chosen:
            state.renew(row)
        self.found.append(Growth(job.key, run.uid, parts))

    def _offers(self, job: Job, need: Need) -> list[Offer]:
        """What the hosts offer to the job, those that it has first."""
        run = job.run
        assert run is not None
        state = self.state
        own = {part.host for part in run.parts}
        staying = [part.host for part in run.parts if not part.leaving and not by_hosts(need.spec)]
        eligible, further = get_eligible(state, need), need.further(True)
        mine = [row for name in staying if (row := state.cache.by_name.get(name)) and not eligible.codes[row.index]]
        offers = [(row, units(state, further, row)[0]) for row in mine]
        offers += [(row, units(state, need, row)[0]) for row in Candidates(state, need, eligible) if row.name not in own]
        offers = [(row, count) for row, count in offers if count]
        if (need.shape.same or state.cache.mixed) and (first := state.cache.by_name.get(run.parts[0].host)) is not None:
            offers = [offer for offer in offers if _same(state, need, offer[0], first)]
        if need.one_host:
            offers = [offer for offer in offers if offer[0].name == run.parts[0].host]
        elif need.ptile:
            offers = [offer for offer in offers if offer[0].name not in own]
        offers.sort(key=lambda offer: offer[0].name not in own)
        return offers


def _same(state: CycleState, need: Need, row: Row, first: Row) -> bool:
    if row.host.facts.starter != first.host.facts.starter:
        return False
    here, there = (read_values(one, state.cluster, state.soft) for one in (row, first))
    return all(here.get(name) == there.get(name) for name in need.shape.same)


def _placed(state: CycleState, need: Need, row: Row, slots: int) -> Placed:
    """A part of the growth."""
    return replace(place_on(state, need, row, slots, False), decays=())
