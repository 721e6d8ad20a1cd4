"""Guaranteed shares of slots of queues: how many more slots a queue may take, and what others may reclaim of it.

What a queue deserves is worked out by ``core.rules.ownership`` from its guarantee, its share and what waits in it.

Rule: a queue gets more than it deserves only of what no other queue could use in this cycle. A queue that has less than it
deserves reclaims what others have beyond theirs; no queue is brought below what it deserves.
"""

from __future__ import annotations

from lavad.core.job.spec import Spec
from lavad.core.plan.volatile import WhyClass
from lavad.core.rules import ownership
from lavad.core.site.pend_reason import NEVER_GPU, NEVER_RUSAGE, PendReason
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState

_NEVER = (
    PendReason.NEVER_SLOTS,
    PendReason.NEVER_HOST_SLOTS,
    PendReason.NO_SUITABLE_HOST,
    *NEVER_GPU,
    PendReason.NEVER_CPUS,
)


class QueueShares:
    """What each queue has and deserves at this moment of the cycle, in slots."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        cluster = state.cluster
        total = ownership.total_slots(cluster)
        never = frozenset(number for number, why in state.cache.why.items() if _is_never(why))
        self._lent = ownership.lent_slots(cluster)
        waiting = ownership.waiting_slots(cluster, total, never)
        self.deserved = ownership.deal(total, ownership.claims(cluster, waiting))
        self._reclaimed: dict[str, int] = {}
        self.total = total
        self.waits: set[str] = set()
        """Queues that were held back at what they deserve, for the sake of others."""
        self.lends_idle = False
        """All classes had their turn: what is left is lent to any queue."""

    def has(self, queue: str) -> int:
        """Slots of a queue now: without those of preempted jobs and of those reclaimed in this cycle."""
        gone = self._lent.get(queue, 0) + self._reclaimed.get(queue, 0)
        return self.state.ledger.queue_slots(queue) - gone

    def left(self, spec: Spec) -> tuple[int, int]:
        """Slots that jobs of a queue may take, and the reason when they are too few."""
        has, deserved = self.has(spec.queue), self.deserved.get(spec.queue, 0)
        if not self.lends_idle:
            self.waits.add(spec.queue)
            if has + spec.slots <= deserved or has >= deserved:
                return max(0, deserved - has), PendReason.QUE_DESERVED
        room = self._unguaranteed(spec.queue)
        return (room if self.lends_idle else min(room, spec.slots)), PendReason.QUE_GUARANTEE

    def _unguaranteed(self, queue: str) -> int:
        """Free slots that are guaranteed to no other queue."""
        left = self.total
        for other in self.state.cluster.conf.queues:
            has = self.has(other.name)
            left -= has if other.name == queue else max(has, other.guarantee)
        return left

    def may_reclaim(self, need: Need) -> bool:
        """Whether a job of this class would still be within what its queue deserves."""
        queue = need.spec.queue
        return not self.lends_idle and self.has(queue) + need.slots <= self.deserved.get(queue, 0)

    def may_resume(self, queue: str, slots: int) -> bool:
        """Whether a preempted job of a queue may have its slots again."""
        return self.lends_idle or self.has(queue) + slots <= self.deserved.get(queue, 0)

    def has_surplus(self, queue: str) -> bool:
        """Whether any other queue has a surplus that may be reclaimed."""
        return any(self.surplus(other.name) for other in self.state.cluster.conf.queues if other.name != queue)

    def surplus(self, queue: str) -> int:
        """Slots that may be reclaimed of a queue (0 unless it is RECLAIMABLE)."""
        conf = self.state.cluster.queue_conf.get(queue)
        if conf is None or not conf.reclaimable:
            return 0
        return max(0, self.has(queue) - self.deserved.get(queue, 0))

    def reclaimed(self, queue: str, slots: int) -> None:
        """Note that a job of a queue gives up its slots in this cycle."""
        self._reclaimed[queue] = self._reclaimed.get(queue, 0) + slots


class Surplus:
    """What is left of each queue's surplus while victims are chosen."""

    def __init__(self, state: CycleState, queue_shares: QueueShares | None) -> None:
        self._state = state
        self._queue_shares = queue_shares
        self._left: dict[str, int] = {}

    def count_in(self, key: int) -> bool:
        """Count a victim's slots against its queue's surplus; False: its queue would have less than it deserves."""
        queue_shares = self._queue_shares
        queue, slots = slots_of(self._state, key)
        left = self._left.get(queue)
        if left is None:
            left = queue_shares.surplus(queue) if queue_shares is not None else 0
        if slots > left:
            return False
        self._left[queue] = left - slots
        return True


def slots_of(state: CycleState, key: int) -> tuple[str, int]:
    """The queue and the slots of a started job."""
    job = state.cluster.jobs.rows[key]
    return state.cluster.specs.rows[job.spec].queue, sum(part.slots for part in job.run.parts) if job.run is not None else 0


def _is_never(why: WhyClass) -> bool:
    code = why.reasons[0][0] if why.reasons else 0
    return code in _NEVER or NEVER_RUSAGE <= code < NEVER_RUSAGE + 300
