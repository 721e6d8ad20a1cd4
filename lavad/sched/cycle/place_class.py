"""A class of equal jobs in its turn: its jobs are placed one after the other, until one does not fit.

Rule: a class that is blocked says why, and by what (hosts, or something about no host), so that it is looked at again when
that has changed and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

from lavad.core.job.job import AVOIDED, Array, Job, Placed
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.plan.plan import Placement
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.site.host_names import first_hosts
from lavad.core.site.pend_reason import PendReason
from lavad.sched.cycle.draft import MOST, Draft
from lavad.sched.cycle.explain import host_reasons
from lavad.sched.hosts.candidates import Candidates
from lavad.sched.hosts.choose import Offer, find_parts, whole_units, why_too_many_hosts
from lavad.sched.hosts.compound import find_compound
from lavad.sched.hosts.fit import place_on, units
from lavad.sched.hosts.packing import Packed
from lavad.sched.hosts.roles import find_roles
from lavad.sched.line.line import keys_in_order
from lavad.sched.line.queue_iterator import order_now
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible
from lavad.sched.state.scheduler_cache import Order, PendingClass

_POSTPONED: dict[int, PendReason] = {PendReason.JOB_PRE_EXEC: PendReason.JOB_PRE_EXEC}
"""Why a job was put off, where that says more than that it was."""
LOOKS = 100_000
"""Hosts looked at in one cycle for a class whose every job looks at all hosts (compound, cu[], binpack …)."""


def _candidates(state: CycleState, need: Need, eligible: Eligibility) -> Iterable[Row]:
    return Packed(state, need, eligible) if need.packing else Candidates(state, need, eligible)


class ClassPlacer:
    """A class that is being placed: its jobs one after the other."""

    __slots__ = (
        "budget",
        "candidates",
        "draft",
        "early",
        "eligible",
        "entry",
        "given",
        "in_turn",
        "keys",
        "need",
        "next_key",
        "reasons",
        "short",
        "state",
    )

    def __init__(self, draft: Draft, need: Need, entry: PendingClass) -> None:
        self.draft = draft
        self.state = draft.state
        self.need = need
        self.entry = entry
        entry.blocked = -1
        self.eligible = get_eligible(draft.state, need)
        self.candidates = _candidates(draft.state, need, self.eligible)
        self.keys = keys_in_order(draft.state.cluster, need.number, entry)
        self.next_key: int | None = next(self.keys, None)
        self.in_turn = entry.stream is not None
        """Whether each start moves its place in line: then it starts one job at a time."""
        self.given = 0
        """Elements placed of the array whose turn it is."""
        every_host = bool(need.packing or need.spec.roles or not need.is_plain)
        self.budget = max(1, LOOKS // max(1, len(draft.state.rows))) if every_host else MOST
        """Jobs that it may still place in this cycle."""
        self.early = False
        """Whether a job may be placed otherwise later, by an alternative that has to wait."""
        self.short: Need | None = None
        """What the role needs that there was no room for."""
        self.reasons: dict[int, int] = {}
        draft.state.cache.set_job_reasons(entry, self.reasons)

    def go(self, bound: Order | None) -> Order | None:
        """Place jobs until one stands behind ``bound`` (its place comes back) or none can go on (None)."""
        cluster = self.state.cluster
        self.in_turn = self.entry.stream is not None and bound is not None
        self.draft.beyond.show(self.need)
        while self.next_key is not None and self.left > 0:
            place = order_now(self.state, self.need.number, self.next_key)
            if bound is not None and place > bound:
                return place
            row = cluster.get(self.next_key)
            if self._job(row) if isinstance(row, Job) else self._array(row):
                if not self.given:
                    self.next_key = next(self.keys, None)
            elif not self._go_beyond(row):
                break
        self.state.cache.why_job.update(self.reasons)
        if self.early:
            self.entry.blocked = -1
        return None

    @property
    def left(self) -> int:
        """How many jobs it may still place."""
        return min(self.draft.left, self.budget)

    def _go_beyond(self, row: Job | Array) -> bool:
        """A job does not fit: preempt others for it, or hold for it what there is; whether to look at the next one."""
        if self.entry.blocked != self.state.cache.cycle or self.need.shape.excl:
            return False
        key, beyond = self._key(row), self.draft.beyond
        placement = beyond.preempt(self.need, self.eligible, key)
        if placement is None and not beyond.promise(self.need, self.eligible, row, key):
            return False
        if placement is not None:
            self.draft.placements.append(placement)
            self.draft.why.pop(self.need.number, None)
            self.entry.blocked = -1
        self._advance(row)
        return True

    def _key(self, row: Job | Array) -> int:
        """The job, or the next element of the array."""
        return row.key if isinstance(row, Job) else key_of(row.job, next(islice(row.startable, self.given, None)))

    def _advance(self, row: Job | Array) -> None:
        """Go on to the next element, or job, of the class."""
        self.given = (self.given + 1) % len(row.startable) if isinstance(row, Array) else 0
        if not self.given:
            self.next_key = next(self.keys, None)

    def _job(self, job: Job) -> bool:
        """Place one job; False when the class is blocked."""
        state = self.state
        if job.not_before > state.now:
            state.wake(job.not_before)
            self.reasons[job.key] = _POSTPONED.get(job.reason, PendReason.JOB_DELAY_SCHED)
            return True
        if job.promised:
            self.reasons[job.key] = PendReason.SLOTS_HELD
            return True
        if self._is_new(job.submitted, job.key):
            return True
        if index_of(job.key) and self._array_left(job_of(job.key)) < 1:
            self.reasons[job.key] = PendReason.JOB_ARRAY_LIMIT
            return True
        barred = frozenset(job.barred)
        if not job.avoid:
            if self._place_one(job.key, barred):
                return True
            if barred:
                self.reasons[job.key] = PendReason.JOB_START_FAIL
            return bool(barred)
        if not self._place_one(job.key, barred.union(job.avoid)):
            if job.failures or state.now >= job.since + AVOIDED:
                return self._place_one(job.key, barred) or bool(barred)  # better there than nowhere
            state.wake(job.since + AVOIDED)
            self.reasons[job.key] = PendReason.JOB_START_FAIL
        return True

    def _array(self, array: Array) -> bool:
        """Place untouched elements; False when the class is blocked."""
        if self._is_new(array.submitted, array.job):
            return True
        startable = array.startable
        rest = len(startable) - self.given
        wanted = min(self._array_left(array.job), rest)
        if wanted < rest:
            self.reasons[array.job] = PendReason.JOB_ARRAY_LIMIT
        wanted = min(wanted, self.left, 1 if self.in_turn else rest)
        indices = islice(startable, self.given, self.given + max(0, min(wanted, self.state.free)))
        keys = [key_of(array.job, index) for index in indices]
        placed = self._place_many(keys) if self._is_simple() else sum(1 for _ in takewhile(self._place_one, keys))
        if placed == wanted:
            # where each start moves the place in line, the array stands in line again after one
            self.given = self.given + 1 if self.in_turn and wanted == 1 < rest else 0
            return True
        self.given += placed
        self.reasons.pop(array.job, None)
        return placed == len(keys) and self._block(0)

    def _is_new(self, submitted: float, key: int) -> bool:
        """NEW_JOB_SCHED_DELAY: a job that has only just come waits."""
        ready = submitted + self.need.queue.new_job_delay
        if ready <= self.state.now:
            return False
        self.state.wake(ready)
        self.reasons[key] = PendReason.JOB_NEW
        return True

    def _array_left(self, job: int) -> int:
        array = self.state.cluster.arrays.rows.get(job)
        if array is None or not array.limit:
            return UNLIMITED
        return array.limit - self.state.ledger.array_running(job)

    def _is_simple(self) -> bool:
        """Whether many jobs may be placed at once: one takes from the next nothing but slots and amounts."""
        need = self.need
        special = need.gpu is not None or need.shared or need.spec.exclusive or self.state.cluster.conf.limits
        if need.accept_gap or self.in_turn or not need.is_plain or need.affinity is not None or need.packing:
            return False
        return need.one_slot and not special and not self.state.limits.has_host_limits(need.spec)

    def _offers(self, need: Need, avoid: frozenset[str]) -> Iterator[Offer]:
        candidates = self.candidates if need is self.need else _candidates(self.state, need, get_eligible(self.state, need))
        for row in candidates:
            if row.name not in avoid:
                count, _ = units(self.state, need, row)
                if count:
                    yield row, count
                elif need is self.need and isinstance(candidates, Candidates):
                    candidates.spend(row.index)

    def _find(self, key: int, most: int, avoid: frozenset[str]) -> tuple[int, tuple[Placed, ...]]:
        """The parts for a job, and the number of the way in which its requirement is met."""
        state = self.state
        if not self.need.ways:
            return 0, self._parts(self.need, most, avoid)
        submitted = state.cluster.get(key).submitted
        for need in self.need.ways:
            if submitted + need.delay > state.now:
                state.wake(submitted + need.delay)
                self.early = True
                continue
            parts = self._parts(need, most, avoid)
            if parts:
                return need.way, parts
        return 0, ()

    def _parts(self, need: Need, most: int, avoid: frozenset[str]) -> tuple[Placed, ...]:
        if need.spec.roles:
            parts, self.short = find_roles(self.state, need, most, avoid)
            return parts
        if need.terms:
            return find_compound(self.state, need, most, avoid)
        return find_parts(self.state, need, self._offers(need, avoid), most)

    def _place_one(self, key: int, avoid: frozenset[str] = frozenset()) -> bool:
        state, need = self.state, self.need
        left, reason = state.limits.left(need.spec)
        if left < need.slots:
            return self._block(reason)
        way, parts = self._find(key, min(need.most, left), avoid)
        if not parts or (need.first and parts[0].host not in self._first_hosts()):
            return False if avoid else self._block(why_too_many_hosts(need, self._offers(need, avoid)))
        reason = state.limits.why_not(need.spec, parts)
        if reason:
            return self._block(reason)
        alone = whole_units(state, need.ways[way] if need.ways else need, parts)
        state.start_job(key, need.spec, parts, alone)
        self.draft.placements.append(Placement(key, parts, need.number, way, alone))
        self.budget -= 1
        return True

    def _first_hosts(self) -> frozenset[str]:
        return first_hosts(self.state.cluster.conf, self.need.preferred)

    def _place_many(self, keys: list[int]) -> int:
        """One-slot jobs over free slots in rank order; how many were placed."""
        state, need = self.state, self.need
        left, reason = state.limits.left(need.spec)
        room = min(len(keys), left)
        placed = 0
        for row in self.candidates:
            if placed == room:
                break
            count = min(units(state, need, row)[0], room - placed)
            parts = (place_on(state, need, row, 1, True),)
            for key in keys[placed : placed + count]:
                state.ledger.take(key, need.spec, parts)
                self.draft.placements.append(Placement(key, parts, need.number))
            if count:
                state.renew(row)
                placed += count
        if placed < len(keys):
            self._block(reason if placed == room else 0)
        return placed

    def _block(self, reason: int) -> bool:
        """Say why the class waits; always False."""
        state, need = self.state, self.need
        if reason:
            self.entry.blocked = -1
            self.draft.set_reason(need.number, reason)
            return False
        self.entry.blocked = state.cache.cycle
        short = self.short
        self.draft.why[need.number] = host_reasons(state, short or need, get_eligible(state, short) if short else self.eligible)
        return False
