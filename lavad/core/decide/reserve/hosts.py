"""Hosts and slots of an advance reservation: those of -m and -R that no other reservation has at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Refused
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.eval import compile_select
from lavad.core.rules.host_values import idle_values
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.site.reservation import Period, Reservation, periods

AHEAD = 60 * 7 * 86_400.0
"""Seconds ahead for which a recurring reservation is compared with others."""


class Wanted(Protocol):
    """The fields of a request that select hosts."""

    @property
    def hosts(self) -> str: ...
    @property
    def resreq(self) -> str: ...
    @property
    def slots(self) -> int: ...
    @property
    def unit(self) -> str: ...
    @property
    def system(self) -> bool: ...


def choose_hosts(cluster: Cluster, row: Reservation, ask: Wanted, now: float, local: datetime) -> tuple[tuple[str, int], ...]:
    """Host and slots for a new reservation; raises Refused where there are too few."""
    names = find_hosts(cluster, ask.hosts, ask.resreq)
    free = Free(cluster, row, now, local)
    if ask.system:
        busy = next((name for name in names if free.slots(name) < most(cluster, name)), None)
        if busy is not None:
            raise Refused(f"{busy}: Host is in another reservation at this time")
        return tuple((name, most(cluster, name)) for name in names)
    if ask.slots < 1:
        raise Refused("The number of slots or hosts must be a positive integer")
    if ask.unit == "host":
        whole = [name for name in names if free.slots(name) == most(cluster, name) > 0]
        if len(whole) < ask.slots:
            raise Refused(f"Not enough hosts to be reserved: {len(whole)} of {ask.slots}")
        return tuple((name, most(cluster, name)) for name in whole[: ask.slots])
    return take_slots(((name, free.slots(name)) for name in names), ask.slots)


def take_slots(offers: Iterable[tuple[str, int]], wanted: int) -> tuple[tuple[str, int], ...]:
    """Take ``wanted`` slots from the offered (host, slots) in their order; raises Refused if there are too few."""
    taken: list[tuple[str, int]] = []
    left = wanted
    for name, slots in offers:
        count = min(left, slots)
        if count > 0:
            taken.append((name, count))
            left -= count
    if left:
        raise Refused(f"Not enough processors to be reserved: {wanted - left} of {wanted}")
    return tuple(taken)


def most(cluster: Cluster, host: str) -> int:
    """The slots of a host."""
    slots = cluster.slots_of(host)
    return UNLIMITED if slots < 0 else slots


def find_hosts(cluster: Cluster, words: str, requirement: str) -> list[str]:
    """The batch hosts that -m names and that satisfy -R, in the order of -m; raises Refused."""
    if not words and not requirement:
        raise Refused("Hosts (-m) or a resource requirement (-R) are needed")
    known = cluster.hosts.rows
    groups = cluster.conf.groups_of_hosts.members
    found: dict[str, None] = {}
    for word in words.split() if words else ["all"]:
        names = list(known) if word == "all" or "all" in groups.get(word, ()) else list(cluster.conf.groups_of_hosts.hosts(word))
        if word not in groups and word != "all" and word not in known:
            raise Refused(f"{word}: Bad host name, host group name or cluster name")
        found.update(dict.fromkeys(name for name in names if name in known))
    hosts = [name for name in found if name not in cluster.host_conf or cluster.host_conf[name].server]
    return _satisfying(cluster, hosts, requirement) if requirement else hosts


def _satisfying(cluster: Cluster, hosts: list[str], requirement: str) -> list[str]:
    try:
        parsed = resreq.parse(requirement)
    except resreq.ResReqError as error:
        raise Refused(str(error)) from None
    names = resreq.BUILT_IN | {resource.name for resource in cluster.conf.resources}
    unknown = resreq.unknown_names(parsed, frozenset(names))
    if unknown:
        raise Refused(f"Bad resource requirement syntax: unknown resource <{unknown[0]}>")
    test = compile_select(parsed.select)
    fitting = [name for name in hosts if test(idle_values(cluster, name))]
    if not fitting:
        raise Refused("No host satisfies the resource requirement")
    return fitting


class Free:
    """Slots of hosts that other reservations leave free in all periods of one reservation."""

    def __init__(self, cluster: Cluster, row: Reservation, now: float, local: datetime) -> None:
        self.cluster = cluster
        others = [other for other in cluster.reservations.rows.values() if other.name != row.name]
        last = max([row.end, *(other.end for other in others if not other.window)]) if row.window else row.end
        end = max(last, now + AHEAD) if row.window and any(other.window for other in others) else last
        start = min(now, row.begin)
        at = datetime.fromtimestamp(start, local.tzinfo)
        self.mine = periods(row, start, end, at)
        self.others = [(other, periods(other, start, end, at)) for other in others]
        self._peaks: dict[tuple[tuple[str, int], ...], int] = {}

    def slots(self, host: str) -> int:
        """Slots of the host that are free in all periods."""
        there = [(other, dict(other.hosts)[host], spans) for other, spans in self.others if host in dict(other.hosts)]
        key = tuple((other.name, slots) for other, slots, _ in there)
        peak = self._peaks.get(key)
        if peak is None:
            peak = self._peaks[key] = self._peak([(slots, spans) for _, slots, spans in there])
        return max(0, most(self.cluster, host) - peak)

    def _peak(self, others: list[tuple[int, list[Period]]]) -> int:
        """Maximum of slots that others have at one time; it is reached at the beginning of one of the periods."""
        edges: list[tuple[float, int, int]] = []
        for slots, spans in others:
            edges += [(begin, 1, slots) for begin, _ in spans]
            edges += [(end, 0, -slots) for _, end in spans]
        edges += [edge for begin, end in self.mine for edge in ((begin, 2, 0), (end, -1, 0))]
        peak = held = 0
        inside = False
        for _, kind, slots in sorted(edges):
            held += slots
            inside = kind == 2 or (inside and kind != -1)
            peak = max(peak, held) if inside else peak
        return peak
