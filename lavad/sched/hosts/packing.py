"""Hosts in an order that follows each placement: order[binpack] and order[spread], and that of jobs with GPUs.

Rule: order[binpack] and order[spread] (lava's own) take the fullest or the emptiest host first. A job with GPUs that has no
order[] goes where it breaks the least (``core.rules.gpu_packing``), so that whole hosts and whole NVLink islands are left for
jobs that need them. Of hosts that are as good it gets the one that it keeps from being idle again for the shortest time, by run
limits: none where others run on longer than it; then the fullest. How full a host is: the mean, over what the class asks for
(slots, memory, GPUs), of the fraction in use after one more job, weighted by LAVA_PACK_WEIGHTS. Preference (host+n of -m,
else of HOSTS) goes before all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from lavad.core.lang.gpureq import GpuReq
from lavad.core.rules.gpus import wanted
from lavad.core.rules.ledger import UNLIMITED
from lavad.sched.hosts.candidates import may_use
from lavad.sched.hosts.ends import NEVER, end_of
from lavad.sched.hosts.rank import ranked
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.needs.sorted_rows import Key, SortedRows
from lavad.sched.state.cycle_state import CycleState


class Packed:
    """A class's hosts; iterating brings the order up to what was placed. Classes that ask for the same share the order.

    It is made when it is first asked for: jobs with roles ask only for that of each role.
    """

    __slots__ = ("_eligible", "_need", "_rows", "_state")

    def __init__(self, state: CycleState, need: Need, eligible: Eligibility) -> None:
        self._state = state
        self._need = need
        self._eligible = eligible
        self._rows: SortedRows | None = None

    def _sorted(self) -> SortedRows:
        state, need = self._state, self._need
        size = (need.slots, need.ptile, need.one_host, need.gpu)
        kind = (need.packing, need.order_key, *size, _memory(need), _length(state, need))
        found = state.packings.orders.get(kind)
        if found is None:
            keys = _Keys(state, need)
            found = state.packings.orders[kind] = SortedRows(len(state.rows), keys.of, len(state.renewed))
        return found

    def numbers(self) -> list[int]:
        """The row numbers of all hosts with slots and GPUs, may the class use them or not."""
        if self._rows is None:
            self._rows = self._sorted()
        self._rows.catch_up(self._state.renewed)
        return [*self._rows]

    def __iter__(self) -> Iterator[Row]:
        state, need, codes = self._state, self._need, self._eligible.codes
        numbers = self.numbers()
        if state.columns is not None:
            usable = may_use(state, state.columns, need, self._eligible)
            return (state.rows[at] for at in numbers if usable[at])
        amounts = (*need.per_host, *need.per_slot)
        rows = (state.rows[at] for at in numbers if not codes[at])
        return (row for row in rows if all(state.room(row, name) + 1e-6 >= amount for name, amount in amounts))


def _memory(need: Need) -> float:
    """Memory that a class asks for on a host, in MB, in steps of a factor of 1.4, so that many classes share an order."""
    return _step(dict((*need.per_host, *need.per_slot)).get("mem", 0.0))


def _step(value: float) -> float:
    """The next power of the square root of 2; 0 for 0."""
    return float(2.0 ** (math.ceil(2 * math.log2(value)) / 2)) if value else 0.0


def _length(state: CycleState, need: Need) -> float:
    """How long a job with GPUs may run on a host of CPU factor 1, in seconds.

    In steps of a factor of 1.4, so that many classes share an order.
    """
    expected = need.spec.expected if need.packing == "gpus" else None
    if expected is None:
        return NEVER
    return _step(max(60.0, state.run_times.normalized(need.spec, expected)))


class _Keys:
    """By what the hosts are sorted for a class."""

    def __init__(self, state: CycleState, need: Need) -> None:
        self._state = state
        self._need = need
        self._length = _length(state, need)
        self._sign = 1.0 if need.packing == "spread" else -1.0
        self._rank = {at: place for place, at in enumerate(ranked(state, need))}
        conf = state.cluster.conf
        self._weights = dict(conf.params.lava_pack_weights)
        self._first = conf.groups_of_hosts.first_hosts(need.preferred, state.cache.by_name)
        self._levels = conf.groups_of_hosts.preferences(need.preferred, state.cache.by_name) if need.preferred else {}
        self._memory = _memory(need)

    def of(self, at: int) -> Key | None:
        """None: the host has no slots, or not the GPUs of a task."""
        row, need = self._state.rows[at], self._need
        if not row.free:
            return None
        cost: Key = ()
        if need.gpu is not None:
            tasks = self._tasks(row, need.gpu)
            if not tasks:
                return None
            if need.packing == "gpus":
                broken = row.gpu_cost(self._state.ledger, need.gpu, tasks)
                cost = (*broken[:3], self._longer(row), *broken[3:])
        preference = (float(row.name not in self._first), float(-self._levels.get(row.name, 0)))
        return (*preference, *cost, self._sign * self._full(row), float(self._rank[at]))

    def _tasks(self, row: Row, gpu: GpuReq) -> int:
        """Tasks of a job that this host has GPUs for; 0: none."""
        need, left = self._need, row.gpus_left(self._state.ledger, gpu) // (gpu.num or 1)
        return min(left, need.ptile or need.slots, row.free) if need.gpu_per_task else min(left, 1)

    def _longer(self, row: Row) -> float:
        """Seconds by which a job keeps a host from being idle longer than its jobs with GPUs do, by run limits."""
        length, left = self._state.run_times.actual(self._length, row.name), self._end(row) - self._state.now
        return length - max(0.0, left) if left < length else 0.0

    def _end(self, row: Row) -> float:
        """When the last of the host's jobs with GPUs is over, by run limits; 0.0: there is none."""
        state = self._state
        end = state.packings.ends.get(row.index)
        if end is None:
            use, jobs, specs = state.cluster.use.hosts.get(row.name), state.cluster.jobs.rows, state.cluster.specs.rows
            here = [jobs[key] for key, part in use.jobs.items() if part.gpus] if use is not None else []
            end = state.packings.ends[row.index] = max((end_of(state, job, specs[job.spec]) for job in here), default=0.0)
        return max(end, state.packings.started.get(row.name, 0.0))

    def _full(self, row: Row) -> float:
        """How full a host would be with one more job of the class: 0.0 empty, 1.0 full, at most 2.0."""
        need, mine = self._need, self._state.ledger.host(row.name)
        parts: list[tuple[str, float, int]] = []
        if mine.slots < UNLIMITED:
            parts.append(("slots", mine.taken + min(need.slots, mine.slots), mine.slots))
        if self._memory:
            parts.append(("mem", mine.reserved.get("mem", 0.0) + self._memory, row.host.facts.max_mem))
        if need.gpu is not None:
            held = sum(1 for card in mine.gpus if mine.gpu_book.jobs.get(card.uuid))
            parts.append(("gpus", held + wanted(need.gpu, 1), len(mine.gpus)))
        weights = [self._weights.get(name, 1.0) for name, _, _ in parts]
        shares = (min(2.0, used / most) if most else 2.0 for _, used, most in parts)
        total = sum(share * weight for share, weight in zip(shares, weights, strict=True))
        return round(total / sum(weights), 9) if any(weights) else 0.0
