"""Which hosts a job gets, with how many slots each: span[], same[], cu[] and what is reserved once a job.

Rule: hosts are taken in the order in which they are offered, the best first; a job gets at least its minimum, or nothing. The
hosts of a job have starters of one protocol, as their shepherds speak with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from config.model.cluster import HostConfig
from lavad.core.job.job import Placed
from lavad.core.job.resize import by_hosts
from lavad.core.lang.resreq.sections import Cu
from lavad.core.rules.host_values import type_of
from lavad.core.site.pend_reason import PendReason
from lavad.sched.hosts.fit import copies
from lavad.sched.needs.compute_unit_sets import Room, balanced, unit_sets
from lavad.sched.needs.needs import PLAIN, Need
from lavad.sched.needs.rows import Row, read_values
from lavad.sched.state.cycle_state import CycleState

T = TypeVar("T")
Offer = tuple[Row, int]
"""(host, slots that a class may have there)."""


def choose(state: CycleState, need: Need, offers: Iterable[Offer], most: int) -> list[Offer]:
    """The hosts of a job with its slots on each; none: it cannot have its minimum. HOSTLIMIT_PER_JOB holds."""
    if not need.host_limit or need.one_slot:
        return _chosen(state, need, offers, most)
    offers = list(offers)
    found = _chosen(state, need, offers, most)
    if len(found) > need.host_limit:
        # only the hosts with the most room, in the order in which they were offered
        widest = sorted(offers, key=lambda offer: -offer[1])[: need.host_limit]
        found = _chosen(state, need, [offer for offer in offers if offer in widest], most)
    return found


def _chosen(state: CycleState, need: Need, offers: Iterable[Offer], most: int) -> list[Offer]:
    if not state.cache.mixed or need.one_slot:
        return _fitting(state, need, offers, most)
    groups: dict[int, list[Offer]] = {}
    for offer in offers:
        groups.setdefault(offer[0].host.facts.starter, []).append(offer)
    found = [_fitting(state, need, group, most) for group in groups.values()]
    return max(found, key=lambda chosen: sum(count for _, count in chosen), default=[])


def _fitting(state: CycleState, need: Need, offers: Iterable[Offer], most: int) -> list[Offer]:
    if need.shape is PLAIN:
        return _spread(need, offers, need.slots, most)
    best: list[Offer] = []
    for group in _alike(state, need, list(offers)):
        found = (
            _in_units(state, need, group, most) if need.shape.cu is not None else _shaped(state, need, group, need.slots, most)
        )
        if sum(count for _, count in found) > sum(count for _, count in best):
            best = found
        if sum(count for _, count in best) >= most:
            break
    return best


def why_too_many_hosts(need: Need, offers: Iterable[Offer]) -> int:
    """The pend reason of a class that got nothing for HOSTLIMIT_PER_JOB alone; 0: that is not why."""
    limited = need.host_limit and not need.one_slot and sum(count for _, count in offers) >= need.slots
    return PendReason.QUE_NO_SPAN if limited else 0


def _alike(state: CycleState, need: Need, offers: list[Offer]) -> Iterable[list[Offer]]:
    """same[]: groups of hosts with equal values of these resources, the group of the best host first."""
    if not need.shape.same:
        return [offers]
    groups: dict[tuple[object, ...], list[Offer]] = {}
    for row, count in offers:
        values = read_values(row, state.cluster, state.soft)
        groups.setdefault(tuple(values.get(name) for name in need.shape.same), []).append((row, count))
    return groups.values()


def _in_units(state: CycleState, need: Need, offers: list[Offer], most: int) -> list[Offer]:
    """cu[]: within as few compute units as will do, the preferred ones first."""
    cu = need.shape.cu or Cu()
    groups = by_unit(state, cu, offers, lambda offer: offer[0])
    rooms = [Room(unit, sum(min(count, need.ptile or count) for _, count in groups[unit])) for unit in sorted(groups)]
    for slots in dict.fromkeys((most, need.slots)):
        if cu.balance:
            for shares in balanced(rooms, slots, cu):
                parts = [_shaped(state, need, groups[unit], share, share) for unit, share in shares]
                if all(parts):
                    return [offer for part in parts for offer in part]
            continue
        for units in unit_sets(rooms, slots, cu):
            found = _shaped(state, need, [offer for unit in units for offer in groups[unit]], slots, slots)
            if found:
                return found
    return []


def by_unit(state: CycleState, cu: Cu, hosts: Iterable[T], row_of: Callable[[T], Row]) -> dict[int, list[T]]:
    """Compute unit by number to those of these hosts that are in it, without units that a job may not have for itself."""
    names = state.cache.units_of(state.cluster.conf, cu.type)
    groups: dict[int, list[T]] = {}
    for one in hosts:
        unit = names.get(row_of(one).name)
        if unit is not None:
            groups.setdefault(unit, []).append(one)
    if not cu.excl:
        return groups
    return {unit: group for unit, group in groups.items() if not state.ledger.why_not_alone(_hosts_of(state, cu, unit))}


def _hosts_of(state: CycleState, cu: Cu, unit: int) -> list[str]:
    names = state.cache.units_of(state.cluster.conf, cu.type)
    return [host for host, at in names.items() if at == unit and host in state.cache.by_name]


def whole_units(state: CycleState, need: Need, parts: Sequence[Placed]) -> tuple[str, ...]:
    """cu[excl]: the other hosts of the job's compute units, which no other job may use."""
    cu = need.shape.cu
    if cu is None or not cu.excl:
        return ()
    names = state.cache.units_of(state.cluster.conf, cu.type)
    used = {part.host for part in parts}
    units = dict.fromkeys(names[part.host] for part in parts)
    return tuple(host for unit in units for host in _hosts_of(state, cu, unit) if host not in used)


def _shaped(state: CycleState, need: Need, offers: list[Offer], least: int, most: int) -> list[Offer]:
    offers = _with_first(state, need, offers)
    span = need.shape.span
    if span.kind == "block":
        chosen = _blocks(span.n, offers, most)
    elif span.kind == "stripe":
        chosen = _stripes(span.n, offers, most)
    elif span.kind == "ptile":
        chosen = _varied_tiles(state, need, offers, most)
    elif need.one_host and need.shape.per_job:
        chosen = _one_host((offer for offer in offers if _with_first(state, need, [offer])), least, most)
    else:
        chosen = _spread(need, offers, least, most)
        if need.shape.per_job and not _with_first(state, need, chosen):
            chosen = _spread(need, offers, least, most, few=False)
    return _with_first(state, need, chosen) if sum(count for _, count in chosen) >= least else []


def _with_first(state: CycleState, need: Need, offers: list[Offer]) -> list[Offer]:
    """The best host that has room for what is reserved once a job goes first; no offers: there is no such host."""
    per_job = need.shape.per_job
    for at, (row, _) in enumerate(offers if per_job else ()):
        if all(copies(state.room(row, name), amount) > 0 for name, amount in per_job):
            return [offers[at], *offers[:at], *offers[at + 1 :]]
    return [] if per_job else offers


def _spread(need: Need, offers: Iterable[Offer], least: int, most: int, few: bool = True) -> list[Offer]:
    """``few``: the GPUs of a job are to be on as few hosts as possible, whatever the order of the hosts."""
    if need.one_host:
        return _one_host(offers, least, most)
    if need.ptile:
        return _tiles(need, least, offers, most)
    chosen: list[Offer] = []
    total = 0
    for row, count in _on_few(offers, most) if few and need.packing == "gpus" and not need.one_slot else offers:
        take = min(count, most - total)
        chosen.append((row, take))
        total += take
        if total >= most:
            break
    return chosen if total >= least else []


def _on_few(offers: Iterable[Offer], most: int) -> Iterator[Offer]:
    """The first host that holds all; else the largest as a whole, then the first that holds the rest: as few as possible."""
    smaller: list[Offer] = []
    for offer in offers:
        if offer[1] >= most:
            yield offer
            return
        smaller.append(offer)
    widest = sorted(smaller, key=lambda offer: -offer[1])
    at = 0
    while most > 0 and at < len(widest):
        large = widest[at]
        if large[1] >= most:
            chosen = {row.index for row, _ in widest[:at]}
            large = next(offer for offer in smaller if offer[1] >= most and offer[0].index not in chosen)
        yield large
        most -= large[1]
        at += 1


def _one_host(offers: Iterable[Offer], least: int, most: int) -> list[Offer]:
    best: Offer | None = None
    for row, count in offers:
        if count >= most:
            return [(row, most)]
        if count >= least and (best is None or count > best[1]):
            best = (row, count)
    return [] if best is None else [best]


def _tiles(need: Need, least: int, offers: Iterable[Offer], most: int) -> list[Offer]:
    """span[ptile=n]: n slots on each host; the rest goes to one more host.

    A job that grows by whole hosts has no other rest than that of its maximum: its hosts are alike, or it waits for them.
    """
    tile = need.ptile
    full: list[Offer] = []
    others: list[Offer] = []
    for row, count in offers:
        if count >= tile and len(full) < most // tile:
            full.append((row, tile))
        else:
            others.append((row, count))
        if len(full) * tile == most:
            return full
    total = tile * len(full)
    rest = min(most - total, tile)
    best = max(others, key=lambda offer: min(offer[1], rest), default=None)
    take = 0 if best is None else min(best[1], rest)
    if need.spec.resizable and by_hosts(need.spec) and not take == rest == need.most % tile:
        take = 0
    if best is not None and take and total + take >= least:
        return [*full, (best[0], take)]
    return full if total >= least else []


def _varied_tiles(state: CycleState, need: Need, offers: list[Offer], most: int) -> list[Offer]:
    """span[ptile='!',TYPE:n]: on each host as many slots as named for its type or model, else its MXJ."""
    chosen: list[Offer] = []
    partly: list[Offer] = []
    left = most
    for row, count in offers:
        tile = _tile_of(state, need, row) or count
        if count >= tile and left >= tile:
            chosen.append((row, tile))
            left -= tile
        else:
            partly.append((row, min(count, tile, left)))
    best = max(partly, key=lambda offer: offer[1], default=None) if left else None
    return [*chosen, (best[0], min(best[1], left))] if best is not None and left else chosen


def _tile_of(state: CycleState, need: Need, row: Row) -> int:
    """Slots for a host; 0: not configured (as in LSF, ptile='!' is then ignored)."""
    span = need.shape.span
    conf = state.cluster.host_conf.get(row.name) or HostConfig(name=row.name)
    own = (type_of(state.cluster, row.name), conf.model or row.host.facts.model)
    named = next((count for name, count in span.by_type if name in own), 0)
    return named or span.n or max(0, conf.slots or 0)


def _blocks(size: int, offers: list[Offer], most: int) -> list[Offer]:
    """span[block=n]: whole blocks of n slots, as many on each host as fit; the last block may be smaller."""
    chosen: list[Offer] = []
    left = most
    for row, count in offers:
        take = min(count, left) // size * size
        rest = left - take
        if rest < size and count - take >= rest:
            take += rest
        if take:
            chosen.append((row, take))
            left -= take
    return chosen


def _stripes(top: int, offers: list[Offer], most: int) -> list[Offer]:
    """span[stripe]: evenly over all hosts offered, the best get one slot more; stripe=n: at most n slots on a host."""
    if top:
        chosen = []
        for row, count in offers:
            take = min(count, top, most)
            most -= take
            chosen.append((row, take))
        return [offer for offer in chosen if offer[1]]
    given = [0] * len(offers)
    open_: Sequence[int] = range(len(offers))
    while most and open_:
        each = max(1, most // len(open_))
        for at in open_:
            take = min(each, offers[at][1] - given[at], most)
            given[at] += take
            most -= take
        open_ = [at for at in open_ if given[at] < offers[at][1]]
    return [(row, count) for (row, _), count in zip(offers, given, strict=True) if count]
