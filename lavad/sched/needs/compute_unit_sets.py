"""Which compute units a job gets: the fewest that hold it, and of those the ones that cu[pref=] likes best.

Rule: numbers of units are in the order of lsb.hosts; nothing here knows hosts. Sets of more units follow for those whose
room turns out to be less than its slots (span, resources); few of each size are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from lavad.core.lang.resreq.sections import Cu

LIMIT = 16
"""Sizes of sets, from the smallest that could do, that are tried for one job."""


class Room(NamedTuple):
    """A compute unit by its number, and the slots that its hosts offer."""

    unit: int
    slots: int


def unit_sets(rooms: list[Room], slots: int, cu: Cu) -> Iterator[list[int]]:
    """Sets of units with at least so many slots, the smallest sets first."""
    usable = _usable(rooms, slots, cu)
    largest = sorted(usable, key=lambda room: -room.slots)
    most = min(len(usable), cu.maxcus or len(usable))
    sums = accumulate(room.slots for room in largest)
    least = next((size for size, total in enumerate(sums, 1) if total >= slots), most + 1)
    for size in range(least, min(most + 1, least + LIMIT)):
        found = _preferred(_in_order(usable, cu), largest, size, slots)
        yield [room.unit for room in found]
        rest = _in_order(largest[:size], cu)
        if rest != found:
            yield [room.unit for room in rest]


def _usable(rooms: list[Room], slots: int, cu: Cu) -> list[Room]:
    """usablecuslots=n: units that can give less are left out (but for a job that is smaller than that)."""
    least = min(cu.usablecuslots or 1, slots)
    return [room for room in rooms if room.slots >= least]


def _in_order(rooms: list[Room], cu: Cu) -> list[Room]:
    if cu.pref == "maxavail":
        return sorted(rooms, key=lambda room: (-room.slots, room.unit))
    if cu.pref in ("minavail", "bestfit"):
        return sorted(rooms, key=lambda room: (room.slots, room.unit))
    return sorted(rooms)


def _preferred(ordered: list[Room], largest: list[Room], size: int, slots: int) -> list[Room]:
    """The first set of this size in the order of preference that is large enough."""
    chosen: list[Room] = []
    missing = slots
    for room in ordered:
        left = size - len(chosen) - 1
        if left < 0:
            break
        rest = 0
        others = 0
        for other in largest:
            if others == left:
                break
            if other is not room and other not in chosen:
                rest += other.slots
                others += 1
        if room.slots + rest >= missing:
            chosen.append(room)
            missing -= room.slots
    return chosen


def balanced(rooms: list[Room], slots: int, cu: Cu) -> Iterator[list[tuple[int, int]]]:
    """cu[balance]: (unit, slots of it), as equal as can be, over the fewest units first."""
    least = min(cu.usablecuslots or 1, slots)
    most = min(len(rooms), cu.maxcus or len(rooms), slots)
    ordered = _in_order(rooms, cu)
    sums = accumulate(sorted((room.slots for room in rooms), reverse=True))
    first = next((size for size, total in enumerate(sums, 1) if total >= slots), most + 1)
    for size in range(first, min(most + 1, first + LIMIT)):
        share, more = divmod(slots, size)
        if share < least:
            return
        large = [room for room in ordered if room.slots > share][:more]
        chosen = {room.unit for room in large}
        small = [room for room in ordered if room.slots >= share and room.unit not in chosen][: size - more]
        if len(large) == more and len(small) == size - more:
            yield [*((room.unit, share + 1) for room in large), *((room.unit, share) for room in small)]
