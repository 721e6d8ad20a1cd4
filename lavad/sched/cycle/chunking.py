"""Jobs in chunks (CHUNK_JOB_SIZE): how many share a slot, and their place in the plan.

Rule: jobs get slots of their own before any waits behind another, so that none waits while a slot is free for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from lavad.core.job.job import Placed
from lavad.core.plan.plan import Chunks, Placement
from lavad.core.rules.chunk_size import chunk_size
from lavad.sched.cycle.plan_builder import PlanBuilder
from lavad.sched.hosts.fit import place_on, units
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState

AT_ONCE = 128
"""Jobs of one proposal, about: the master accepts it as a whole."""


def most_in_chunk(builder: PlanBuilder, need: Need) -> int:
    """The most jobs of this class that share a slot; 1: each has its own.

    A chunk keeps its slot for as long as all of its jobs together: not where a single one's time is looked at, for what is
    promised to others, for a window or a deadline, for what it reserves, or for the goal of a service class.
    """
    if not builder.state.cache.chunks or builder.state.advance is not None or builder.slot_reservations.rows:
        return 1
    if builder.goals is not None and builder.goals.cache.active(need.spec):
        return 1
    if need.decays or need.spec.deadline or (need.queue.run_window and not need.queue.ignore_deadline):
        return 1
    return chunk_size(builder.state.cluster, need.spec)


def place_in_chunks(
    builder: PlanBuilder, need: Need, candidates: Iterable[Row], keys: Iterator[int], waiting: int, room: int, most: int
) -> int:
    """Place one-slot jobs on free slots, in chunks of at most ``most`` where there are fewer slots than jobs; how many.

    ``waiting``: how many keys there are; ``room``: slots that they may have.
    """
    found: list[tuple[Row, int]] = []
    slots, waiting = 0, _by_groups(builder.state, need, waiting)
    for row in candidates if room > 0 else ():
        if count := min(units(builder.state, need, row)[0], room - slots):
            found.append((row, count))
            slots += count
        if slots >= min(waiting, room):
            break
    placed = 0
    for row, count in found:
        wanted = min(builder.left, waiting - placed, _jobs_for(builder.state, row, count, most, waiting - placed, slots))
        some = [*islice(keys, wanted)]
        _start(builder, need, row, some, count)
        placed += len(some)
        slots -= count
        if len(some) < wanted:
            break
    return placed


def _jobs_for(state: CycleState, row: Row, count: int, most: int, jobs: int, slots: int) -> int:
    """How many jobs go into ``count`` slots of a host, of so many that have so many slots there and on the hosts after it."""
    if jobs <= slots or not _knows_chunks(state, row):
        return min(count, jobs)
    each, more = divmod(jobs, max(slots, count))
    return min(count * most, count * each + min(more, count))


def _by_groups(state: CycleState, need: Need, jobs: int) -> int:
    """How many of so many jobs may start by the limits of their job group."""
    return min(jobs, state.ledger.group_left(need.spec.group)) if need.spec.group else jobs


def _knows_chunks(state: CycleState, row: Row) -> bool:
    return state.cluster.hosts.rows[row.name].facts.chunks


def place_in_turn(
    builder: PlanBuilder, need: Need, candidates: Iterable[Row], keys: Iterator[int], waiting: int, most: int
) -> int:
    """Place a chunk in one slot, if so many jobs that wait would share slots; how many jobs, 0: one starts alone.

    So where others come in between: those behind the first take no slot from them.
    """
    state = builder.state
    waiting = _by_groups(state, need, waiting)
    each = min(most, -(-waiting // max(1, state.free)))
    if each < 2 or state.limits.left(need.spec)[0] < 1:
        return 0
    row = next((row for row in candidates if units(state, need, row)[0]), None)
    if row is None or not _knows_chunks(state, row):
        return 0
    some = [*islice(keys, each)]
    if some:
        state.shares.charge(need.spec, (place_on(state, need, row, 1, True),))
        _start(builder, need, row, some, 1)
    return len(some)


def _start(builder: PlanBuilder, need: Need, row: Row, keys: Sequence[int], slots: int) -> None:
    if len(keys) > slots:
        _start_in_chunks(builder, need, row, keys, slots)
    elif keys:
        start_on(builder, need, row, keys)


def start_on(builder: PlanBuilder, need: Need, row: Row, keys: Iterable[int]) -> None:
    """Place one-slot jobs on a host that has room for them."""
    state = builder.state
    parts = (place_on(state, need, row, 1, True),)
    for key in keys:
        state.ledger.take(key, need.spec, parts)
        builder.placements.append(Placement(key, parts, need.number))
    state.renew(row)


def _start_in_chunks(builder: PlanBuilder, need: Need, row: Row, keys: Sequence[int], slots: int) -> None:
    """More jobs than slots start on a host."""
    state = builder.state
    part = place_on(state, need, row, 1, True)
    behind = (Placed(host=row.name, slots=0),)
    for key in islice(keys, len(keys) - slots):
        state.ledger.take(key, need.spec, behind)
    for key in islice(keys, len(keys) - slots, None):
        state.ledger.take(key, need.spec, (part,))
    each = max(1, AT_ONCE // -(-len(keys) // slots))
    for begin in range(0, slots, each):
        end = min(slots, begin + each)
        mine = [key for at in range(0, len(keys), slots) for key in keys[at + begin : at + end]]
        builder.add_chunks(Chunks(tuple(mine), end - begin, part, need.number))
    state.renew(row)
