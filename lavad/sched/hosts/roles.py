"""Hosts for the tasks of a job with roles: each task by its role's needs, all or nothing, on as few hosts as possible.

Rule: a job that fits on one host gets the host with the fewest free slots (best fit), with GPUs the one where it breaks the
least of what others need whole. In a job where some tasks use GPUs, the others stay off hosts with GPUs while there is room
elsewhere. With cu[] all of it is within as few compute units as will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from lavad.core.job.job import Placed
from lavad.core.lang.gpureq import GpuReq
from lavad.core.rules.gpu_tasks import give_tasks
from lavad.sched.hosts.choose import by_unit
from lavad.sched.hosts.over_hosts import breaks_together
from lavad.sched.hosts.packing import Packed
from lavad.sched.hosts.rank import ranked
from lavad.sched.hosts.role_rooms import RoleRooms
from lavad.sched.needs.arrays import Ints, Mask, np
from lavad.sched.needs.compute_unit_sets import Room, unit_sets
from lavad.sched.needs.needs import Need
from lavad.sched.needs.sorted_rows import Key, SortedRows
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible


class Found(NamedTuple):
    """Hosts for a job with roles, or why there are none."""

    parts: tuple[Placed, ...] = ()
    short: Need | None = None
    """The need of the role that there was no room for."""
    reason: int = 0
    """Of a limit or pool that counts several hosts, which leaves too little."""


def find_roles(state: CycleState, need: Need, most: int, avoid: frozenset[str]) -> Found:
    """The parts of a job with roles, at most ``most`` slots in all. They may break a limit, where no choice of hosts does not."""
    rooms = RoleRooms(state, need, avoid)
    short = rooms.lacking()
    if short is not None:
        return Found(short=rooms.needs[short])
    if reason := rooms.why_not_together():
        return Found(reason=reason)
    placer = RolePlacer(state, need, rooms)
    parts = placer.place(most)
    if parts and breaks_together(state, need, parts):
        rooms.keep_together()
        others = placer.place(most)
        parts = others if others and not state.limits.why_not(need.spec, others) else parts
    return Found(parts, None if parts else placer.needs[placer.short])


class RolePlacer:
    """Places one job on the hosts as they are. ``short``: number of the role that there was no room for.

    Hosts are arrays of row numbers, in the order in which they are tried.
    """

    def __init__(self, state: CycleState, need: Need, rooms: RoleRooms) -> None:
        self.state = state
        self.need = need
        self.rooms = rooms
        self.roles = rooms.roles
        self.needs = rooms.needs
        self.short = 0
        self.hosts = self._in_order()

    def _in_order(self) -> Ints:
        """The hosts with any slots that a role may use: in the order of the first role, then those of the others."""
        new = self.rooms.slots > 0
        found = []
        for one, open_ in zip(self.needs, self.rooms.open, strict=True):
            packed = one.packing == "gpus"
            order = Packed(self.state, one, get_eligible(self.state, one)).numbers() if packed else ranked(self.state, one)
            numbers = np.array(order, dtype=np.int64)
            numbers = numbers[(open_ & new)[numbers]]
            new[numbers] = False
            found.append(numbers)
        return np.concatenate(found)

    def place(self, most: int) -> tuple[Placed, ...]:
        """The parts, ``most`` slots at most; none: it does not fit."""
        least = [role.least for role in self.roles]
        for area in self._areas(most):
            for groups in self._ways(area):
                self.rooms.clear()
                left = least.copy()
                if all(self._pack(left, group, hosts) for group, hosts in groups):
                    self._add_more(area, most - sum(n * role.slots for n, role in zip(least, self.roles, strict=True)))
                    return self._parts()
        return ()

    def _areas(self, most: int) -> Iterable[Ints]:
        """The hosts to try: all of them, or with cu[] those of each set of compute units, the preferred one first."""
        cu = self.need.shape.cu
        if cu is None:
            yield self.hosts
            return
        groups = by_unit(self.state, cu, self.hosts.tolist(), self.state.rows.__getitem__)
        numbers = (tuple(role.count for role in self.roles), tuple(role.least for role in self.roles))
        for counts in dict.fromkeys(numbers):
            rooms = [Room(unit, self._room_in(np.array(groups[unit]), counts)) for unit in sorted(groups)]
            whole = sum(count * role.slots for count, role in zip(counts, self.roles, strict=True))
            for chosen in unit_sets(rooms, min(most, whole), cu):
                yield np.array([at for unit in chosen for at in groups[unit]], dtype=np.int64)

    def _room_in(self, hosts: Ints, counts: Sequence[int]) -> int:
        """Slots of the tasks, of so many of each role, that these hosts have room for; if it is all, whatever they have free."""
        self.rooms.clear()
        free = int(self.rooms.slots[hosts].sum())
        left = list(counts)
        every = self._widest(range(len(self.roles)))
        room = 0
        for at in hosts.tolist():
            room += self._fill(at, left, every)
            if not any(left):
                return free
        return room

    def _ways(self, area: Ints) -> Iterator[list[tuple[list[int], Ints]]]:
        """(roles, hosts) to try: GPU tasks apart from the others, all together, then role by role, the scarcest first."""
        every = list(range(len(self.roles)))
        with_gpus = [number for number in every if self.roles[number].gpus]
        rest = [number for number in every if not self.roles[number].gpus]
        if with_gpus and rest:
            rows, ledger = self.state.rows, self.state.ledger
            plain = [at for at in area.tolist() if not ledger.host(rows[at].name).gpus]
            yield [(with_gpus, area), (rest, np.array(plain, dtype=np.int64))]
        yield [(every, area)]
        if len(every) > 1:
            yield [([number], area) for number in sorted(every, key=lambda number: self._spare(number, area))]

    def _spare(self, number: int, area: Ints) -> float:
        """How many times these hosts have room for the least tasks of a role."""
        return float(self.rooms.alone[number][area].sum()) / self.roles[number].least

    def _widest(self, group: Iterable[int]) -> list[int]:
        """Roles in the order in which their tasks take room: those with the most GPUs, then slots, first."""
        return sorted(group, key=lambda number: (-self.roles[number].gpus, -self.roles[number].slots))

    def _fill(self, at: int, left: list[int], group: Sequence[int]) -> int:
        """Take all tasks that fit on a host of what is left; the slots that these take."""
        if self.rooms.together:
            return sum(self._take(at, left, {one: int(self._would_take([at], left, (one,))[one][0])}) for one in group)
        return self._take(at, left, {number: int(count[0]) for number, count in self._would_take([at], left, group).items()})

    def _would_take(self, hosts: Sequence[int] | Ints, left: Sequence[int], group: Sequence[int]) -> dict[int, Ints]:
        return self.rooms.fill(np.asarray(hosts), left, group)

    def _take(self, at: int, left: list[int], counts: dict[int, int]) -> int:
        """Place so many tasks of each role on a host; the slots that these take."""
        for number, count in counts.items():
            if count:
                self.rooms.take(at, number, count)
                left[number] -= count
        return sum(count * self.roles[number].slots for number, count in counts.items())

    def _slots_of(self, counts: dict[int, Ints]) -> Ints:
        """The slots of these tasks on each host."""
        slots: Ints = np.sum([count * self.roles[number].slots for number, count in counts.items()], axis=0)
        return slots

    def _pack(self, left: list[int], group: Sequence[int], hosts: Ints) -> bool:
        """Place what is left of these roles on as few of these hosts as possible; whether all of it is placed."""
        group = self._widest(group)
        found = self._would_take(hosts, left, group)
        sizes = self._slots_of(found)
        order = np.argsort(-sizes, kind="stable")
        order = order[sizes[order] > 0]
        hosts, sizes = hosts[order], sizes[order]
        counts = {number: count[order].tolist() for number, count in found.items()}
        used = np.zeros(len(hosts), dtype=np.bool_)
        start = 0
        while any(left[number] for number in group):
            pick = self._find_last(hosts, sizes, used, left, group)
            if pick is None:
                while start < len(hosts) and used[start]:
                    start += 1
                if start == len(hosts):
                    self.short = next(number for number in group if left[number])
                    return False
                pick = start
            used[pick] = True
            own = {number: count[pick] for number, count in counts.items()}
            if all(left[number] >= count for number, count in own.items()) and not self.rooms.shares:
                self._take(int(hosts[pick]), left, own)
            else:
                self._fill(int(hosts[pick]), left, group)
        return True

    def _find_last(self, hosts: Ints, sizes: Ints, used: Mask, left: Sequence[int], group: Sequence[int]) -> int | None:
        """The place among ``hosts`` of the host that fits best of those that hold all that is left; None: no host does.

        ``sizes``: the most slots that each could take.
        """
        whole = sum(left[number] * self.roles[number].slots for number in group)
        places = np.flatnonzero((sizes >= whole) & ~used)
        if not len(places):
            return None
        able: Ints = places[self._slots_of(self._would_take(hosts[places], left, group)) == whole]
        if not len(able):
            return None
        gpu, cards = self.need.spec.gpu, sum(left[number] * self.roles[number].gpus for number in group)
        if gpu is None or not cards or self.need.packing != "gpus":
            return int(able[int(np.argmin(self.rooms.slots[hosts[able]]))])
        place_of = dict(zip(hosts[able].tolist(), able.tolist(), strict=True))
        order = self._by_cost(replace(gpu, num=cards, per="host", glink=None))
        return next((place_of[at] for at in order if at in place_of), int(able[0]))

    def _by_cost(self, gpu: GpuReq) -> SortedRows:
        """The hosts that have these GPUs by what they would break of what others need whole (``gpu_packing``), then slots."""
        state = self.state

        def key_of(at: int) -> Key | None:
            row = state.rows[at]
            if row.gpus_left(state.ledger, gpu) < (gpu.num or 1):
                return None
            return (*row.gpu_cost(state.ledger, gpu, 1), float(row.free), float(rank[at]))

        kind = ("roles", gpu, self.need.order_key)
        rows = state.packings.orders.get(kind)
        if rows is None:
            rank = {at: place for place, at in enumerate(ranked(state, self.need))}
            rows = state.packings.orders[kind] = SortedRows(len(state.rows), key_of, len(state.renewed))
        rows.catch_up(state.renewed)
        return rows

    def _add_more(self, area: Ints, slots: int) -> None:
        """More tasks than the minimum, up to each role's count, where there is room."""
        has_tasks: Mask = np.asarray(self.rooms.counts.any(axis=0))[area]
        hosts = np.concatenate([area[has_tasks], area[~has_tasks]])
        for number, role in enumerate(self.roles):
            more = min(role.count - role.least, slots // role.slots)
            for at in hosts.tolist() if more > 0 else ():
                count = int(self._would_take([at], [more] * len(self.roles), (number,))[number][0])
                self._take(at, [0] * len(self.roles), {number: count})
                more -= count
                slots -= count * role.slots
                if not more:
                    break

    def _parts(self) -> tuple[Placed, ...]:
        """The parts: the first host is that of the first role's first task; task indexes go along the hosts."""
        counts = self.rooms.counts[:, self.hosts]
        used = np.flatnonzero(counts.any(axis=0))
        used = used[np.argsort((counts[:, used] > 0).argmax(axis=0), kind="stable")]
        firsts = [0] * len(self.roles)
        parts: list[Placed] = []
        for place in used.tolist():
            roles = []
            for number, count in enumerate(counts[:, place].tolist()):
                if count:
                    roles.append((number, firsts[number], count))
                    firsts[number] += count
            parts.append(self._placed(int(self.hosts[place]), tuple(roles), not parts))
        return tuple(parts)

    def _placed(self, at: int, roles: tuple[tuple[int, int, int], ...], first: bool) -> Placed:
        row = self.state.rows[at]
        reserved: dict[str, float] = {}
        for number, _, count in roles:
            for name, amount in self.rooms.amounts[number]:
                reserved[name] = reserved.get(name, 0.0) + amount * count
        if first:
            for name, amount in self.need.shared:
                reserved[name] = reserved.get(name, 0.0) + amount
        slots = sum(self.roles[number].slots * count for number, _, count in roles)
        gpus: tuple[str, ...] = ()
        sizes = self.rooms.gpus_of(self.rooms.counts[:, at].tolist())
        if any(sizes):
            mine, states = self.state.ledger.host(row.name), self.state.soft.gpus.get(row.name, {})
            gpus = give_tasks(mine.gpus, mine.gpu_book, self.need.spec.gpu or GpuReq(), sizes, states) or ()
        return Placed(host=row.name, slots=slots, gpus=gpus, reserved=tuple(reserved.items()), roles=roles)
