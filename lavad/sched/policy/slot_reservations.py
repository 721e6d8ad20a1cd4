"""Slot reservations for jobs that do not fit now (SLOT_RESERVE, RESOURCE_RESERVE), and backfill beside them (BACKFILL=Y).

A reservation has a start that is promised: the earliest time at which, by the run limits of the jobs before it, the job will
fit. With BACKFILL_POLICY=easy one job of the line has a reservation (EASY backfill, Lifka 1995), with conservative the first
``DEPTH`` jobs have (conservative backfill, Mu'alem & Feitelson 2001).

Rule: a job later in line may use reserved slots only if that never delays the promised start: it ends by then, by its own run
limit, or uses only what the reservation does not need at its start. Where nobody can tell the start, as jobs without a run
limit are in the way, reserved slots are kept from all others. Nothing is remembered: reservations are made again in each
cycle, in the order of the line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import IntEnum

from config.model.values import Backfill
from lavad.core.job.job import Array, Job, Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.cpus import taken_by
from lavad.core.plan.volatile import ReservedStart
from lavad.core.rules.gpus import usable
from lavad.sched.hosts.ends import NEVER
from lavad.sched.hosts.offers import Offers, Shifted, releases, shift
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState

DEPTH = 50
"""Reservations of one cycle under conservative backfill."""
LOOKS = 20_000
"""Hosts and running jobs that are looked at in one cycle for classes for which nothing could be reserved when last looked at."""


class Level(IntEnum):
    """How much of a reservation is taken from the hosts while the class in turn is placed."""

    NOTHING = 0
    LEAST = 1
    """What would be missing at its start: for a backfilling job that runs on beyond the start."""
    FULL = 2
    """All that it holds, which is free now."""
    PLACES = 3
    """All that its job will have at its start, free now or not."""


class SlotReservation:
    """One job's reservation: ``places`` where it will run, ``full`` and ``least`` as of ``Level``; ``start`` NEVER: unknown."""

    __slots__ = ("free_until", "full", "key", "least", "level", "need", "places", "start")

    def __init__(self, key: int, need: Need, start: float) -> None:
        self.key = key
        self.need = need
        self.start = start
        self.free_until = start
        """Until when backfill may use what is held: its start, or that of a later reservation that counts on the same hosts."""
        self.places: list[Placed] = []
        self.full: list[Placed] = []
        self.least: list[Placed] = []
        self.level = Level.NOTHING


class SlotReservations:
    """All reservations of a cycle. ``most``: how many there may be."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.rows: list[SlotReservation] = []
        self.promises: dict[int, ReservedStart] = {}
        self.most = DEPTH if state.cluster.conf.params.lava_backfill is Backfill.CONSERVATIVE else 1
        self._looks = LOOKS
        state.cache.reserving.begin(state.cache.cycle)

    def set_turn(self, need: Need) -> None:
        """Hosts now show the slots that this class may use: without what it must leave to reservations."""
        for reservation in self.rows:
            self._set(reservation, _level(self.state, reservation, need))

    def lend(self, need: Need) -> bool:
        """INTERRUPTIBLE_BACKFILL: hosts now show what is held, too, where it is free for long enough; whether any is."""
        found = [one for one in self.rows if one.level and self._lends(one, need)]
        for reservation in found:
            self._set(reservation, Level.NOTHING)
        return bool(found)

    def _lends(self, reservation: SlotReservation, need: Need) -> bool:
        seconds = reservation.free_until - self.state.now
        return need.queue.interruptible_backfill <= seconds < NEVER and need.number != reservation.need.number

    def lent_for(self, need: Need, parts: Sequence[Placed]) -> int:
        """Seconds for which a job with these parts may use what is lent to it, as run limits are given; 0: for all its own."""
        limit, hosts = need.spec.limits.run, {part.host for part in parts}
        ends = [one.free_until for one in self.rows if self._lends(one, need) and any(part.host in hosts for part in one.full)]
        if not ends or limit is None:
            return 0
        longest = self.state.run_times.longest(need.spec, limit, hosts)
        seconds = min(ends) - self.state.now
        return self.state.run_times.given(need.spec, seconds, hosts) if seconds < longest else 0

    def withdraw(self) -> None:
        """Hosts show their slots as if nothing were reserved."""
        for reservation in self.rows:
            self._set(reservation, Level.NOTHING)

    def _set(self, reservation: SlotReservation, level: Level) -> None:
        if level == Level.LEAST and self.most > 1:
            level = Level.FULL  # what is spare at its start may be promised to others as well
        if level != reservation.level:
            shift(self.state, [(_parts(reservation, reservation.level), reservation.need.spec)], -1, held=True)
            shift(self.state, [(_parts(reservation, level), reservation.need.spec)], 1, held=True)
            reservation.level = level

    def reserve(self, need: Need, eligible: Eligibility, row: Job | Array, key: int) -> None:
        """Make a reservation for a job that does not fit, unless there are enough, and hold what is free of it now."""
        if len(self.rows) >= self.most or key in self.promises or not reserves(need) or not self._is_due(need):
            return
        avoid = row.avoid if isinstance(row, Job) else ()
        reservation = self._find(need, eligible, key, avoid)
        self._note(need, reservation is not None)
        if reservation is None or (reservation.start == NEVER and not self._may_hold_without_start(need, row.submitted)):
            return
        self._limit_lending_before(reservation)
        self.rows.append(reservation)
        self.state.free_may_grow = True
        self._set(reservation, Level.FULL)
        start = 0.0 if reservation.start == NEVER else reservation.start
        hosts = tuple((part.host, part.slots) for part in reservation.places)
        held = tuple((part.host, part.slots) for part in reservation.full if part.slots)
        self.promises[key] = ReservedStart(start=start, hosts=hosts, held=held)

    def _is_due(self, need: Need) -> bool:
        """Whether a class is to be looked at in this cycle: some, for which there was no room even in time, take turns."""
        turns, since = self.state.cache.reserving, self.state.cache.classes[need.number].unreserved
        is_due = since <= turns.due
        if since < 0 or (is_due and self._looks > 0):
            return True
        turns.left_over |= is_due
        return False

    def _note(self, need: Need, found: bool) -> None:
        """Whether anything could be reserved for a class."""
        state = self.state
        state.cache.classes[need.number].unreserved = -1 if found else state.cache.cycle
        if not found:
            self._looks -= len(state.rows) + len(state.cluster.started)

    def _limit_lending_before(self, reservation: SlotReservation) -> None:
        """Earlier reservations on the same hosts lend nothing beyond this start: it counts on what comes back until then."""
        hosts = {place.host for place in reservation.places}
        for other in self.rows:
            if reservation.start < other.free_until and any(place.host in hosts for place in other.places):
                other.free_until = reservation.start

    def _may_hold_without_start(self, need: Need, since: float) -> bool:
        """Whether a job without a known start may hold now.

        It does so for MAX_RESERVE_TIME (in units of the scheduling interval), then pauses for as long, alternately.
        """
        periods = max(need.queue.slot_reserve, need.queue.resource_reserve)
        seconds = periods * self.state.cluster.conf.params.mbd_sleep_time
        turn = int((self.state.now - since) // seconds) if seconds else 0
        self.state.wake(since + (turn + 1) * seconds)
        return turn % 2 == 0

    def _find(self, need: Need, eligible: Eligibility, key: int, avoid: Sequence[str]) -> SlotReservation | None:
        """The earliest start by the run limits of others; where there is none, any hosts that would do if they were empty."""
        state = self.state
        for reservation in self.rows:
            self._set(reservation, Level.PLACES)
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
            self._set(other, Level.FULL)
        if found:
            self._fill(reservation, gone)
        return reservation if found else None

    def _as_of(self, need: Need, start: float) -> list[int]:
        """Look at advance reservations as for a start then; the rows whose free slots may be other than before."""
        advance, rows = self.state.advance, self.state.cache.by_name
        return [rows[host].index for host in advance.set_turn(need, start) if host in rows] if advance is not None else []

    def _coming(self) -> deque[tuple[float, int, Shifted]]:
        """What will be free again, the earliest first: of running jobs and of those that have a reservation.

        Begins and ends of advance reservations are among them, with nothing that comes back.
        """
        found = releases(self.state)
        for at, reservation in enumerate(self.rows):
            end = self.state.end_from(reservation.start, reservation.need.spec, reservation.places)
            found.append((end, at, (reservation.places, reservation.need.spec)))
        if self.state.advance is not None:
            spec = Spec(user="", queue="")
            found += [(edge, -(1 << 40) - place, ((), spec)) for place, edge in enumerate(self.state.advance.edges)]
        return deque(sorted(found, key=lambda release: release[:2]))

    def _fill(self, reservation: SlotReservation, gone: list[Shifted]) -> None:
        """Work out ``full`` and ``least``. ``gone``: what will be free again by its start."""
        names = {place.host for place in reservation.places}
        back = [part for parts, _ in gone for part in parts if part.host in names]
        for place in reservation.places:
            full = self._free_of(reservation.need, place)
            reservation.full.append(full)
            reservation.least.append(_without(place, full, [part for part in back if part.host == place.host]))

    def _free_of(self, need: Need, place: Placed) -> Placed:
        """What of a place is free now."""
        row, host = self.state.cache.by_name[place.host], self.state.ledger.host(place.host)
        advance = self.state.advance
        slots = min(place.slots, row.free if advance is None else advance.left(need, row.name, row.free))
        gpus: tuple[str, ...] = ()
        if need.gpu is not None and place.gpus:
            free = {card.uuid for card in usable(host.gpus, host.gpu_book, need.gpu)}
            gpus = tuple(card for card in place.gpus if card in free)
        reserved = tuple((name, min(amount, max(0.0, self.state.room(row, name)))) for name, amount in place.reserved)
        binds = tuple(bind for bind in place.binds if taken_by([bind]).isdisjoint(host.cpus))
        return Placed(host=place.host, slots=slots, gpus=gpus, reserved=reserved, binds=binds)


def _without(place: Placed, full: Placed, coming: Sequence[Placed | Part]) -> Placed:
    """What of its free part a place needs still when ``coming`` is back."""
    slots = min(full.slots, max(0, place.slots - sum(part.slots for part in coming)))
    reserved = tuple(
        (name, min(kept, max(0.0, amount - sum(v for part in coming for n, v in part.reserved if n == name))))
        for (name, amount), (_, kept) in zip(place.reserved, full.reserved, strict=True)
    )
    return Placed(host=place.host, slots=slots, gpus=full.gpus, reserved=reserved, binds=full.binds)


def _parts(reservation: SlotReservation, level: Level) -> list[Placed]:
    return ([], reservation.least, reservation.full, reservation.places)[level]


def _level(state: CycleState, reservation: SlotReservation, need: Need) -> Level:
    """What of a reservation a class must leave alone.

    How long a job of one slot would use what is reserved tell the hosts of the reservation; others may run on slower ones too.
    """
    limit = need.spec.expected
    if not need.queue.backfill or limit is None or reservation.start == NEVER or need.number == reservation.need.number:
        return Level.FULL
    if need.one_slot:
        longest = state.run_times.longest(need.spec, limit, (place.host for place in reservation.places))
    else:
        longest = state.run_times.bounds(need.spec, limit)[1]
    return Level.NOTHING if state.now + longest <= reservation.free_until else Level.LEAST


def reserves(need: Need) -> bool:
    """Whether the queue of a class makes reservations for its jobs."""
    return bool(need.queue.slot_reserve or need.queue.resource_reserve) and not need.spec.reservation
