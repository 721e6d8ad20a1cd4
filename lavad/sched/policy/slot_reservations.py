"""Reservations: what is held for jobs that do not fit now, and when they are promised to start; backfill beside them.

Rule: a job later in line may use what is held only if it never delays the promise: it ends before the promised start by
its run limit, or takes only what is spare then (BACKFILL=Y queues); all others leave alone what is held. Where nobody can
say when it starts, as jobs without a run limit are in the way, what is held is held from all. Nothing is remembered:
promises are made anew in each cycle, in the order of the line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from lavad.core.job.job import Array, Job, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.cpus import taken_by
from lavad.core.plan.volatile import Promise
from lavad.core.rules.gpus import usable
from lavad.sched.hosts.offers import Offers
from lavad.sched.hosts.releases import NEVER, Shifted, releases, shift
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState

DEPTH = 50
"""Promises of one cycle, if all waiting jobs are promised a start."""

NOTHING, LEAST, FULL, PLACES = range(4)
"""How much of a hold is in force: what is not spare at its start, all that is free now, or what the job will have."""


class SlotReservation:
    """What is held for one job: ``full`` from most, ``least`` from those that may take what is spare."""

    __slots__ = ("free_until", "full", "key", "least", "level", "need", "places", "start")

    def __init__(self, key: int, need: Need, start: float) -> None:
        self.key = key
        self.need = need
        self.start = start
        self.free_until = start
        """Until when others may use what is held: its start, or that of a later promise that counts on the same hosts."""
        self.places: list[Placed] = []
        self.full: list[Placed] = []
        self.least: list[Placed] = []
        self.level = 0


class SlotReservations:
    """All that is held in a cycle. ``set_turn`` makes the hosts look as a class may see them."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.rows: list[SlotReservation] = []
        self.promises: dict[int, Promise] = {}
        self.most = DEPTH if state.cluster.conf.params.backfill == "conservative" else 1

    def set_turn(self, need: Need) -> None:
        """Take from the hosts what a class must leave alone; give back what it may use."""
        for reservation in self.rows:
            self._set(reservation, _level(self.state, reservation, need))

    def withdraw(self) -> None:
        """The hosts as if nothing were held."""
        for reservation in self.rows:
            self._set(reservation, NOTHING)

    def _set(self, reservation: SlotReservation, level: int) -> None:
        if level == LEAST and self.most > 1:
            level = FULL  # what comes back until then may be promised to others as well
        if level != reservation.level:
            shift(self.state, [(_parts(reservation, reservation.level), reservation.need.spec)], -1)
            shift(self.state, [(_parts(reservation, level), reservation.need.spec)], 1)
            reservation.level = level

    def reserve(self, need: Need, eligible: Eligibility, row: Job | Array, key: int) -> None:
        """Hold what there is for a job that does not fit, if its queue does so and it is its turn."""
        if len(self.rows) >= self.most or key in self.promises or not reserves(need):
            return
        avoid = row.avoid if isinstance(row, Job) else ()
        reservation = self._find(need, eligible, key, avoid)
        if reservation is None or (reservation.start == NEVER and not self._may_hold(need, row.submitted)):
            return
        self._bound(reservation)
        self.rows.append(reservation)
        self.state.free_may_grow = True
        self._set(reservation, FULL)
        start = 0.0 if reservation.start == NEVER else reservation.start
        hosts = tuple((part.host, part.slots) for part in reservation.places)
        held = tuple((part.host, part.slots) for part in reservation.full if part.slots)
        self.promises[key] = Promise(start=start, hosts=hosts, held=held)

    def _bound(self, reservation: SlotReservation) -> None:
        """What comes back on a host makes up first for what others use of earlier holds: then it would be missing here."""
        hosts = {place.host for place in reservation.places}
        for other in self.rows:
            if reservation.start < other.free_until and any(place.host in hosts for place in other.places):
                other.free_until = reservation.start

    def _may_hold(self, need: Need, since: float) -> bool:
        """Whether a job may hold without knowing for how long: MAX_RESERVE_TIME, then as long without."""
        periods = max(need.queue.slot_reserve, need.queue.resource_reserve)
        seconds = periods * self.state.cluster.conf.params.sleep
        turn = int((self.state.now - since) // seconds) if seconds else 0
        self.state.wake(since + (turn + 1) * seconds)
        return turn % 2 == 0

    def _find(self, need: Need, eligible: Eligibility, key: int, avoid: Sequence[str]) -> SlotReservation | None:
        """The earliest start that run limits promise; without one, whatever would do if all were empty."""
        state = self.state
        for reservation in self.rows:
            self._set(reservation, PLACES)
        offers = Offers(state, need, eligible, avoid)
        free = {at: state.rows[at].free for at in offers.order}
        coming = self._coming()
        gone: list[Shifted] = []
        start = NEVER
        found: tuple[Placed, ...] = ()
        while coming and not found and coming[0][0] < NEVER:
            start = coming[0][0]
            while coming and coming[0][0] == start:
                gone.append(coming.popleft()[2])
                offers.renew(shift(state, gone[-1:], -1))
            offers.renew(self._as_of(need, start))
            found = offers.choose()
        if not found:
            start = NEVER
            rest = [shifted for _, _, shifted in coming]
            offers.renew(shift(state, rest, -1))
            gone += rest
            found = offers.choose(sorted(offers.order, key=lambda at: -free[at]))
        self._as_of(need, state.now)
        reservation = SlotReservation(key, need, start)
        reservation.places = list(found)
        shift(state, gone, 1)
        for other in self.rows:
            self._set(other, FULL)
        if found:
            self._fill(reservation, gone)
        return reservation if found else None

    def _as_of(self, need: Need, start: float) -> list[int]:
        """Make advance reservations look as they are for a start then; the hosts of which there may be more or less."""
        advance, rows = self.state.advance, self.state.cache.by_name
        return [rows[host].index for host in advance.set_turn(need, start) if host in rows] if advance is not None else []

    def _coming(self) -> deque[tuple[float, int, Shifted]]:
        """What comes back, the earliest first: of running jobs, and of those that are promised a start."""
        found = releases(self.state)
        for at, reservation in enumerate(self.rows):
            limit = reservation.need.spec.expected
            end = NEVER if limit is None else reservation.start + limit
            found.append((end, at, (reservation.places, reservation.need.spec)))
        if self.state.advance is not None:
            spec = Spec(user="", queue="")
            found += [(edge, -(1 << 40) - place, ((), spec)) for place, edge in enumerate(self.state.advance.edges)]
        return deque(sorted(found, key=lambda release: release[:2]))

    def _fill(self, reservation: SlotReservation, gone: list[Shifted]) -> None:
        """What of its places is free now, and what of that is not spare at its start."""
        names = {place.host for place in reservation.places}
        back = [part for parts, _ in gone for part in parts if part.host in names]
        for place in reservation.places:
            row = self.state.cache.by_name[place.host]
            coming = [part for part in back if part.host == place.host]
            advance = self.state.advance
            slots = min(place.slots, row.free if advance is None else advance.left(reservation.need, row.name, row.free))
            gpus: tuple[str, ...] = ()
            if reservation.need.gpu is not None and place.gpus:
                mine = self.state.ledger.host(place.host)
                free = {card.uuid for card in usable(mine.gpus, mine.gpus_taken, reservation.need.gpu)}
                gpus = tuple(card for card in place.gpus if card in free)
            reserved = tuple((name, min(amount, max(0.0, self.state.room(row, name)))) for name, amount in place.reserved)
            taken = self.state.ledger.host(place.host).cpus
            binds = tuple(bind for bind in place.binds if taken_by([bind]).isdisjoint(taken))
            reservation.full.append(Placed(host=place.host, slots=slots, gpus=gpus, reserved=reserved, binds=binds))
            slots = min(slots, max(0, place.slots - sum(part.slots for part in coming)))
            reserved = tuple(
                (name, min(kept, max(0.0, amount - sum(v for part in coming for n, v in part.reserved if n == name))))
                for (name, amount), (_, kept) in zip(place.reserved, reserved, strict=True)
            )
            reservation.least.append(Placed(host=place.host, slots=slots, gpus=gpus, reserved=reserved, binds=binds))


def _parts(reservation: SlotReservation, level: int) -> list[Placed]:
    return ([], reservation.least, reservation.full, reservation.places)[level]


def _level(state: CycleState, reservation: SlotReservation, need: Need) -> int:
    """How much of what is held a class must leave alone."""
    limit = need.spec.expected
    if not need.queue.backfill or limit is None or reservation.start == NEVER or need.number == reservation.need.number:
        return FULL
    return NOTHING if state.now + limit <= reservation.free_until else LEAST


def reserves(need: Need) -> bool:
    """Whether the queue of a class holds what is free for its jobs."""
    return bool(need.queue.slot_reserve or need.queue.resource_reserve) and not need.spec.reservation
