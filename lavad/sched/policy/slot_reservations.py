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
from lavad.sched.needs.bases import Base
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import View

DEPTH = 50
"""Promises of one cycle, if all waiting jobs are promised a start."""

NOTHING, LEAST, FULL, PLACES = range(4)
"""How much of a hold is in force: what is not spare at its start, all that is free now, or what the job will have."""


class Hold:
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


class Holds:
    """All that is held in a cycle. ``show`` makes the hosts look as a class may see them."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.rows: list[Hold] = []
        self.promises: dict[int, Promise] = {}
        self.most = DEPTH if view.cluster.conf.params.backfill == "conservative" else 1

    def show(self, need: Need) -> None:
        """Take from the hosts what a class must leave alone; give back what it may use."""
        for hold in self.rows:
            self._set(hold, _level(self.view, hold, need))

    def hide(self) -> None:
        """The hosts as if nothing were held."""
        for hold in self.rows:
            self._set(hold, NOTHING)

    def _set(self, hold: Hold, level: int) -> None:
        if level == LEAST and self.most > 1:
            level = FULL  # what comes back until then may be promised to others as well
        if level != hold.level:
            shift(self.view, [(_parts(hold, hold.level), hold.need.spec)], -1)
            shift(self.view, [(_parts(hold, level), hold.need.spec)], 1)
            hold.level = level

    def promise(self, need: Need, base: Base, row: Job | Array, key: int) -> None:
        """Hold what there is for a job that does not fit, if its queue does so and it is its turn."""
        if len(self.rows) >= self.most or key in self.promises or not reserves(need):
            return
        avoid = row.avoid if isinstance(row, Job) else ()
        hold = self._find(need, base, key, avoid)
        if hold is None or (hold.start == NEVER and not self._may_hold(need, row.submitted)):
            return
        self._bound(hold)
        self.rows.append(hold)
        self.view.holds = True
        self._set(hold, FULL)
        start = 0.0 if hold.start == NEVER else hold.start
        hosts = tuple((part.host, part.slots) for part in hold.places)
        held = tuple((part.host, part.slots) for part in hold.full if part.slots)
        self.promises[key] = Promise(start=start, hosts=hosts, held=held)

    def _bound(self, hold: Hold) -> None:
        """What comes back on a host makes up first for what others use of earlier holds: then it would be missing here."""
        hosts = {place.host for place in hold.places}
        for other in self.rows:
            if hold.start < other.free_until and any(place.host in hosts for place in other.places):
                other.free_until = hold.start

    def _may_hold(self, need: Need, since: float) -> bool:
        """Whether a job may hold without knowing for how long: MAX_RESERVE_TIME, then as long without."""
        periods = max(need.queue.slot_reserve, need.queue.resource_reserve)
        seconds = periods * self.view.cluster.conf.params.sleep
        turn = int((self.view.now - since) // seconds) if seconds else 0
        self.view.wake(since + (turn + 1) * seconds)
        return turn % 2 == 0

    def _find(self, need: Need, base: Base, key: int, avoid: Sequence[str]) -> Hold | None:
        """The earliest start that run limits promise; without one, whatever would do if all were empty."""
        view = self.view
        for hold in self.rows:
            self._set(hold, PLACES)
        offers = Offers(view, need, base, avoid)
        free = {at: view.rows[at].free for at in offers.order}
        coming = self._coming()
        gone: list[Shifted] = []
        start = NEVER
        found: tuple[Placed, ...] = ()
        while coming and not found and coming[0][0] < NEVER:
            start = coming[0][0]
            while coming and coming[0][0] == start:
                gone.append(coming.popleft()[2])
                offers.renew(shift(view, gone[-1:], -1))
            offers.renew(self._as_of(need, start))
            found = offers.choose()
        if not found:
            start = NEVER
            rest = [shifted for _, _, shifted in coming]
            offers.renew(shift(view, rest, -1))
            gone += rest
            found = offers.choose(sorted(offers.order, key=lambda at: -free[at]))
        self._as_of(need, view.now)
        hold = Hold(key, need, start)
        hold.places = list(found)
        shift(view, gone, 1)
        for other in self.rows:
            self._set(other, FULL)
        if found:
            self._fill(hold, gone)
        return hold if found else None

    def _as_of(self, need: Need, start: float) -> list[int]:
        """Make advance reservations look as they are for a start then; the hosts of which there may be more or less."""
        advance, rows = self.view.advance, self.view.memory.by_name
        return [rows[host].at for host in advance.show(need, start) if host in rows] if advance is not None else []

    def _coming(self) -> deque[tuple[float, int, Shifted]]:
        """What comes back, the earliest first: of running jobs, and of those that are promised a start."""
        found = releases(self.view)
        for at, hold in enumerate(self.rows):
            limit = hold.need.spec.expected
            end = NEVER if limit is None else hold.start + limit
            found.append((end, at, (hold.places, hold.need.spec)))
        if self.view.advance is not None:
            spec = Spec(user="", queue="")
            found += [(edge, -(1 << 40) - place, ((), spec)) for place, edge in enumerate(self.view.advance.edges)]
        return deque(sorted(found, key=lambda release: release[:2]))

    def _fill(self, hold: Hold, gone: list[Shifted]) -> None:
        """What of its places is free now, and what of that is not spare at its start."""
        names = {place.host for place in hold.places}
        back = [part for parts, _ in gone for part in parts if part.host in names]
        for place in hold.places:
            row = self.view.memory.by_name[place.host]
            coming = [part for part in back if part.host == place.host]
            advance = self.view.advance
            slots = min(place.slots, row.free if advance is None else advance.left(hold.need, row.name, row.free))
            gpus: tuple[str, ...] = ()
            if hold.need.gpu is not None and place.gpus:
                mine = self.view.ledger.host(place.host)
                free = {card.uuid for card in usable(mine.gpus, mine.gpus_taken, hold.need.gpu)}
                gpus = tuple(card for card in place.gpus if card in free)
            reserved = tuple((name, min(amount, max(0.0, self.view.room(row, name)))) for name, amount in place.reserved)
            taken = self.view.ledger.host(place.host).cpus
            binds = tuple(bind for bind in place.binds if taken_by([bind]).isdisjoint(taken))
            hold.full.append(Placed(host=place.host, slots=slots, gpus=gpus, reserved=reserved, binds=binds))
            slots = min(slots, max(0, place.slots - sum(part.slots for part in coming)))
            reserved = tuple(
                (name, min(kept, max(0.0, amount - sum(v for part in coming for n, v in part.reserved if n == name))))
                for (name, amount), (_, kept) in zip(place.reserved, reserved, strict=True)
            )
            hold.least.append(Placed(host=place.host, slots=slots, gpus=gpus, reserved=reserved, binds=binds))


def _parts(hold: Hold, level: int) -> list[Placed]:
    return ([], hold.least, hold.full, hold.places)[level]


def _level(view: View, hold: Hold, need: Need) -> int:
    """How much of what is held a class must leave alone."""
    limit = need.spec.expected
    if not need.queue.backfill or limit is None or hold.start == NEVER or need.number == hold.need.number:
        return FULL
    return NOTHING if view.now + limit <= hold.free_until else LEAST


def reserves(need: Need) -> bool:
    """Whether the queue of a class holds what is free for its jobs."""
    return bool(need.queue.slot_reserve or need.queue.resource_reserve) and not need.spec.reservation
