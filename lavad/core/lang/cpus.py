"""Which processors the tasks of a job get on one host: affinity[].

Rule: no CPU is given to two tasks. Tasks are served in order, so that n tasks get the CPUs that the first n of a larger number
would get. Pure: the same free CPUs give the same answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import msgspec

from lavad.core.lang.resreq.grammar import Affinity
from lavad.core.lang.topology import LEVELS, Cpus, Topology

_PACK = re.compile(r"pack\((\w+)(?:=(\d+))?\)")


class Binding(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What one task is bound to: CPUs, NUMA nodes, and ``taken``, the CPUs that no other job gets; (): the same as ``cpus``."""

    cpus: tuple[int, ...]
    taken: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    only: bool = False
    """membind=localonly; else memory of its own nodes is only preferred."""


def taken_by(binds: Sequence[Binding]) -> Cpus:
    """The CPUs of these tasks that no other job may use."""
    return frozenset(cpu for bind in binds for cpu in bind.taken or bind.cpus)


def give_cpus(
    topology: Topology, taken: Collection[int], want: Affinity, tasks: int, near: Collection[int] = ()
) -> tuple[Binding, ...]:
    """Bindings for as many of ``tasks`` tasks as fit; ``near``: preferred NUMA nodes."""
    giver = _Allocator(topology, taken, want, near)
    if want.count == want.times == 1 and not want.same and want.exclusive is None and want.distribute != "balance":
        return giver.single(tasks)
    return tuple(giver.tasks(tasks))


def count_tasks(topology: Topology, taken: Collection[int], want: Affinity, most: int) -> int:
    """How many tasks fit, ``most`` at most."""
    if want.exclusive is not None or "(" in want.distribute:
        return len(give_cpus(topology, taken, want, most))
    out = frozenset(taken)
    free = [unit for unit in topology.units[want.unit] if out.isdisjoint(unit)] if out else topology.units[want.unit]
    if want.same:
        home = topology.home[want.same]
        rooms = Counter(home[min(unit)] for unit in free)
        groups = sum(room // want.count for room in rooms.values())
    else:
        groups = len(free) // want.count
    return min(most, groups // want.times)


class _Allocator:
    """One job's part on one host."""

    def __init__(self, topology: Topology, taken: Collection[int], want: Affinity, near: Collection[int]) -> None:
        self.topology = topology
        self.want = want
        self.near = frozenset(near)
        self.mine: set[int] = set()
        """CPUs given to tasks of this job here."""
        self.free = topology.cpus.difference(taken)
        self.scope = want.exclusive[1] if want.exclusive is not None else ""
        self._keep_to_pack()

    def _keep_to_pack(self) -> None:
        """distribute=pack(level=n): only the n emptiest units of that level."""
        match = _PACK.fullmatch(self.want.distribute)
        if match is None or match[1] not in LEVELS:
            return
        units = self.topology.units[match[1]]
        best = sorted(range(len(units)), key=lambda at: (-len(units[at] & self.free), at))[: int(match[2] or 1)]
        self.free = self.free & frozenset(cpu for at in best for cpu in units[at])

    def tasks(self, most: int) -> Iterator[Binding]:
        for _ in range(most):
            bind = self._task()
            if bind is None:
                return
            yield bind

    def single(self, most: int) -> tuple[Binding, ...]:
        """One unit for each task, as near to each other as possible."""
        free = [unit for unit in self.topology.units[self.want.unit] if unit <= self.free]
        most = min(most, len(free))
        chosen: Sequence[Cpus] = []
        for level in LEVELS[LEVELS.index(self.want.unit) :]:
            chosen = chosen or self._domain(level, free, most)[:most]
        return tuple(self._bound(unit, unit) for unit in chosen or self._nearest(free)[:most])

    def _task(self) -> Binding | None:
        given: set[int] = set()
        for _ in range(self.want.times):
            group = self._group(given)
            if group is None:
                self.mine.difference_update(given)
                self.free |= given
                return None
            given |= group
            self.mine |= group
            self.free -= group
        own = frozenset(given)
        taken = own
        if self.scope == "alljobs" and self.want.exclusive is not None:
            taken = self.topology.around(own, self.want.exclusive[0])
        return self._bound(own, taken)

    def _bound(self, own: Cpus, taken: Cpus) -> Binding:
        bound = self.topology.around(own, self.want.cpubind) if self.want.cpubind else own
        nodes = tuple(sorted({self.topology.nodes[cpu] for cpu in own})) if self.want.membind else ()
        return Binding(
            cpus=tuple(sorted(bound)),
            taken=tuple(sorted(taken)) if taken != bound else (),
            nodes=nodes,
            only=self.want.membind == "localonly",
        )

    def _group(self, given: set[int]) -> frozenset[int] | None:
        """``count`` units in one domain: that of `same`, else the smallest that has them."""
        want, topology = self.want, self.topology
        allowed = self._allowed(given)
        free = [unit for unit in topology.units[want.unit] if unit <= allowed]
        if len(free) < want.count:
            return None
        levels = [want.same] if want.same else LEVELS[LEVELS.index(want.unit) :]
        if want.distribute == "balance" and not want.same:
            levels = LEVELS[-1:]
        for level in levels:
            found = self._domain(level, free, want.count)
            if found:
                return frozenset(cpu for unit in found[: want.count] for cpu in unit)
        return None if want.same else frozenset(cpu for unit in self._nearest(free)[: want.count] for cpu in unit)

    def _allowed(self, given: set[int]) -> Cpus:
        """Free CPUs less those that `exclusive` keeps from this group."""
        if self.want.exclusive is None:
            return self.free
        level = self.want.exclusive[0]
        others = self.topology.cpus - self.free - self.mine
        rivals = {"intask": given, "injob": self.mine - given}.get(self.scope, others)
        if not rivals:
            return self.free
        return self.free - self.topology.around(frozenset(rivals), level)

    def _domain(self, level: str, free: list[Cpus], count: int) -> list[Cpus]:
        """The units of the best domain of a level that has enough of them; none: no domain has."""
        home = self.topology.home[level]
        domains: dict[int, list[Cpus]] = {}
        for unit in free:
            domains.setdefault(home[min(unit)], []).append(unit)
        large = [at for at, units in domains.items() if len(units) >= count]
        return domains[min(large, key=lambda at: self._rank(level, at, len(domains[at])))] if large else []

    def _rank(self, level: str, at: int, room: int) -> tuple[bool, int, int, int]:
        """Near ones first; then the emptiest (balance), or those that the job is in already and then the fullest."""
        unit = self.topology.units[level][at]
        far = bool(self.near) and not any(self.topology.nodes[cpu] in self.near for cpu in unit)
        mine = len(unit & self.mine)
        if self.want.distribute == "balance":
            return far, mine, -room, at
        return far, -mine, room, at

    def _nearest(self, free: list[Cpus]) -> list[Cpus]:
        """No domain holds all: those near first, then in order."""
        nodes = self.topology.nodes
        return sorted(free, key=lambda unit: (bool(self.near) and nodes[min(unit)] not in self.near, min(unit)))
