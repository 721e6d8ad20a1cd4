"""Limits of lsb.resources and guaranteed pools that count several hosts together: hosts for a job that keep within them.

Rule: hosts are first chosen as if there were no such limit, and only a choice that breaks one is made again, of what the limits
leave on each host after those before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import tee
from typing import Protocol

from lavad.core.cluster.gpu_book import gpu_amounts
from lavad.core.job.job import Placed
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.site.limit_book import LimitBook
from lavad.sched.hosts.choose import Offer, choose
from lavad.sched.hosts.fit import copies, place_on
from lavad.sched.hosts.most_together import MostTogether
from lavad.sched.needs.arrays import np
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible


def find_parts(state: CycleState, need: Need, offers: Iterable[Offer], most: int) -> tuple[Placed, ...]:
    """The parts of a job of a class that is not compound, at most ``most`` slots in all; none if it does not fit.

    Where no choice of hosts keeps within the limits, the parts break one, which is then the reason why the job waits.
    """
    if need.one_slot or not (state.pools is not None or state.limits.over_hosts(need.spec)):
        return _parts(state, need, choose(state, need, offers, most))
    offers, again = tee(offers)
    first = _parts(state, need, choose(state, need, offers, most))
    if not first or not breaks_together(state, need, first) or not _may_keep_together(state, need):
        return first
    for some in retries(state, need, again):
        parts = _parts(state, need, choose(state, need, some, most))
        if parts and not state.limits.why_not(need.spec, parts):
            return parts
    return first


def _may_keep_together(state: CycleState, need: Need) -> bool:
    """Whether some choice of hosts may keep within the limits; False: none does, for sure."""
    if state.columns is None:
        return True
    most = MostTogether(state, need)
    free = state.columns.free if not need.ptile else np.minimum(state.columns.free, need.ptile)
    offered = np.where(get_eligible(state, need).ok, free, 0)
    each = _amounts(need)[1].items()
    return not most.why_not_slots(offered, need.slots) and not any(
        most.why_not_amount(name, offered * amount, need.slots * amount) for name, amount in each
    )


def retries(state: CycleState, need: Need, offers: Iterable[Offer]) -> Iterator[list[Offer]]:
    """What hosts may still offer by the limits: in the order of the hosts, then those with the most room first."""
    known = list(offers)
    yield list(within_limits(state, need, known))
    yield list(within_limits(state, need, sorted(known, key=lambda offer: -offer[1])))


def _parts(state: CycleState, need: Need, chosen: list[Offer]) -> tuple[Placed, ...]:
    return tuple(place_on(state, need, row, slots, place == 0) for place, (row, slots) in enumerate(chosen))


class TogetherRoom(Protocol):
    """What a limit or a pool still leaves to one job while hosts are chosen for it."""

    def on_host(self, host: str) -> bool:
        """Whether it counts this host."""

    def count(self, host: str, once: dict[str, float], each: dict[str, float]) -> int:
        """Slots that one more host may give. ``once``: reserved on a host whatever its slots; ``each``: for each slot."""

    def take(self, host: str, slots: int, once: dict[str, float], each: dict[str, float]) -> None:
        """The job gets these slots, with what goes with them."""


class _Left:
    """What one limit still leaves to the job."""

    def __init__(self, book: LimitBook, at: int, slots: int, amounts: dict[str, float]) -> None:
        self.book = book
        self.at = at
        self.slots = slots
        self.amounts = amounts

    def on_host(self, host: str) -> bool:
        return self.book.on_host(self.at, host)

    def count(self, host: str, once: dict[str, float], each: dict[str, float]) -> int:
        found = self.slots
        for name, room in self.amounts.items():
            room -= once.get(name, 0.0)
            if name in each:
                found = min(found, copies(room, each[name]))
            elif name in once and room < -1e-6:
                return 0
        return max(0, found)

    def take(self, host: str, slots: int, once: dict[str, float], each: dict[str, float]) -> None:
        self.slots -= slots
        for name in self.amounts:
            self.amounts[name] -= once.get(name, 0.0) + slots * each.get(name, 0.0)


def rooms_together(state: CycleState, need: Need) -> list[TogetherRoom]:
    """What each limit and pool leaves to one job, less what it reserves once."""
    limits = [_Left(state.limits.book, *left) for left in state.limits.over_hosts(need.spec)]
    for left in limits:
        left.take("", 0, dict((*need.shared, *need.shape.per_job)), {})
    return [*limits, *(state.pools.rooms(need.spec) if state.pools is not None else ())]


def breaks_together(state: CycleState, need: Need, parts: tuple[Placed, ...]) -> bool:
    """Whether there are such limits, and these parts of a job break any limit."""
    return (state.pools is not None or bool(state.limits.over_hosts(need.spec))) and bool(state.limits.why_not(need.spec, parts))


def within_limits(state: CycleState, need: Need, offers: Iterable[Offer]) -> Iterator[Offer]:
    """The offers, each with the slots that the limits leave to it beside those before it (span[hosts=1]: beside none)."""
    once, each = _amounts(need)
    rooms = rooms_together(state, need)
    for row, count in offers:
        mine = [room for room in rooms if room.on_host(row.name)]
        count = min((need.ptile or UNLIMITED, count, *(room.count(row.name, once, each) for room in mine)))
        if count > 0:
            yield row, count
            for room in mine if not need.one_host else ():
                room.take(row.name, count, once, each)


def _amounts(need: Need) -> tuple[dict[str, float], dict[str, float]]:
    """What a host of the job counts against limits on resources: whatever its slots, and for each of its slots."""
    gpus = () if need.gpu is None else gpu_amounts(need.spec, need.gpu.num or 1)
    per_task = need.gpu_per_task
    return dict((*need.per_host, *(() if per_task else gpus))), dict((*need.per_slot, *(gpus if per_task else ())))
