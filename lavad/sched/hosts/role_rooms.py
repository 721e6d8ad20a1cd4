"""What the hosts have for the tasks of one job with roles, over all hosts at once.

Rule: that the hosts have too little for a job is found out without placing its tasks (``lacking``): what is counted for that is
an upper bound of what ``hosts.roles`` can place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from lavad.core.cluster.gpu_book import gpu_amounts
from lavad.core.job.spec import Policy, Role, Spec
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq.text import ResReqError, merge
from lavad.core.rules.gpu_tasks import give_tasks
from lavad.sched.hosts.candidates import rooms
from lavad.sched.hosts.most_together import MostTogether
from lavad.sched.hosts.over_hosts import TogetherRoom, rooms_together
from lavad.sched.needs.arrays import Floats, Ints, Mask, np
from lavad.sched.needs.needs import Need, parsed
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible


def needs_of(state: CycleState, need: Need) -> tuple[Need, ...]:
    """The need of one task of each role; cached."""
    known = state.cache.role_needs.get(need.number)
    if known is None or known[0] is not need:
        found = tuple(_task_need(state, need, role) for role in need.spec.roles)
        known = state.cache.role_needs[need.number] = (need, found)
    return known[1]


def _task_need(state: CycleState, need: Need, role: Role) -> Need:
    """What one task of a role needs. What hosts share and the role asks for itself, each of its tasks takes."""
    found = Need.of(need.number, spec_of(need.spec, role), need.queue, state.cluster.conf)
    asked = {use.name for one in parsed(role.resreq).rusage for use in one.uses}
    found.per_host += tuple(amount for amount in found.shared if amount[0] in asked)
    found.shared = need.shared
    return found


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


class RoleRooms:
    """The slots, GPUs and resources that a job may still take on each host while it is being placed, limits on hosts counted.

    ``slots``, ``gpus`` and each of ``rooms`` have the shape (hosts,), ``counts`` and ``open`` (roles, hosts).
    """

    def __init__(self, state: CycleState, need: Need, avoid: frozenset[str] = frozenset()) -> None:
        self.state = state
        self.need = need
        self.roles = need.spec.roles
        self.needs = needs_of(state, need)
        self.amounts = [_amounts(one, role) for one, role in zip(self.needs, self.roles, strict=True)]
        """What one task of each role reserves on its host."""
        usable = _usable(state, need, avoid)
        for name, amount in need.shared:
            usable &= _room(state, name) + 1e-6 >= amount
        self.open: list[Mask] = [get_eligible(state, one).ok & usable for one in self.needs]
        """Whether a role may use a host at all."""
        self._whole = _Left(state, need, self.needs, self.amounts)
        self.together: list[TogetherRoom] = []
        """What limits and pools that count several hosts leave, while they are kept to."""
        self._keeps_together = False
        self.alone = self._count_alone()
        """How many tasks of each role a host has room for if nothing else is placed on it. Shape: (hosts,) each."""
        if state.limits.has_host_limits(need.spec) and self.lacking() is None:  # else nobody need ask them for each host
            self._whole.limit(state, need)
            self.alone = self._count_alone()

    def _count_alone(self) -> list[Ints]:
        self.clear()
        every = np.arange(len(self.state.rows))
        return [self.fill(every, [_ANY] * len(self.roles), (number,))[number] for number in range(len(self.roles))]

    @property
    def shares(self) -> bool:
        """Whether tasks on one host take of what others have: of resources that hosts share, or of limits."""
        return bool(self._whole.instances or self.together)

    def keep_together(self) -> None:
        """From now on keep to limits and pools that count several hosts: by each host alone the job has broken one."""
        self._keeps_together = True

    def clear(self) -> None:
        """Nothing of the job is placed."""
        whole = self._whole
        self.slots, self.gpus = whole.slots.copy(), whole.gpus.copy()
        self.rooms = {name: room.copy() for name, room in whole.rooms.items()}
        self.counts = np.zeros((len(self.roles), len(self.slots)), dtype=np.int64)
        self.together = rooms_together(self.state, self.need) if self._keeps_together else []

    def lacking(self) -> int | None:
        """The role whose least tasks have the least room, if these, or those of all roles together, cannot fit; else None."""
        least = [role.least for role in self.roles]
        have = [int(count.sum()) for count in self.alone]
        if all(room >= count for room, count in zip(have, least, strict=True)) and all(
            offered.sum() + 1e-6 >= wanted for _, offered, wanted in self._offered()
        ):
            return None
        return min(range(len(least)), key=lambda number: have[number] / least[number])

    def why_not_together(self) -> int:
        """Why limits and pools that count several hosts leave too little for the least tasks; 0: they leave enough, or may."""
        most = MostTogether(self.state, self.need)
        for name, offered, wanted in self._offered() if most else ():
            if name == _SLOTS:
                reason = most.why_not_slots(offered, int(wanted))
            elif name == _GPUS:
                reason = most.why_not_gpus(offered, int(wanted))
            else:
                reason = most.why_not_amount(name, offered, wanted)
            if reason:
                return reason
        return 0

    def _offered(self) -> Iterator[tuple[str, Ints | Floats, float]]:
        """(slots, GPUs or a resource, what each host may give of it to the least tasks of all roles, what these take).

        Shape of what hosts may give: (hosts,).
        """
        least = [role.least for role in self.roles]
        tasks = [np.minimum(count, most) for count, most in zip(self.alone, least, strict=True)]
        for name, room, each in self._taken():
            used = sum(count * amount for count, amount in zip(tasks, each, strict=True))
            wanted = sum(count * amount for count, amount in zip(least, each, strict=True))
            yield name, np.minimum(np.maximum(room, 0), used), wanted

    def _taken(self) -> Iterator[tuple[str, Ints | Floats, list[float]]]:
        """(slots, GPUs or a resource, what each host has of it, what a task of each role takes of it)."""
        whole = self._whole
        yield _SLOTS, whole.slots, [role.slots for role in self.roles]
        yield _GPUS, whole.gpus, [role.gpus for role in self.roles]
        for name, room in whole.rooms.items():
            yield name, room, [dict(own).get(name, 0.0) for own in self.amounts]

    def fill(self, hosts: Ints, left: Sequence[int], group: Sequence[int]) -> dict[int, Ints]:
        """Role of ``group``, in that order, to how many of its tasks that are ``left`` each of these hosts would take alone.

        Shape of each: (len(hosts),). Nothing is taken. What limits leave to several hosts together counts where one is asked.
        """
        slots, gpus = self.slots[hosts], self.gpus[hosts]
        room = {name: column[hosts] for name, column in self.rooms.items()}
        found: dict[int, Ints] = {}
        for number in group:
            role = self.roles[number]
            count = np.minimum(slots // role.slots, left[number]) * self.open[number][hosts]
            if role.spread:
                count = np.minimum(count, 1 - self.counts[number, hosts])
            for name, amount in self.amounts[number]:
                count = np.minimum(count, (room[name] + 1e-6) // amount)
            if role.gpus:
                count = np.minimum(count, gpus // role.gpus)
            if self.together and len(hosts) == 1:
                count = np.minimum(count, self._left_together(int(hosts[0]), number))
            count = np.maximum(count, 0).astype(np.int64)
            if role.gpus:
                self._keep_joined(hosts, number, count, found)
                gpus -= count * role.gpus
            slots -= count * role.slots
            for name, amount in self.amounts[number]:
                room[name] -= count * amount
            found[number] = count
        return found

    def take(self, host: int, number: int, count: int) -> None:
        """Tasks of a role are placed on the host with this row number."""
        role = self.roles[number]
        self.counts[number, host] += count
        self.slots[host] -= count * role.slots
        self.gpus[host] -= count * role.gpus
        for name, amount in self.amounts[number]:
            same = self._whole.instances.get(name)
            at: int | Mask = host if same is None else same == same[host]
            self.rooms[name][at] -= count * amount
        name = self.state.rows[host].name
        for left in self.together:
            if left.on_host(name):
                left.take(name, count * role.slots, {}, self._each(number))

    def _each(self, number: int) -> dict[str, float]:
        """What a slot of a role's tasks counts against limits on resources."""
        role = self.roles[number]
        return {name: amount / role.slots for name, amount in (*self.amounts[number], *gpu_amounts(self.need.spec, role.gpus))}

    def _left_together(self, host: int, number: int) -> int:
        """How many more tasks of a role on a host limits and pools that count several hosts leave."""
        name, each = self.state.rows[host].name, self._each(number)
        slots = [left.count(name, {}, each) for left in self.together if left.on_host(name)]
        return min(slots, default=_ANY) // self.roles[number].slots

    def _keep_joined(self, hosts: Ints, number: int, count: Ints, found: dict[int, Ints]) -> None:
        """Cut the counts to the tasks that can have their GPUs as glink and gtile say, beside the others on the host."""
        gpu = self.need.spec.gpu or GpuReq()
        if not gpu.glink and gpu.gtile is None:
            return
        for place in np.flatnonzero(count).tolist():
            counts = self.counts[:, hosts[place]].tolist()
            for other, own in found.items():
                counts[other] += int(own[place])
            mine = self.state.ledger.host(self.state.rows[hosts[place]].name)
            for more in range(int(count[place])):
                counts[number] += 1
                if give_tasks(mine.gpus, mine.gpu_book, gpu, self.gpus_of(counts)) is None:
                    count[place] = more
                    break

    def gpus_of(self, counts: Sequence[int]) -> list[int]:
        """The GPUs of each task where there are so many of each role."""
        return [role.gpus for role, count in zip(self.roles, counts, strict=True) for _ in range(count)]


_SLOTS, _GPUS = "<slots>", "<gpus>"
"""Beside the names of resources, which are without such signs."""
_ANY = 1 << 20
"""More tasks than any host takes."""


class _Left:
    """What hosts have for a job before any of its tasks is placed. ``instances``: of resources that hosts share, each host's."""

    def __init__(
        self, state: CycleState, need: Need, needs: Sequence[Need], amounts: Sequence[Sequence[tuple[str, float]]]
    ) -> None:
        self.slots = _free(state, need)
        names = dict.fromkeys(name for own in amounts for name, _ in own)
        self.rooms = {name: _room(state, name) for name in names}
        for name, amount in need.shared:  # its first part takes that besides
            if name in self.rooms:
                self.rooms[name] -= amount
        gpu = next((one.gpu for one in needs if one.gpu is not None), None)
        self.gpus = np.zeros(len(state.rows)) if gpu is None else _gpus(state, gpu)
        self.instances = {
            name: np.array([state.ledger.instance(row.name, name) for row in state.rows])
            for name in names
            if state.ledger.is_shared(name)
        }

    def limit(self, state: CycleState, need: Need) -> None:
        """Count limits on hosts, and pools."""
        if state.columns is not None and state.limits.for_new_jobs and not state.free_may_grow:
            self._limit_at_once(state, need)
            return
        limits, spec = state.limits, need.spec
        for at in np.flatnonzero(self.slots).tolist():
            row = state.rows[at]
            self.slots[at] = min(self.slots[at], max(0, limits.host_left(spec, row.name)[0]))
            if self.gpus[at]:
                self.gpus[at] = min(self.gpus[at], limits.gpus_left(spec, row.name)[0])
            for name, left, _ in limits.amounts_left(spec, row.name):
                if name in self.rooms:
                    self.rooms[name][at] = min(self.rooms[name][at], left)

    def _limit_at_once(self, state: CycleState, need: Need) -> None:
        """As ``limit``, for all hosts at once."""
        spent = state.spent
        spent.note_limits(need)
        if (bounds := spent.slots(need)) is not None:
            self.slots = np.minimum(self.slots, np.maximum(0, bounds.left)).astype(np.int64)
        if (bounds := spent.gpus(need)) is not None:
            self.gpus = np.minimum(self.gpus, bounds.left)
        for name, room in self.rooms.items():
            if (bounds := spent.amount(need, name)) is not None:
                self.rooms[name] = np.minimum(room, bounds.left)
        for pool in state.pools.columns(need.spec) if state.pools is not None else ():
            pool.note_wait(pool.slots < self.slots)
            self.slots = np.minimum(self.slots, pool.slots)
            if (mem := pool.mem) is not None and "mem" in self.rooms:
                pool.note_wait(mem < self.rooms["mem"])
                self.rooms["mem"] = np.minimum(self.rooms["mem"], mem)


def _amounts(need: Need, role: Role) -> list[tuple[str, float]]:
    return [*need.per_host, *((name, amount * role.slots) for name, amount in need.per_slot)]


def _usable(state: CycleState, need: Need, avoid: frozenset[str]) -> Mask:
    """Hosts that a job may use, as far as other jobs there and pauses after their starts go. Shape: (hosts,)."""
    rows, gap = state.rows, need.accept_gap
    if state.columns is not None:
        usable: Mask = ~state.columns.exclusive
    else:
        usable = np.fromiter((not row.exclusive for row in rows), dtype=np.bool_, count=len(rows))
    if need.spec.exclusive:
        usable &= np.fromiter((not row.busy for row in rows), dtype=np.bool_, count=len(rows))
    for name in avoid:
        if name in state.cache.by_name:
            usable[state.cache.by_name[name].index] = False
    if gap:
        ready = np.fromiter(map(state.last_start, rows), dtype=np.float64, count=len(rows)) + gap
        pausing = usable & (ready > state.now)
        if pausing.any():
            state.retry_blocked = True
            state.wake(float(ready[pausing].min()))
            usable &= ~pausing
    return usable


def _free(state: CycleState, need: Need) -> Ints:
    """Free slots of each host, less what advance reservations keep from the job. Shape: (hosts,)."""
    if state.columns is not None:
        free = state.columns.free.copy()
    else:
        free = np.fromiter((row.free for row in state.rows), dtype=np.int64, count=len(state.rows))
    if state.advance is not None:
        kept = (state.advance.left(need, row.name, row.free) for row in state.rows)
        free = np.minimum(free, np.fromiter(kept, dtype=np.int64, count=len(free)))
    return free


def _room(state: CycleState, name: str) -> Floats:
    """What may still be reserved of a resource on each host. Shape: (hosts,); the caller's own."""
    if state.columns is not None:
        return rooms(state, state.columns, name).copy()
    return np.fromiter((state.room(row, name) for row in state.rows), dtype=np.float64, count=len(state.rows))


def _gpus(state: CycleState, gpu: GpuReq) -> Floats:
    """GPUs of each host that the job may still have, wherever they are in it. Shape: (hosts,); the caller's own."""
    single = replace(gpu, num=1, glink=None, gtile=None)

    def left(at: int) -> float:
        return state.rows[at].gpus_left(state.ledger, single)

    if state.columns is not None:
        return state.columns.gpus(single, left).copy()
    return np.fromiter(map(left, range(len(state.rows))), dtype=np.float64, count=len(state.rows))
