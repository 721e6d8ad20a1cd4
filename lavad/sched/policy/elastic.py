"""Running jobs that want more: what is left after the waiting jobs of the same and of higher queues, and their promises.

Rule: a growth never takes what is held or promised; slots of hosts that the job has come before new hosts; one growth a job
at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as replace_fields

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
from lavad.sched.needs.needs import PLAIN, Need, ways_of
from lavad.sched.needs.rows import Row, read_values
from lavad.sched.state.cycle_state import View
from lavad.sched.state.eligible import find_base

MOST = 200
"""Growths of one cycle."""


class Growths:
    """Those that want more, those of high queues first; ``before`` serves all that come before a class."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.found: list[Growth] = []
        self._line = sorted(self._wanting(), key=lambda row: row[:2]) if view.cluster.use.elastic else []

    def _wanting(self) -> Iterator[tuple[int, float, Job, Spec]]:
        view = self.view
        cluster = view.cluster
        for key in cluster.use.elastic:
            job = cluster.jobs.rows[key]
            spec = cluster.specs.rows[job.spec]
            queue = cluster.queue_conf.get(spec.queue)
            if job.run is not None and job.run.grow_after > view.now:
                view.wake(job.run.grow_after)
            if queue is not None and job.state is JobState.RUN and not why_not_grow(job, spec, view.now):
                yield -queue.priority, job.submitted, job, spec

    def before(self, priority: int) -> Iterator[Need]:
        """The needs that are to be served before waiting jobs of a queue of this priority; each is followed by ``serve``."""
        while self._line and -self._line[0][0] > priority:
            yield from self._next()

    def rest(self) -> Iterator[Need]:
        """All that have not had their turn."""
        while self._line:
            yield from self._next()

    def _next(self) -> Iterator[Need]:
        _, _, job, spec = self._line.pop(0)
        need = self._need(job, spec)
        if need is None or self.view.free <= 0 or len(self.found) >= MOST:
            return
        if why_not_queue(self.view, need.queue) or job.key in self.view.preempted:
            return
        yield need
        with self.view.limits.of_started():
            self._serve(job, spec, need)

    def _need(self, job: Job, spec: Spec) -> Need | None:
        """As the job's own, of what it wants more; None if it can have nothing."""
        view = self.view
        run = job.run
        queue = view.cluster.queue_conf.get(spec.queue)
        if run is None or queue is None:
            return None
        least, most = wants(run, spec)
        if not most:
            return None
        # two slots at the least, as a class of one-slot jobs is placed by other rules
        wanted = replace(spec, slots=least, max_slots=max(most, 2))
        found = ways_of(spec, queue, view.cluster.conf)
        need = Need(job.spec, wanted, queue, view.cluster.conf, found[min(run.way, len(found) - 1)])
        if need.terms:
            # LSF: what is added to a compound requirement is of its last part
            need = need.terms[-1]
            need.slots, need.most = least, max(most, 2)
        if need.shape.per_job:
            rest = replace_fields(need.shape, per_job=())
            need.shape = PLAIN if rest == PLAIN else rest
        return need

    def _serve(self, job: Job, spec: Spec, need: Need) -> None:
        view, run = self.view, job.run
        assert run is not None
        most = min(wants(run, spec)[1], view.limits.left(spec)[0])
        if most < need.slots:
            return
        chosen = self._choose(job, need, most)
        own = {part.host for part in run.parts}
        parts = tuple(_placed(view, need, row, slots, row.name in own) for row, slots in chosen)
        if not parts or view.limits.why_not(spec, parts):
            return
        view.ledger.grow(spec, parts)
        view.shares.take(spec, parts)
        for row, _ in chosen:
            view.renew(row)
        self.found.append(Growth(job.key, run.uid, parts))

    def _choose(self, job: Job, need: Need, most: int) -> list[Offer]:
        run = job.run
        assert run is not None
        view = self.view
        own = {part.host for part in run.parts}
        staying = {part.host for part in run.parts if not part.leaving and not by_hosts(need.spec)}
        candidates = list(Candidates(view, need, find_base(view, need)))
        offers = [(row, units(view, need, row)[0]) for row in candidates if row.name not in own or row.name in staying]
        offers = [(row, count) for row, count in offers if count]
        if need.shape.same and (first := view.memory.by_name.get(run.parts[0].host)) is not None:
            offers = [offer for offer in offers if _same(view, need, offer[0], first)]
        if need.one_host:
            offers = [offer for offer in offers if offer[0].name == run.parts[0].host]
        elif need.ptile:
            offers = [offer for offer in offers if offer[0].name not in own]
        offers.sort(key=lambda offer: offer[0].name not in own)
        return choose(view, need, offers, most)


def _same(view: View, need: Need, row: Row, first: Row) -> bool:
    here, there = (read_values(one, view.cluster, view.soft) for one in (row, first))
    return all(here.get(name) == there.get(name) for name in need.shape.same)


def _placed(view: View, need: Need, row: Row, slots: int, own: bool) -> Placed:
    """A part of the growth; what is reserved once a host, the job has there already."""
    placed = replace(place_on(view, need, row, slots, False), fades=())
    if not own:
        return placed
    once = len(need.per_host)
    gpus = placed.gpus if need.gpu_per_task else ()
    return Placed(host=placed.host, slots=placed.slots, gpus=gpus, reserved=placed.reserved[once:], binds=placed.binds)
