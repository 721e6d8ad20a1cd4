"""Guaranteed shares of queues, of slots and GPUs: how many more a queue may take, and what others may reclaim of it.

What a queue deserves is worked out by ``core.rules.ownership`` from its guarantee, its share and what waits in it.

Rule: a queue gets more than it deserves only of what no other queue could use in this cycle. A queue that has less than it
deserves reclaims what others have beyond theirs; no queue is brought below what it deserves, unless by one job whose place
is guaranteed to another.
"""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core.cluster.gpu_book import is_exclusive
from lavad.core.decide.placement.preempt import given
from lavad.core.job.job import Job, Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.states import PreemptionAction
from lavad.core.plan.plan import Preemption
from lavad.core.rules import ownership
from lavad.core.rules.gpu_counts import slots_with_gpus
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.rules.ownership import GPUS, SLOTS, Resource
from lavad.core.site.pend_reason import PendReason
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.why_waiting import never_start


class Share:
    """What each queue has and deserves at this moment of the cycle, of slots or of GPUs."""

    def __init__(self, state: CycleState, what: Resource, never: frozenset[int]) -> None:
        self.state = state
        self.what = what
        cluster = state.cluster
        self.total = what.total(cluster)
        self._given_up = ownership.given_up(cluster, what)
        self._waiting = ownership.waiting(cluster, what, self.total, never)
        self.deserved = ownership.deal(self.total, ownership.claims(cluster, what, self._waiting))
        self._reclaimed: dict[str, int] = {}
        self._idle: dict[str, int] = {}
        self._seen = -1
        """How many changes of hosts ``_idle``, the GPUs of each host that no job is on, has taken in; -1: it is empty."""
        self._guaranteed = {queue.name: what.terms(queue)[2] for queue in cluster.conf.queues}

    def has(self, queue: str) -> int:
        """What a queue has now: without what preempted jobs gave up, and what was reclaimed in this cycle."""
        gone = self._given_up.get(queue, 0) + self._reclaimed.get(queue, 0)
        return self.what.on_ledger(self.state.ledger, queue) - gone

    def is_within(self, queue: str, more: int) -> bool:
        """Whether a queue would have no more than it deserves."""
        return self.has(queue) + more <= self.deserved.get(queue, 0)

    def is_guaranteed(self, queue: str, more: int) -> bool:
        """Whether a queue would have no more than is guaranteed to it."""
        return self.has(queue) + more <= self._guaranteed.get(queue, 0)

    def below_deserved(self, queue: str, asked: int) -> int | None:
        """How much a queue may take of what it deserves; None: a job that asks for so much takes it beyond that."""
        has, deserved = self.has(queue), self.deserved.get(queue, 0)
        return max(0, deserved - has) if has + asked <= deserved or has >= deserved else None

    def idle(self, spec: Spec) -> tuple[int, int]:
        """(What a job may take of what is idle, how much of it is kept for others). GPUs that are shared take more jobs."""
        others = {queue: guarantee for queue, guarantee in self._guaranteed.items() if queue != spec.queue}
        kept = sum(max(0, guarantee - self.has(queue)) for queue, guarantee in others.items())
        if self.what is SLOTS:
            return self.total - sum(map(self.has, others)) - self.has(spec.queue) - kept, kept
        if spec.gpu is not None and not is_exclusive(spec.gpu) and not kept:
            return UNLIMITED, 0
        return self._idle_gpus() - kept, kept

    def is_contended(self, spec: Spec) -> bool:
        """Whether jobs of other queues wait for it, or to have it again."""
        return any(more[queue] > 0 for more in (self._waiting, self._given_up) for queue in more if queue != spec.queue)

    def _idle_gpus(self) -> int:
        """GPUs that no job is on: counted once, and then again only on hosts that have changed."""
        state = self.state
        if self._seen < 0:
            hosts = ownership.gpu_hosts(state.cluster)
        else:
            hosts = [state.rows[at].name for at in set(state.renewed[self._seen :])]
        for name in hosts:
            if self._seen < 0 or name in self._idle:
                self._idle[name] = ownership.idle_gpus(state.ledger, name)
        self._seen = len(state.renewed)
        return sum(self._idle.values())

    def surplus(self, queue: str) -> int:
        """What may be reclaimed of a queue (0 unless it is RECLAIMABLE)."""
        conf = self.state.cluster.queue_conf.get(queue)
        if conf is None or not conf.reclaimable:
            return 0
        return max(0, self.has(queue) - self.deserved.get(queue, 0))

    def reclaim(self, queue: str, parts: Iterable[Part | Placed]) -> None:
        """Note that a job of a queue gives up these in this cycle."""
        self._reclaimed[queue] = self._reclaimed.get(queue, 0) + sum(map(self.what.of_part, parts))

    def resumed(self, queue: str, parts: Iterable[Part | Placed]) -> None:
        """Note that a job of a queue has these again, which it had given up."""
        self._given_up[queue] = self._given_up.get(queue, 0) - sum(map(self.what.of_part, parts))


class QueueShares:
    """The shares of all queues, of whatever queues own parts of."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        never = never_start(state.cache.why)
        self.shares = [Share(state, what, never) for what in ownership.owned(state.cluster.conf)]
        self._retry_where_deserved_has_changed()
        self.waits: set[str] = set()
        """Queues that were held back at what they deserve, for the sake of others."""
        self.lends_idle = False
        """All classes had their turn: what is left is lent to any queue."""

    def _retry_where_deserved_has_changed(self) -> None:
        """A class that no host had room for may reclaim now: that a job waits in one queue may give another more."""
        cache, deserved = self.state.cache, tuple(share.deserved for share in self.shares)
        if deserved != cache.deserved:
            cache.deserved = deserved
            cache.changed.note_all()
            cache.retry_blocked = True

    def left(self, spec: Spec) -> tuple[int, int]:
        """Slots that jobs of a queue may take, and the reason when they are too few."""
        room = (UNLIMITED, 0)
        for share in self.shares:
            asked = share.what.of_spec(spec)
            if asked:
                left, reason = self._left(share, spec, asked)
                room = min(room, (left if share.what is SLOTS else slots_with_gpus(spec, left), reason))
        return room

    def _left(self, share: Share, spec: Spec, asked: int) -> tuple[int, int]:
        """Reason 0: so much is not idle at all, whosever it is; the hosts say why."""
        deserved, guaranteed = _REASONS[share.what.name]
        if not self.lends_idle:
            self.waits.add(spec.queue)
            left = share.below_deserved(spec.queue, asked)
            if left is not None:
                return left, deserved if share.is_contended(spec) or sum(share.idle(spec)) >= asked else 0
        left, kept = share.idle(spec)
        if not kept:
            return (UNLIMITED if self.lends_idle else asked), 0
        return (left if self.lends_idle else min(left, asked)), guaranteed if left + kept >= asked else 0

    def may_reclaim(self, need: Need) -> bool:
        """Whether a job of this class would still be within what its queue deserves."""
        spec = need.spec
        return not self.lends_idle and all(share.is_within(spec.queue, share.what.of_spec(spec)) for share in self.shares)

    def may_resume(self, spec: Spec, slots: int) -> bool:
        """Whether a preempted job may have its slots again; none of those that are guaranteed to others are lent to it."""
        of_slots = [share for share in self.shares if share.what is SLOTS]
        if self.lends_idle:
            return all(share.idle(spec)[0] >= slots for share in of_slots)
        return all(share.is_within(spec.queue, slots) for share in of_slots)

    def has_surplus(self, queue: str) -> bool:
        """Whether any other queue has a surplus that may be reclaimed."""
        others = [other.name for other in self.state.cluster.conf.queues if other.name != queue]
        return any(share.surplus(other) for share in self.shares for other in others)

    def reclaimed(self, one: Preemption) -> None:
        """Note what a victim gives up in this cycle; one that is suspended keeps its GPUs."""
        cluster = self.state.cluster
        for share in self.shares:
            if share.what is SLOTS or one.how is not PreemptionAction.SUSPEND:
                share.reclaim(cluster.spec_of(one.key).queue, given(cluster, one))

    def resumed(self, job: Job) -> None:
        """Note that a job that was preempted for another is resumed in this cycle: it kept all but its slots."""
        assert job.run is not None
        for share in self.shares:
            if share.what is SLOTS:
                share.resumed(self.state.cluster.specs.rows[job.spec].queue, job.run.parts)


_REASONS = {
    SLOTS.name: (PendReason.QUE_DESERVED, PendReason.QUE_GUARANTEE),
    GPUS.name: (PendReason.QUE_GPUS_DESERVED, PendReason.QUE_GPUS_GUARANTEE),
}


class Surplus:
    """What is left of each queue's surplus while victims are chosen for a job of one class."""

    def __init__(self, state: CycleState, need: Need) -> None:
        self._state = state
        self._spec = need.spec
        self._left: dict[tuple[str, str], int] = {}

    def count_in(self, share: Share, key: int) -> bool:
        """Count a victim against its queue's surplus; False: its queue would have less than it deserves.

        For what is guaranteed to a queue a job may be taken that is larger than the surplus of its own.
        """
        job = self._state.cluster.jobs.rows[key]
        queue, size = self._state.cluster.specs.rows[job.spec].queue, size_of(share, job)
        place = (share.what.name, queue)
        left = self._left.get(place)
        if left is None:
            left = share.surplus(queue)
        if left <= 0 or (size > left and not share.is_guaranteed(self._spec.queue, share.what.of_spec(self._spec))):
            return False
        self._left[place] = left - size
        return True


def size_of(share: Share, job: Job) -> int:
    """What a started job has."""
    return sum(map(share.what.of_part, job.run.parts)) if job.run is not None else 0
