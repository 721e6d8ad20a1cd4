"""The turn of a class of equal jobs: its jobs are placed one after the other, until one does not fit.

Rule: a blocked class says why, and whether hosts block it (``PendingClass.blocked``) or something that is no host's, so that it
is looked at again when that has changed and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, takewhile

from lavad.core.cluster.job_rows import JobRows
from lavad.core.job.job import Array, Job, Placed
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.plan.plan import Placement
from lavad.core.rules.avoided_hosts import barred_from, returns_at
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.site.pend_reason import PendReason
from lavad.sched.cycle.chunking import most_in_chunk, place_in_chunks, place_in_turn, start_on
from lavad.sched.cycle.explain import host_reasons, is_never, role_reasons
from lavad.sched.cycle.plan_builder import MAX_PLACEMENTS, PlanBuilder
from lavad.sched.hosts.candidates import Candidates
from lavad.sched.hosts.choose import Offer, whole_units, why_too_many_hosts
from lavad.sched.hosts.compound import find_compound
from lavad.sched.hosts.fit import units
from lavad.sched.hosts.over_hosts import find_parts
from lavad.sched.hosts.packing import Packed
from lavad.sched.hosts.roles import Found, find_roles
from lavad.sched.line.line import keys_in_order
from lavad.sched.line.queue_iterator import order_now
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible
from lavad.sched.state.scheduler_cache import Order, PendingClass

_POSTPONED: dict[int, PendReason] = {PendReason.JOB_PRE_EXEC: PendReason.JOB_PRE_EXEC}
"""Reasons for which a job was postponed that are shown instead of JOB_DELAY_SCHED."""
MAX_LOOKS = 100_000
"""Hosts looked at in one cycle for a class of which each job looks at all hosts (compound, cu[], binpack …)."""


def _candidates(state: CycleState, need: Need, eligible: Eligibility) -> Iterable[Row]:
    return Packed(state, need, eligible) if need.packing else Candidates(state, need, eligible)


class ClassPlacer:
    """Places the jobs of one class, in their order."""

    __slots__ = (
        "budget",
        "builder",
        "by_jobs",
        "candidates",
        "early",
        "eligible",
        "entry",
        "given",
        "in_chunk",
        "in_turn",
        "keys",
        "need",
        "next_key",
        "reasons",
        "roles",
        "separate",
        "state",
    )

    def __init__(self, builder: PlanBuilder, need: Need, entry: PendingClass) -> None:
        self.builder = builder
        self.state = builder.state
        self.need = need
        self.entry = entry
        entry.blocked = -1
        self.eligible = get_eligible(builder.state, need)
        self.candidates = _candidates(builder.state, need, self.eligible)
        self.in_chunk = most_in_chunk(builder, need)
        """The most of its jobs that share a slot."""
        self.keys = keys_in_order(builder.state.cluster, need.number, entry)
        self.next_key: int | None = next(self.keys, None)
        self.in_turn = entry.stream is not None
        """Whether each start changes the place of the class in line (fair share): then it starts one job a turn."""
        self.given = 0
        """Elements of the array in turn that have been placed or passed over."""
        every_host = bool((need.packing and not (need.gpu and need.one_slot)) or need.spec.roles or not need.is_plain)
        self.budget = max(1, MAX_LOOKS // max(1, len(builder.state.rows))) if every_host else MAX_PLACEMENTS
        """Jobs that may still be placed in this cycle."""
        self.early = False
        """Whether an alternative of the requirement (`{..}||{..}@delay`) is still to come: time alone may place a job."""
        self.roles = Found()
        """Of jobs with roles: what was found for the last of them."""
        self.by_jobs = False
        """Whether a limit on jobs is all that keeps the class from its turn on the hosts."""
        self.separate = 0
        """Separate jobs of the class that this cycle has placed, many at once."""
        self.reasons: dict[int, int] = {}
        builder.state.cache.set_job_reasons(entry, self.reasons)

    def place_jobs(self, bound: Order | None) -> Order | None:
        """Place jobs until one stands behind ``bound`` in line: its place is returned. None: the class is done for now."""
        cluster = self.state.cluster
        self.in_turn = self.entry.stream is not None and bound is not None
        self.builder.set_turn(self.need)
        while self.next_key is not None and self.left > 0:
            place = order_now(self.state, self.need.number, self.next_key)
            if bound is not None and place > bound:
                return place
            if self._place_run(bound):
                continue
            row = cluster.get(self.next_key)
            if self._place_job(row) if isinstance(row, Job) else self._place_array(row):
                if not self.given:
                    self.next_key = next(self.keys, None)
            elif not self._make_room(row):
                break
        self.state.cache.why_job.update(self.reasons)
        if self.early:
            self.entry.blocked = -1
        return None

    def look_again(self) -> None:
        """Hosts that had nothing for the class may have now."""
        self.entry.blocked = -1
        self.candidates = _candidates(self.state, self.need, self.eligible)

    @property
    def left(self) -> int:
        """How many jobs it may still place."""
        return min(self.builder.left, self.budget)

    def _make_room(self, row: Job | Array) -> bool:
        """A job does not fit: preempt others for it, or reserve slots; whether to go on, with it or the next job."""
        by_hosts = self.entry.blocked == self.state.cache.cycle
        if by_hosts and self.need.queue.interruptible_backfill and self.builder.borrow(self.need):
            self.look_again()
            return True
        if not (by_hosts or self.by_jobs) or self.need.shape.excl or (by_hosts and self.entry.never):
            return False
        key = self._key(row)
        placement = self.builder.preempt(self.need, self.eligible, key)
        if placement is None and not (by_hosts and self.builder.reserve_slots(self.need, self.eligible, row, key)):
            return False
        if placement is not None:
            self.builder.placements.append(placement)
            self.builder.why.pop(self.need.number, None)
            self.entry.blocked = -1
        self._skip(row)
        return True

    def _key(self, row: Job | Array) -> int:
        """Key of the job, or of the array's next element."""
        return row.key if isinstance(row, Job) else key_of(row.job, next(islice(row.startable, self.given, None)))

    def _skip(self, row: Job | Array) -> None:
        """Go on to the next element or job of the class."""
        self.given = (self.given + 1) % len(row.startable) if isinstance(row, Array) else 0
        if not self.given:
            self.next_key = next(self.keys, None)

    def _place_job(self, job: Job) -> bool:
        """Place one job, or pass it over for a reason of its own; False: the class is blocked."""
        state = self.state
        if job.not_before > state.now:
            state.wake(job.not_before)
            self.reasons[job.key] = _POSTPONED.get(job.reason, PendReason.JOB_DELAY_SCHED)
            return True
        if job.promised:
            return True
        if self._is_new(job.submitted, job.key):
            return True
        if index_of(job.key) and self._array_left(job_of(job.key)) < 1:
            self.reasons[job.key] = PendReason.JOB_ARRAY_LIMIT
            return True
        barred, until = barred_from(job, state.cluster.conf.params, state.now)
        state.wake(until)
        if not job.avoid:
            return self._place_but(job, barred)
        if not self._place_one(job.key, barred.union(job.avoid)):
            if state.now >= returns_at(job):
                return self._place_but(job, barred)  # better there than nowhere
            state.wake(returns_at(job))
            self.reasons[job.key] = PendReason.JOB_MIG
        return True

    def _place_but(self, job: Job, barred: frozenset[str]) -> bool:
        """Place a job on other hosts than these; False: the class is blocked."""
        if self._place_one(job.key, barred):
            return True
        if barred:
            self.reasons[job.key] = _POSTPONED.get(job.reason, PendReason.JOB_START_FAIL)
        return bool(barred)

    def _place_array(self, array: Array) -> bool:
        """Place elements that have no row of their own; False: the class is blocked."""
        if self._is_new(array.submitted, array.job):
            return True
        startable = array.startable
        rest = len(startable) - self.given
        wanted = min(self._array_left(array.job), rest)
        if wanted < rest:
            self.reasons[array.job] = PendReason.JOB_ARRAY_LIMIT
        if self.in_turn and self.in_chunk > 1 and self._is_simple(in_turn=True):
            following = (key_of(array.job, index) for index in islice(startable, self.given, None))
            if placed := self._place_in_turn(following, wanted):
                self.given = self.given + placed if placed < rest else 0
                return True
        wanted = min(wanted, self.left, 1 if self.in_turn else rest)
        indices = islice(startable, self.given, self.given + max(0, min(wanted, self.state.free * self.in_chunk)))
        keys = [key_of(array.job, index) for index in indices]
        placed = self._place_many(keys) if self._is_simple() else sum(1 for _ in takewhile(self._place_one, keys))
        if placed == wanted:
            # by fair share: after one start the array stands in line again
            self.given = self.given + 1 if self.in_turn and wanted == 1 < rest else 0
            return True
        self.given += placed
        self.reasons.pop(array.job, None)
        return placed == len(keys) and self._block(0)

    def _place_run(self, bound: Order | None) -> bool:
        """Place the separate jobs that come next, of which nothing is known but that they were submitted; False: not even one."""
        state, need = self.state, self.need
        if need.queue.new_job_sched_delay or not self._is_simple(in_turn=self.in_chunk > 1):
            return False
        room = min(self.left, state.limits.left(need.spec)[0])
        if self.in_chunk > 1 and (self.in_turn or bound is not None):
            waiting = len(state.cluster.pending[need.number]) - self.separate
            placed = self._place_in_turn(self._only_submitted(None), waiting)
            self.separate += placed
            if placed or self.in_turn:
                return bool(placed)
        elif self.in_chunk > 1:
            run = [*islice(self._only_submitted(None), min(self.left, max(0, min(room, state.free)) * self.in_chunk))]
            count = self._place_in_chunks(iter(run), len(run), room)
            self._put_back(run[count:])
            return bool(count)
        placed = 0
        for row in self.candidates if room > 0 else ():
            count = min(units(state, need, row)[0], room - placed)
            keys = [*islice(self._only_submitted(bound), count)]
            if keys:
                start_on(self.builder, need, row, keys)
                placed += len(keys)
            if len(keys) < count or placed == room:
                break
        self.separate += placed
        return bool(placed)

    def _put_back(self, keys: list[int]) -> None:
        """The keys that were taken last come next again."""
        if keys:
            rest = () if self.next_key is None else (self.next_key,)
            self.next_key, self.keys = keys[0], chain(keys[1:], rest, self.keys)

    def _only_submitted(self, bound: Order | None) -> Iterator[int]:
        """The keys of these jobs, up to ``bound``; each is taken, and the next one is ``next_key``."""
        state, rows = self.state, self.state.cluster.jobs.rows
        assert isinstance(rows, JobRows)
        while (key := self.next_key) is not None and rows.submitted(key) is not None:
            if bound is not None and order_now(state, self.need.number, key) > bound:
                break
            self.next_key = next(self.keys, None)
            yield key

    def _is_new(self, submitted: float, key: int) -> bool:
        """NEW_JOB_SCHED_DELAY: a job that has only just been submitted waits."""
        ready = submitted + self.need.queue.new_job_sched_delay
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

    def _is_simple(self, in_turn: bool = False) -> bool:
        """Whether jobs may be placed many at once: they compete for slots and amounts of resources only.

        ``in_turn``: be it that the class starts one slot a turn.
        """
        need = self.need
        spec = need.spec
        special = need.gpu is not None or need.shared or spec.exclusive or spec.roles or self.state.cluster.conf.limits
        if (
            need.accept_gap
            or need.first
            or (self.in_turn and not in_turn)
            or not need.is_plain
            or need.affinity is not None
            or need.packing
        ):
            return False
        return need.one_slot and not special and not self.state.limits.has_host_limits(spec)

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
        """(alternative of the requirement, parts) for a job; no parts: it does not fit."""
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
            self.roles = find_roles(self.state, need, most, avoid)
            return self.roles.parts
        if need.terms:
            return find_compound(self.state, need, most, avoid)
        return find_parts(self.state, need, self._offers(need, avoid), most)

    def _place_one(self, key: int, avoid: frozenset[str] = frozenset()) -> bool:
        state, need = self.state, self.need
        left, reason = state.limits.left(need.spec)
        if left < need.slots:
            self.by_jobs = state.limits.left(need.spec, jobs=False)[0] >= need.slots
            return self._block(reason)
        way, parts = self._find(key, min(need.most, left), avoid)
        if not parts or (need.first and parts[0].host not in self._first_hosts()):
            return False if avoid else self._block(self.roles.reason or why_too_many_hosts(need, self._offers(need, avoid)))
        reason = state.limits.why_not(need.spec, parts)
        if reason:
            return self._block(reason)
        alone = whole_units(state, need.ways[way] if need.ways else need, parts)
        state.start_job(key, need.spec, parts, alone)
        self.builder.placements.append(Placement(key, parts, need.number, way, alone))
        self.budget -= 1
        return True

    def _first_hosts(self) -> frozenset[str]:
        return self.state.cluster.conf.groups_of_hosts.first_hosts(self.need.preferred, self.state.cache.by_name)

    def _place_many(self, keys: list[int]) -> int:
        """Place one-slot jobs on free slots, hosts in rank order; how many were placed."""
        state, need = self.state, self.need
        left, reason = state.limits.left(need.spec)
        if self.in_chunk > 1:
            placed = self._place_in_chunks(iter(keys), len(keys), left)
            if placed < len(keys):
                self._block(reason if state.limits.left(need.spec)[0] <= 0 else 0)
            return placed
        room = min(len(keys), left)
        placed = 0
        for row in self.candidates:
            if placed == room:
                break
            count = min(units(state, need, row)[0], room - placed)
            if count:
                start_on(self.builder, need, row, keys[placed : placed + count])
                placed += count
        if placed < len(keys):
            self._block(reason if placed == room else 0)
        return placed

    def _place_in_chunks(self, keys: Iterator[int], waiting: int, room: int) -> int:
        return place_in_chunks(self.builder, self.need, self.candidates, keys, waiting, room, self.in_chunk)

    def _place_in_turn(self, keys: Iterator[int], waiting: int) -> int:
        return place_in_turn(self.builder, self.need, self.candidates, keys, min(waiting, self.left), self.in_chunk)

    def _block(self, reason: int) -> bool:
        """Note why the class waits; always False. ``reason`` 0: ask the hosts."""
        state, need = self.state, self.need
        if reason:
            self.entry.blocked = -1
            self.builder.set_reason(need.number, reason)
            return False
        self.entry.blocked = state.cache.cycle
        short = self.roles.short
        why = role_reasons(state, need, short) if short else host_reasons(state, need, self.eligible)
        self.builder.why[need.number] = why
        self.entry.never = is_never(why)
        return False
