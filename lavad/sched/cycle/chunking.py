"""Jobs in chunks (CHUNK_JOB_SIZE): how many share a slot, and their place in the plan.

Rule: jobs get slots of their own before any waits behind another, so that none waits while a slot is free for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from lavad.core.job.job import Placed
from lavad.core.plan.plan import Chunks
from lavad.core.rules.chunk_size import chunk_size
from lavad.sched.cycle.plan_builder import PlanBuilder
from lavad.sched.hosts.fit import place_on
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState

AT_ONCE = 128
"""Jobs of one proposal, about: the master accepts it as a whole."""


def most_in_chunk(state: CycleState, need: Need) -> int:
    """The most jobs of this class that share a slot; 1: each has its own."""
    if not state.cache.chunks or state.advance is not None:
        return 1
    return chunk_size(state.cluster, need.spec)


def jobs_for(state: CycleState, row: Row, count: int, most: int, jobs: int, slots: int) -> int:
    """How many jobs go into ``count`` slots of a host, of so many that have so many slots there and on the hosts after it.

    ``most``: those that may share a slot.
    """
    if most == 1 or jobs <= slots or not state.cluster.hosts.rows[row.name].facts.chunks:
        return min(count, jobs)
    each, more = divmod(jobs, max(slots, count))
    return min(count * most, count * each + min(more, count))


def start_in_chunks(builder: PlanBuilder, need: Need, row: Row, keys: Sequence[int], slots: int) -> None:
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
