"""Acceptance of jobs that start in chunks: how many of them there is still room for, and what each is dispatched with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from lavad.core.decide.placement.alike import is_simple
from lavad.core.job.job import Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.plan.plan import Chunks
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.limits import Limits


class Start(msgspec.Struct, frozen=True, gc=False):
    """One job of a chunk. ``behind``: key of the first one, 0: it is that, or alone in its slot."""

    key: int
    parts: tuple[Placed, ...]
    behind: int = 0
    is_first: bool = False
    ahead: tuple[int, ...] = ()


def room_for(ledger: Ledger, limits: Limits, chunks: Chunks, spec: Spec, waiting: int) -> tuple[int, int]:
    """(slots, jobs) that may still start, of so many jobs that wait, where the first of them may."""
    if not is_simple(limits, spec):
        return 0, 0
    jobs, first = waiting, chunks.keys[0]
    if spec.group:
        jobs = min(jobs, ledger.group_left(spec.group))
    array = ledger.cluster.arrays.rows.get(job_of(first)) if index_of(first) else None
    if array is not None and array.limit:
        jobs = min(jobs, array.limit - ledger.array_running(array.job))
    part = chunks.part
    slots = min(chunks.slots, jobs, ledger.host(part.host).free, limits.left(spec)[0])
    for name, amount in part.reserved:
        room = ledger.room(part.host, name)
        if room is not None and amount > 0:
            slots = min(slots, int((room + 1e-6) // amount))
    slots = max(0, slots)
    return slots, min(jobs, slots * -(-len(chunks.keys) // chunks.slots))


def starts(chunks: Chunks, keys: Sequence[int], slots: int) -> Iterator[Start]:
    """How each of the jobs starts in so many slots, those that run first before those behind them."""
    all_of_it, nothing = (chunks.part,), (Placed(host=chunks.part.host, slots=0),)
    for number, key in enumerate(keys):
        slot = number % slots
        is_last = number + slots >= len(keys)
        behind = keys[slot] if number >= slots else 0
        ahead = tuple(keys[slot:number:slots]) if is_last else ()
        is_first = not behind and not is_last
        yield Start(key, all_of_it if is_last else nothing, behind, is_first, ahead)
