"""Hosts for the tasks of a job with roles: each task by its role's needs, all or nothing, on as few hosts as possible.

Rule: a job that fits on one host gets the host with the fewest free slots (best fit), with GPUs the one where it breaks the
least of what others need whole. In a job where some tasks use GPUs, the others stay off hosts with GPUs while there is room
elsewhere. With cu[] all of it is within as few compute units as will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lavad.core.job.job import Placed
from lavad.core.job.spec import Policy, Role, Spec
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq.text import ResReqError, merge
from lavad.core.rules.gpu_tasks import give_tasks
from lavad.sched.hosts.candidates import Candidates
from lavad.sched.hosts.choose import by_unit
from lavad.sched.hosts.fit import copies
from lavad.sched.hosts.packing import Packed
from lavad.sched.needs.compute_unit_sets import Room, unit_sets
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible


def needs_of(state: CycleState, need: Need) -> tuple[Need, ...]:
    """The need of one task of each role; cached."""
    known = state.cache.role_needs.get(need.number)
    if known is None or known[0] is not need:
        conf = state.cluster.conf
        found = tuple(Need.of(need.number, spec_of(need.spec, role), need.queue, conf) for role in need.spec.roles)
        known = state.cache.role_needs[need.number] = (need, found)
    return known[1]


def spec_of(spec: Spec, role: Role) -> Spec:
    """The spec of one task of a role, as if it were a job."""
    gpu: GpuReq | None = None
    if role.gpus:
        gpu = replace(spec.gpu or GpuReq(), num=role.gpus, per="host")
    try:
        resreq = merge([spec.resreq, role.resreq]) if role.resreq else spec.resreq
    except ResReqError:
        resreq = role.resreq  # checked at submission: only where the job's requirement was changed since
    return replace(spec, roles=(), policy=Policy(), slots=role.slots, max_slots=role.slots, resreq=resreq, gpu=gpu)


def find_roles(state: CycleState, need: Need, most: int, avoid: frozenset[str]) -> tuple[tuple[Placed, ...], Need | None]:
    """(parts, None) of a job with roles, or ((), need of the role that there was no room for)."""
    placer = RolePlacer(state, need, avoid)
    parts = placer.place(most)
    return parts, None if parts else placer.needs[placer.short]


class HostRoom:
    """What a job may still take on one host while it is being placed."""

    __slots__ = ("counts", "gpus", "most", "open", "room", "row", "slots")

    def __init__(self, row: Row, most: int, roles: int) -> None:
        self.row = row
        self.most = most
        """Slots that it may have there in all."""
        self.slots = most
        self.gpus = -1
        self.room: dict[str, float] = {}
        self.counts = [0] * roles
        self.open = [False] * roles
        """Role by number to whether it may use this host at all."""


class RolePlacer:
    """Places one job on the hosts as they are. ``short``: number of the role that there was no room for."""

    def __init__(self, state: CycleState, need: Need, avoid: frozenset[str]) -> None:
        self.state = state
        self.need = need
        self.roles = need.spec.roles
        self.needs = needs_of(state, need)
        self.short = 0
        self.spots: list[HostRoom] = []
        by_row: dict[int, HostRoom] = {}
        for number, one in enumerate(self.needs):
            eligible = get_eligible(state, one)
            for row in Packed(state, one, eligible) if one.packing == "gpus" else Candidates(state, one, eligible):
                if row.name in avoid or not self._may_use(row):
                    continue
                spot = by_row.get(row.index)
                if spot is None:
                    spot = by_row[row.index] = HostRoom(row, self._slots_of(row), len(self.roles))
                    self.spots.append(spot)
                spot.open[number] = True

    def _may_use(self, row: Row) -> bool:
        state, gap = self.state, self.need.accept_gap
        mine = state.ledger.host(row.name)
        if mine.exclusive or (self.need.spec.exclusive and mine.jobs):
            return False
        if gap and state.last_start(row) + gap > state.now:
            state.retry_blocked = True
            state.wake(state.last_start(row) + gap)
            return False
        return True

    def _slots_of(self, row: Row) -> int:
        """Free slots of a host, less what advance reservations keep from the job."""
        advance = self.state.advance
        return row.free if advance is None else advance.left(self.need, row.name, row.free)

    def place(self, most: int) -> tuple[Placed, ...]:
        """The parts, ``most`` slots at most; none: it does not fit."""
        least = [role.least for role in self.roles]
        for area in self._areas(most):
            for groups in self._ways(area):
                self._clear()
                left = least.copy()
                if all(self._pack(left, group, spots) for group, spots in groups):
                    self._add_more(area, most - sum(n * role.slots for n, role in zip(least, self.roles, strict=True)))
                    return self._parts()
        return ()

    def _areas(self, most: int) -> Iterable[list[HostRoom]]:
        """The hosts to try: all of them, or with cu[] those of each set of compute units, the preferred one first."""
        cu = self.need.shape.cu
        if cu is None:
            yield self.spots
            return
        groups = by_unit(self.state, cu, self.spots, lambda spot: spot.row)
        numbers = (tuple(role.count for role in self.roles), tuple(role.least for role in self.roles))
        for counts in dict.fromkeys(numbers):
            rooms = [Room(unit, self._room_in(groups[unit], counts)) for unit in sorted(groups)]
            whole = sum(count * role.slots for count, role in zip(counts, self.roles, strict=True))
            for chosen in unit_sets(rooms, min(most, whole), cu):
                yield [spot for unit in chosen for spot in groups[unit]]

    def _room_in(self, spots: Sequence[HostRoom], counts: Sequence[int]) -> int:
        """Slots of the tasks, of so many of each role, that these hosts have room for; if it is all, whatever they have free."""
        self._clear()
        left = list(counts)
        every = self._widest(range(len(self.roles)))
        room = sum(count * self.roles[number].slots for spot in spots for number, count in self._fill(spot, left, every))
        return room if any(left) else sum(spot.most for spot in spots)

    def _clear(self) -> None:
        for spot in self.spots:
            spot.slots, spot.gpus, spot.room, spot.counts = spot.most, -1, {}, [0] * len(self.roles)

    def _ways(self, area: list[HostRoom]) -> Iterable[list[tuple[list[int], list[HostRoom]]]]:
        """(roles, hosts) to try: GPU tasks apart from the others, all together, then role by role, the scarcest first."""
        every = list(range(len(self.roles)))
        with_gpus = [number for number in every if self.roles[number].gpus]
        rest = [number for number in every if not self.roles[number].gpus]
        if with_gpus and rest:
            plain = [spot for spot in area if not self.state.ledger.host(spot.row.name).gpus]
            yield [(with_gpus, area), (rest, plain)]
        yield [(every, area)]
        if len(every) > 1:
            yield [([number], area) for number in self._by_scarcity(area)]

    def _by_scarcity(self, area: list[HostRoom]) -> list[int]:
        self._clear()

        def spare(number: int) -> float:
            room = sum(self._fits(spot, number, 1 << 30) for spot in area)
            return room / max(1, self.roles[number].least)

        return sorted(range(len(self.roles)), key=spare)

    def _widest(self, group: Iterable[int]) -> list[int]:
        """Roles in the order in which their tasks take room: those with the most GPUs, then slots, first."""
        return sorted(group, key=lambda number: (-self.roles[number].gpus, -self.roles[number].slots))

    # -- one host ----------------------------------------------------------------------------------------------------

    def _fits(self, spot: HostRoom, number: int, most: int) -> int:
        """How many more tasks of a role fit on a host, at most ``most``."""
        if not spot.open[number] or not most:
            return 0
        need, role, row = self.needs[number], self.roles[number], spot.row
        count = min(most, spot.slots // role.slots)
        if role.spread:
            count = min(count, 1 - spot.counts[number])
        for name, amount in _amounts(need, role):
            if count <= 0:
                return 0
            room = spot.room.get(name)
            if room is None:
                room = spot.room[name] = self._room(row, name)
            count = min(count, copies(room, amount))
        if role.gpus and count > 0 and need.gpu is not None:
            if spot.gpus < 0:
                spot.gpus = row.gpus_left(self.state.ledger, replace(need.gpu, num=1, glink=None, gtile=None))
                if self.state.limits.has_host_limits(self.need.spec):
                    spot.gpus = min(spot.gpus, self.state.limits.gpus_left(self.need.spec, row.name)[0])
            count = self._joined(spot, number, min(count, spot.gpus // role.gpus))
        if count > 0 and self.state.limits.has_host_limits(self.need.spec):
            left = self.state.limits.host_left(self.need.spec, row.name)[0] - (spot.most - spot.slots)
            count = min(count, left // role.slots)
        return max(0, count)

    def _room(self, row: Row, name: str) -> float:
        """How much of a resource the job may reserve on a host, by limits too."""
        room, limits = self.state.room(row, name), self.state.limits
        if limits.has_host_limits(self.need.spec):
            left = limits.amounts_left(self.need.spec, row.name)
            room = min([room, *(amount for own, amount, _ in left if own == name)])
        return room

    def _joined(self, spot: HostRoom, number: int, most: int) -> int:
        """How many of these tasks can have their GPUs as glink and gtile say, beside the tasks that the host has."""
        gpu = self.need.spec.gpu or GpuReq()
        if not gpu.glink and gpu.gtile is None:
            return most
        mine, counts = self.state.ledger.host(spot.row.name), spot.counts.copy()
        for count in range(most):
            counts[number] += 1
            if give_tasks(mine.gpus, mine.gpu_book, gpu, self._sizes(counts)) is None:
                return count
        return most

    def _sizes(self, counts: Sequence[int]) -> list[int]:
        """The GPUs of each task where there are so many of each role."""
        return [role.gpus for role, count in zip(self.roles, counts, strict=True) for _ in range(count)]

    def _take(self, spot: HostRoom, number: int, count: int) -> None:
        role = self.roles[number]
        spot.counts[number] += count
        spot.slots -= count * role.slots
        if role.gpus:
            spot.gpus -= count * role.gpus
        for name, amount in _amounts(self.needs[number], role):
            spot.room[name] -= amount * count

    def _fill(self, spot: HostRoom, left: list[int], group: Sequence[int]) -> list[tuple[int, int]]:
        """Take all tasks that fit of what is left; (role, tasks) taken."""
        taken = []
        for number in group:
            count = self._fits(spot, number, left[number])
            if count:
                self._take(spot, number, count)
                left[number] -= count
                taken.append((number, count))
        return taken

    def _undo(self, spot: HostRoom, left: list[int], taken: list[tuple[int, int]]) -> None:
        for number, count in taken:
            self._take(spot, number, -count)
            left[number] += count

    def _would_take(self, spot: HostRoom, left: list[int], group: Sequence[int]) -> int:
        """Slots of the tasks that would fit."""
        taken = self._fill(spot, left, group)
        self._undo(spot, left, taken)
        return sum(count * self.roles[number].slots for number, count in taken)

    # -- all hosts ---------------------------------------------------------------------------------------------------

    def _pack(self, left: list[int], group: Sequence[int], spots: list[HostRoom]) -> bool:
        """Place what is left of these roles on as few of these hosts as possible; whether all of it is placed."""
        group = self._widest(group)
        sizes = [(self._would_take(spot, left, group), spot) for spot in spots]
        sizes = sorted((one for one in sizes if one[0]), key=lambda one: -one[0])
        while any(left[number] for number in group):
            whole = sum(left[number] * self.roles[number].slots for number in group)
            able = [spot for size, spot in sizes if size >= whole and self._would_take(spot, left, group) == whole]
            spot = min(able, key=lambda spot: self._fit(spot, left, group)) if able else next((spot for _, spot in sizes), None)
            if spot is None:
                self.short = next(number for number in group if left[number])
                return False
            self._fill(spot, left, group)
            sizes = [one for one in sizes if one[1] is not spot]
        return True

    def _fit(self, spot: HostRoom, left: list[int], group: Sequence[int]) -> tuple[int, ...]:
        """How well a host that holds all that is left fits: with GPUs what it would break of others (``gpu_packing``)."""
        gpu, cards = self.need.spec.gpu, sum(left[number] * self.roles[number].gpus for number in group)
        if gpu is None or not cards or self.need.packing != "gpus":
            return (spot.slots,)
        whole = replace(gpu, num=cards, per="host", glink=None)
        return (*spot.row.gpu_cost(self.state.ledger, whole, 1), spot.slots)

    def _add_more(self, area: list[HostRoom], slots: int) -> None:
        """More tasks than the minimum, up to each role's count, where there is room."""
        used = [spot for spot in area if any(spot.counts)]
        others = [spot for spot in area if not any(spot.counts)]
        for number, role in enumerate(self.roles):
            more = role.count - role.least
            for spot in (*used, *others) if more else ():
                count = self._fits(spot, number, min(more, slots // role.slots))
                if count:
                    self._take(spot, number, count)
                    more -= count
                    slots -= count * role.slots

    def _parts(self) -> tuple[Placed, ...]:
        """The parts: the first host is that of the first role's first task; task indexes go along the hosts."""
        used = [spot for spot in self.spots if any(spot.counts)]
        used.sort(key=lambda spot: next(number for number, count in enumerate(spot.counts) if count))
        firsts = [0] * len(self.roles)
        parts: list[Placed] = []
        for spot in used:
            roles = []
            for number, count in enumerate(spot.counts):
                if count:
                    roles.append((number, firsts[number], count))
                    firsts[number] += count
            parts.append(self._placed(spot, tuple(roles), not parts))
        return tuple(parts)

    def _placed(self, spot: HostRoom, roles: tuple[tuple[int, int, int], ...], first: bool) -> Placed:
        reserved: dict[str, float] = {}
        for number, _, count in roles:
            for name, amount in _amounts(self.needs[number], self.roles[number]):
                reserved[name] = reserved.get(name, 0.0) + amount * count
        if first:
            for name, amount in self.need.shared:
                reserved[name] = reserved.get(name, 0.0) + amount
        slots = sum(self.roles[number].slots * count for number, _, count in roles)
        gpus: tuple[str, ...] = ()
        sizes = self._sizes(spot.counts)
        if any(sizes):
            mine, states = self.state.ledger.host(spot.row.name), self.state.soft.gpus.get(spot.row.name, {})
            gpus = give_tasks(mine.gpus, mine.gpu_book, self.need.spec.gpu or GpuReq(), sizes, states) or ()
        return Placed(host=spot.row.name, slots=slots, gpus=gpus, reserved=tuple(reserved.items()), roles=roles)


def _amounts(need: Need, role: Role) -> list[tuple[str, float]]:
    """What one task of a role reserves on its host."""
    return [*need.per_host, *((name, amount * role.slots) for name, amount in need.per_slot)]
