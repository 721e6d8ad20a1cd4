"""How many slots of a class fit on a host, and what a part of a job takes there.

Rule: ``units`` alone says how many slots (for a one-slot class: jobs) a host has room for, and the pend reason where there are
too few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from lavad.core.job.job import Placed
from lavad.core.lang.cpus import Binding, count_tasks, give_cpus
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq.text import Affinity
from lavad.core.lang.rusage_decay import RusageDecay
from lavad.core.lang.topology import parse_topology
from lavad.core.rules.gpus import matches, pick
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.site.pend_reason import PendReason
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState


def units(state: CycleState, need: Need, row: Row) -> tuple[int, int]:
    """(slots that this class may have on this host now, the pend reason if they are too few)."""
    mine = state.ledger.host(row.name)
    if mine.exclusive:
        return 0, PendReason.HOST_EXCLUSIVE
    if need.spec.exclusive and mine.jobs:
        return 0, PendReason.HOST_NONEXCLUSIVE
    if not row.free:
        return 0, PendReason.HOST_JOB_LIMIT
    if need.accept_gap and _pauses(state, need, row):
        return 0, PendReason.HOST_ACCPT_ONE
    count, reason = row.free, int(PendReason.HOST_LESS_SLOTS)
    if state.advance is not None:
        left = state.advance.left(need, row.name, count)
        if left < count:
            count, reason = left, state.advance.reason(need, row.name)
    if need.most > 1 and not state.cluster.conf.params.parallel_sched_by_slot:
        count = min(count, mine.ncpus)
    for left, why in _other_limits(state, need, row):
        if left < count:
            count, reason = max(0, left), why
    if need.spec.exclusive and need.one_slot:
        count = min(count, 1)
    if count < need.whole_on_host:
        state.spent.note(need, row, count, reason)
    return count, reason


def _pauses(state: CycleState, need: Need, row: Row) -> bool:
    """Whether a job was started here too short a time ago; the cycle is woken when the host is ready."""
    started = state.last_start(row)
    if started + need.accept_gap <= state.now:
        return False
    state.retry_blocked = True
    state.wake(started + need.accept_gap)
    return True


def _other_limits(state: CycleState, need: Need, row: Row) -> Iterator[tuple[int, int]]:
    """The slots that resources, processors, GPUs and limits of this host leave, each with its pend reason."""
    names = state.ledger.names
    for name, amount in need.per_slot:
        yield copies(state.room(row, name), amount), need.rusage_reason(name, names)
    for name, amount in (*need.per_host, *need.shared):
        fits = copies(state.room(row, name), amount)
        yield fits if need.one_slot else UNLIMITED * (fits > 0), need.rusage_reason(name, names)
    if need.affinity is not None:
        yield _cpu_units(state, need, need.affinity, row)
    if need.gpu is not None:
        yield _gpu_units(state, need, need.gpu, row)
    if state.limits.has_host_limits(need.spec):
        yield state.limits.host_left(need.spec, row.name)
        slot, once = dict(need.per_slot), dict((*need.per_host, *need.shared))
        for name, room, reason in state.limits.amounts_left(need.spec, row.name):
            if name in slot:
                yield copies(room, slot[name]), reason
            elif name in once:
                fits = copies(room, once[name])
                yield fits if need.one_slot else UNLIMITED * (fits > 0), reason


def _cpu_units(state: CycleState, need: Need, want: Affinity, row: Row) -> tuple[int, int]:
    """affinity[]: the number of tasks that there are processors for; at most 1 for one-slot jobs."""
    mine = state.ledger.host(row.name)
    topology = parse_topology(mine.topology)
    if topology is None:
        return 0, PendReason.HOST_NO_TOPOLOGY
    return count_tasks(topology, mine.cpus, want, 1 if need.one_slot else row.free), PendReason.HOST_NO_CPUS


def _binds(state: CycleState, need: Need, row: Row, slots: int, gpus: tuple[str, ...]) -> tuple[Binding, ...]:
    """Processors for the tasks, in the NUMA nodes of the part's GPUs if it has any (``gpu: aff``)."""
    mine = state.ledger.host(row.name)
    topology = parse_topology(mine.topology)
    if need.affinity is None or topology is None:
        return ()
    near: Collection[int] = ()
    if gpus and need.gpu is not None and need.gpu.aff is not False:
        near = {card.numa for card in mine.gpus if card.uuid in gpus and card.numa >= 0}
    found = give_cpus(topology, mine.cpus, need.affinity, slots, near)
    # exclusive cores may not fit near the GPUs: then anywhere
    return found if len(found) == slots else give_cpus(topology, mine.cpus, need.affinity, slots)


def copies(room: float, amount: float) -> int:
    """How many times ``amount`` fits into ``room``; below zero where more is reserved than is there."""
    return int((room + 1e-6) // amount)


def _gpu_units(state: CycleState, need: Need, gpu: GpuReq, row: Row) -> tuple[int, int]:
    left = row.gpus_left(state.ledger, gpu)
    wanted = gpu.num or 1
    if state.limits.has_host_limits(need.spec):
        most, limited = state.limits.gpus_left(need.spec, row.name)
        if most < wanted <= left:
            return 0, limited
        left = min(left, most)
    reason = why_no_gpus(state, gpu, row)
    if need.gpu_per_task and not need.one_slot:
        return left // wanted, reason
    # one-slot jobs go one at a time: the next sees which GPUs this one took
    return (1 if need.one_slot else UNLIMITED) * (left >= wanted), reason


def why_no_gpus(state: CycleState, gpu: GpuReq, row: Row) -> int:
    wanted = gpu.num or 1
    if row.gpus_fitting(gpu) < wanted:
        return PendReason.GPU_NONE
    mine = state.ledger.host(row.name)
    closed = mine.gpu_book.closed
    if closed and sum(1 for card in mine.gpus if card.uuid not in closed and matches(card, gpu)) < wanted:
        return PendReason.GPU_CLOSED
    return PendReason.GPU_BUSY


def place_on(state: CycleState, need: Need, row: Row, slots: int, first: bool) -> Placed:
    """What a part of a job of this class takes on a host; ``first``: it is the job's first part."""
    reserved = need.per_host
    if need.per_slot:
        reserved += tuple((name, amount * slots) for name, amount in need.per_slot)
    if first and need.shared:
        reserved += need.shared
    if first and need.shape.per_job:
        reserved += need.shape.per_job
    gpus: tuple[str, ...] = ()
    if need.gpu is not None:
        mine = state.ledger.host(row.name)
        gpus = pick(mine.gpus, mine.gpu_book, need.gpu, slots, state.soft.gpus.get(row.name, {}))
    if need.decays or need.affinity is not None:
        decays, binds = _fades(need, reserved), _binds(state, need, row, slots, gpus)
        return Placed(host=row.name, slots=slots, gpus=gpus, reserved=reserved, decays=decays, binds=binds)
    return Placed(host=row.name, slots=slots, gpus=gpus, reserved=reserved)


def _fades(need: Need, reserved: tuple[tuple[str, float], ...]) -> tuple[RusageDecay, ...]:
    amounts = dict(reserved)
    return tuple(replace(fade, amount=amounts[fade.name]) for fade in need.decays if fade.name in amounts)
