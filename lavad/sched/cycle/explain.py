"""Why a class waits: how many hosts have which pend reason, and which of them by name.

Rule: the reasons are those that the decision was made with (``state.eligible``, ``hosts.fit``); nothing explains apart from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf

from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.lang.cpus import count_tasks
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq.text import Affinity
from lavad.core.lang.topology import parse_topology
from lavad.core.plan.volatile import WhyClass
from lavad.core.rules.gpus import room as gpu_room
from lavad.core.rules.gpus import why_never as gpus_never
from lavad.core.rules.ledger import UNLIMITED
from lavad.core.site.pend_reason import NEVER_RUSAGE, NEVER_TOGETHER, PendReason, about
from lavad.sched.hosts.candidates import rooms
from lavad.sched.hosts.fit import copies, units, why_no_gpus
from lavad.sched.hosts.role_rooms import needs_of
from lavad.sched.needs.arrays import Floats, Ints, Mask, np
from lavad.sched.needs.columns import Columns
from lavad.sched.needs.eligibility import Codes, Eligibility
from lavad.sched.needs.needs import PLAIN, Need
from lavad.sched.needs.rows import Row
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible
from lavad.sched.state.pool_columns import PoolLeft

MAX_NAMES = 20
"""Host names kept of each reason."""
Reason = tuple[int, int, tuple[str, ...]]
"""(pend reason, number of hosts, the first of their names)."""


def main_reason(code: int, now: float) -> WhyClass:
    """A reason that is about no host."""
    return WhyClass(reasons=((int(code), 0, ()),), at=now)


def role_reasons(state: CycleState, need: Need, short: Need) -> WhyClass:
    """Those of the hosts for the role of a job that there is no room for."""
    found = host_reasons(state, short, get_eligible(state, short))
    never = why_never_roles(state, need)
    if not never or not found.reasons or not found.reasons[0][1]:  # the latter: no host can take even one task
        return found
    return WhyClass(reasons=((never, 0, ()), *found.reasons), at=state.now)


def host_reasons(state: CycleState, need: Need, eligible: Eligibility) -> WhyClass:
    """The hosts' reasons, the most frequent first; before them, where it is so, that no host can ever take the job."""
    never = [why_never(state, way, get_eligible(state, way)) for way in need.ways] or [why_never(state, need, eligible)]
    if all(never):
        return WhyClass(reasons=((never[0], 0, ()), *_buckets(state, need, eligible)), at=state.now)
    if state.columns is None or state.free or need.spec.reservation or need.spec.exclusive or need.terms:
        return WhyClass(reasons=_buckets(state, need, eligible), at=state.now)
    changes, known = eligible.all_full
    if known is None or changes != state.columns.changes:
        # every host is full: the reasons are the same for all classes that may use the same hosts with other jobs
        known = WhyClass(reasons=_buckets(state, need, eligible), at=state.now)
        eligible.all_full = (state.columns.changes, known)
    return known


def is_never(why: WhyClass) -> bool:
    """Whether reasons of hosts (``host_reasons``) say that no host can ever take the job."""
    return bool(why.reasons) and not why.reasons[0][1]


def _buckets(state: CycleState, need: Need, eligible: Eligibility) -> tuple[Reason, ...]:
    if need.terms:
        return _count(state, _codes_of_terms(state, need, eligible))
    if state.columns is not None:
        return _count(state, _codes(state, state.columns, need, eligible))
    buckets: dict[int, list[str]] = {}
    for row, code in zip(state.rows, eligible.codes, strict=True):
        reason = int(code or why_not_more(need, units(state, need, row)))
        buckets.setdefault(reason, []).append(row.name)
    reasons = ((code, len(names), tuple(names[:MAX_NAMES])) for code, names in sorted(buckets.items()))
    return tuple(sorted(reasons, key=lambda reason: -reason[1]))


def _codes(state: CycleState, columns: Columns, need: Need, eligible: Eligibility) -> Codes:
    """Each host's reason; rows are asked one by one only where the columns cannot tell."""
    codes = eligible.array.copy()
    state.spent.renew(need)
    if need.spec.exclusive:
        taken = (codes == 0) & (columns.exclusive | columns.busy)
        codes[taken] = np.where(columns.exclusive, PendReason.HOST_EXCLUSIVE, PendReason.HOST_NONEXCLUSIVE)[taken]
    else:
        for short, reasons in _short(state, columns, need):
            some = (codes == 0) & (columns.free > 0) & short
            codes[some] = np.broadcast_to(reasons, len(codes))[some]
        state.spent.wake_after_pauses(need, codes == PendReason.HOST_ACCPT_ONE)
    if state.advance is not None and not need.spec.reservation:
        state.advance.explain(codes, columns.free)
    usual = need.shape is PLAIN and need.affinity is None
    if usual and not (need.spec.exclusive or need.spec.reservation or (need.whole_on_host > 1 and state.advance)):
        some = (codes == 0) & (columns.free > 0)
        bounding, known = _bounding(state, columns, need)
        codes[some & known] = bounding[some & known]
    if not need.spec.exclusive:
        full = (codes == 0) & (columns.free == 0)
        codes[full] = _full(columns)[full]
    for at in np.flatnonzero(codes == 0).tolist():
        codes[at] = why_not_more(need, units(state, need, state.rows[at]))
    return codes


def _short(state: CycleState, columns: Columns, need: Need) -> Iterator[tuple[Mask, Ints | int]]:
    """Hosts that have too little for even one slot, as far as it is known without asking each, and the reasons."""
    pausing = state.spent.pausing(need)
    if pausing is not None:
        yield pausing, PendReason.HOST_ACCPT_ONE
    for name, amount in (*need.per_slot, *need.per_host, *need.shared):
        yield rooms(state, columns, name) + 1e-6 < amount, need.rusage_reason(name, state.ledger.names)
    if need.gpu is None and need.affinity is None:  # else these come first, as in ``units``
        yield from state.spent.short(need)


def _bounding(state: CycleState, columns: Columns, need: Need) -> tuple[Ints, Mask]:
    """(what bounds the slots of each host that has any for the class, hosts of which that is known). Shapes: (hosts,).

    As ``fit.units`` and ``why_not_more`` say it of one host.
    """
    why = np.full(len(columns.free), int(PendReason.HOST_LESS_SLOTS))
    by_cpu = need.most > 1 and not state.cluster.conf.params.parallel_sched_by_slot
    most = np.minimum(columns.free, columns.ncpus) if by_cpu else columns.free
    for name, amount in (*need.per_slot, *((*need.per_host, *need.shared) if need.one_slot else ())):
        fits = (rooms(state, columns, name) + 1e-6) // amount
        why[fits < most] = need.rusage_reason(name, state.ledger.names)
        most = np.minimum(fits, most)
    known = np.full(len(why), not state.limits.book.has_host_limits(need.spec))
    state.spent.note_limits(need)
    if (limits := state.spent.slots(need)) is not None:
        known = np.isfinite(limits.left)
    pools = state.pools.columns(need.spec) if state.pools is not None else ()
    if need.gpu is not None:
        fits, reasons, of_gpus = _gpu_room(state, columns, need, need.gpu)
        known &= of_gpus
        why = np.where(fits < most, reasons, why)
        most = np.minimum(fits, most)
    if limits is not None:
        why, most = np.where(limits.left < most, limits.why, why), np.minimum(limits.left, most)
    for pool in pools:
        pool.note_wait(pool.slots < most)
        why, most = np.where(pool.slots < most, pool.reason, why), np.minimum(pool.slots, most)
    for fits, bounding in _fits(state, need, pools):
        why, most = np.where(fits < most, bounding, why), np.minimum(fits, most)
    if need.one_host or need.ptile:
        few = (most < need.whole_on_host) & (why == PendReason.HOST_LESS_SLOTS)
        why = np.where(most < need.whole_on_host, np.where(few, PendReason.JOB_NO_SPAN, why), PendReason.JOB_SPREAD_TASK)
    return why, known


def _fits(state: CycleState, need: Need, pools: Iterable[PoolLeft]) -> Iterator[tuple[Floats, Ints | int]]:
    """(slots that what limits, then pools, leave of a resource is enough for, reasons). Shapes: (hosts,)."""
    each = [*state.spent.amounts(need)]
    left: list[tuple[str, float, Floats, Ints | int]] = [(name, amount, one.left, one.why) for name, amount, one in each]
    for name, amount in (*need.per_slot, *need.per_host, *need.shared):
        for pool in pools if name == "mem" else ():
            if (mem := pool.mem) is not None:
                left.append((name, amount, mem, pool.reason))
    for name, amount, room, reasons in left:
        fits = np.floor((room + 1e-6) / amount)
        if not need.one_slot and name not in dict(need.per_slot):
            fits = np.where(fits > 0, UNLIMITED, 0)
        yield fits, reasons


def _gpu_room(state: CycleState, columns: Columns, need: Need, gpu: GpuReq) -> tuple[Floats, Ints, Mask]:
    """(slots that the GPUs of each host are enough for, why not for more, hosts of which that is known). Shapes: (hosts,)."""
    left = columns.gpus(gpu, lambda at: state.rows[at].gpus_left(state.ledger, gpu))
    reasons = columns.gpu_reasons(gpu, lambda at: why_no_gpus(state, gpu, state.rows[at])).astype(np.int64)
    wanted, known = gpu.num or 1, np.full(columns.count, True)
    if (limits := state.spent.gpus(need)) is not None:
        known = np.isfinite(limits.left)
        reasons = np.where((limits.left < wanted) & (left >= wanted), limits.why, reasons)
        left = np.minimum(left, limits.left)
    if need.gpu_per_task and not need.one_slot:
        return left // wanted, reasons, known
    return np.where(left >= wanted, 1 if need.one_slot else UNLIMITED, 0), reasons, known


def _full(columns: Columns) -> Ints:
    """What each host would say that has no free slot, to any but a job that wants hosts for itself. Shape: (hosts,)."""
    return np.where(columns.exclusive, PendReason.HOST_EXCLUSIVE, PendReason.HOST_JOB_LIMIT)


def _codes_of_terms(state: CycleState, need: Need, eligible: Eligibility) -> Codes:
    """Of a compound requirement: a host's reason is that of the first term, unless it has room for another term."""
    codes = eligible.array.copy()
    owns = [get_eligible(state, term) for term in need.terms]
    some = codes == 0
    if state.columns is not None:
        found = np.array([_codes(state, state.columns, term, own) for term, own in zip(need.terms, owns, strict=True)])
        any_room = (found == PendReason.HOST_LESS_SLOTS).any(axis=0)
        codes[some] = np.where(any_room, PendReason.HOST_LESS_SLOTS, found[0])[some]
        return codes
    for at in np.flatnonzero(some).tolist():
        reasons = [
            int(own.codes[at]) or why_not_more(term, units(state, term, state.rows[at]))
            for term, own in zip(need.terms, owns, strict=True)
        ]
        codes[at] = PendReason.HOST_LESS_SLOTS if PendReason.HOST_LESS_SLOTS in reasons else reasons[0]
    return codes


def _count(state: CycleState, codes: Codes) -> tuple[Reason, ...]:
    counts = np.bincount(codes)
    found = np.flatnonzero(counts)
    reasons = []
    for code in found.tolist():
        first = np.flatnonzero(codes == code)[:MAX_NAMES].tolist()
        reasons.append((code, int(counts[code]), tuple(state.rows[at].name for at in first)))
    return tuple(sorted(reasons, key=lambda reason: -reason[1]))


def why_not_more(need: Need, room: tuple[int, int]) -> int:
    """The reason of a host with this room, (slots, reason): too few slots, or some but not enough for the whole job.

    The latter is what bounds them: that of slots, or a resource, GPUs or a limit that leaves fewer.
    """
    count, reason = room
    if count == 0:
        return reason
    if need.one_host or need.ptile:
        wanted = need.slots if need.one_host else min(need.ptile, need.slots)
        if count < wanted:
            return PendReason.JOB_NO_SPAN if reason == PendReason.HOST_LESS_SLOTS else reason
        return PendReason.JOB_SPREAD_TASK
    return reason if need.shape is PLAIN or reason in _KEPT else PendReason.JOB_SPREAD_TASK


_KEPT = (PendReason.HOST_ADRSV_ACTIVE, PendReason.HOST_LESS_DURATION, PendReason.HOST_LESS_RSVSLOTS)
_FOR_GOOD = (PendReason.HOST_QUE_MEMB, PendReason.HOST_USR_SPEC, PendReason.HOST_SCHED_TYPE)
_FOR_GOOD_BY_FACTS = (*_FOR_GOOD, PendReason.HOST_RES_REQ, PendReason.HOST_QUE_RESREQ)


def why_never(state: CycleState, need: Need, eligible: Eligibility) -> int:
    """Why not even empty hosts could hold the job; 0: they could."""
    for term in need.terms:
        reason = why_never(state, term, get_eligible(state, term))
        if reason:
            return reason
    by_cpu = need.most > 1 and not state.cluster.conf.params.parallel_sched_by_slot
    few = _why_too_few_slots(state, need, eligible, by_cpu)
    if few and by_cpu and not _why_too_few_slots(state, need, eligible, by_cpu=False):
        return PendReason.NEVER_SLOTS_BY_CPU
    return few or _why_never_amounts(state, need, eligible) or _why_never_together(state, need, eligible, by_cpu)


def _why_too_few_slots(state: CycleState, need: Need, eligible: Eligibility, by_cpu: bool) -> int:
    """``by_cpu``: a host gives a parallel job no more slots than it has CPUs."""
    total, most = _slots_offered(state, need, eligible, by_cpu, need.ptile)
    if not total:
        return PendReason.NO_SUITABLE_HOST
    if need.one_host and most < need.slots:
        return PendReason.NEVER_HOST_SLOTS
    return PendReason.NEVER_SLOTS if total < need.slots else 0


def _slots_offered(state: CycleState, need: Need, eligible: Eligibility, by_cpu: bool, ptile: int) -> tuple[int, int]:
    """Slots that hosts have when they are empty, up to ``ptile`` on each: (of all together, of the one with most)."""
    found = eligible.capacity.get((by_cpu, ptile))
    if found is None:
        offers = [_capacity(state, row.name, by_cpu, ptile) for row in _usable(state, need, eligible)]
        found = eligible.capacity[by_cpu, ptile] = (sum(offers), max(offers, default=0))
    return found


def why_never_roles(state: CycleState, need: Need) -> int:
    """Why even empty hosts have too few slots for the least tasks of a role, or of all together; 0: they have enough."""
    for role, one in zip(need.spec.roles, needs_of(state, need), strict=True):
        total, _ = _slots_offered(state, one, get_eligible(state, one), False, role.slots if role.spread else 0)
        if 0 < total < role.least * role.slots:
            return PendReason.JOB_NO_SPAN if role.spread else PendReason.NEVER_SLOTS
    total, _ = _slots_offered(state, need, get_eligible(state, need), False, 0)
    return PendReason.NEVER_SLOTS if 0 < total < need.slots else 0


def _usable(state: CycleState, need: Need, eligible: Eligibility) -> list[Row]:
    """Hosts that the class may use now, or once they are up, open or less loaded."""
    out = _FOR_GOOD if need.depends_on_load else _FOR_GOOD_BY_FACTS
    codes = eligible.codes if isinstance(eligible.codes, list) else eligible.codes.tolist()
    return [row for row, code in zip(state.rows, codes, strict=True) if code not in out]


def _why_never_amounts(state: CycleState, need: Need, eligible: Eligibility) -> int:
    """Why no host has enough of some resource, of processors or GPUs, even for one slot of the job; 0: one has."""
    ledger = state.ledger
    for name, amount in (*need.per_host, *need.per_slot):
        if ledger.is_shared(name):
            continue
        top = eligible.most.get(name)
        if top is None:
            known = [ledger.capacity(row.name, name) for row in _usable(state, need, eligible)]
            top = eligible.most[name] = max((inf if most is None else most for most in known), default=0.0)
        if amount > top + 1e-6:
            return about(NEVER_RUSAGE, name, ledger.names)
    if need.affinity is not None and not _most_tasks(state, need, eligible, need.affinity):
        return PendReason.NEVER_CPUS
    gpu = need.gpu
    if gpu is None:
        return 0
    reason = eligible.no_gpus.get(gpu)
    if reason is None:
        gpus = [ledger.host(row.name).gpus for row in _usable(state, need, eligible)]
        reason = eligible.no_gpus[gpu] = gpus_never(gpus, gpu)
    return reason


def _why_never_together(state: CycleState, need: Need, eligible: Eligibility, by_cpu: bool) -> int:
    """Why empty hosts have room for fewer slots together than the job has: what each slot takes, or GPUs; 0: they have it."""
    ledger = state.ledger

    def offers(key: object, count: Callable[[Row], float]) -> bool:
        of_kind = (key, by_cpu, need.ptile)
        found, all_counted = eligible.totals.get(of_kind, (0.0, False))
        if not all_counted and found < need.slots:
            found = 0.0
            for row in _usable(state, need, eligible):
                found += min(_capacity(state, row.name, by_cpu, need.ptile), count(row))
                if found >= need.slots:  # most jobs need few hosts
                    break
            eligible.totals[of_kind] = (found, found < need.slots)
        return found >= need.slots

    for name, amount in need.per_slot if need.slots > 1 else ():
        if ledger.is_shared(name):
            continue

        def by_amount(row: Row, name: str = name, amount: float = amount) -> float:
            most = ledger.capacity(row.name, name)
            return inf if most is None else copies(most, amount)

        if not offers((name, amount), by_amount):
            return about(NEVER_TOGETHER, name, ledger.names)
    gpu = need.gpu
    if gpu is None or not need.gpu_per_task or need.one_slot:
        return 0
    fits = offers(gpu, lambda row: gpu_room(ledger.host(row.name).gpus, _NOBODY, gpu) // (gpu.num or 1))
    return 0 if fits else PendReason.NEVER_GPUS_TOGETHER


_NOBODY = GpuBook()


def _most_tasks(state: CycleState, need: Need, eligible: Eligibility, want: Affinity) -> float:
    """1 if any empty host has the processors for one task, else 0."""
    top = eligible.most.get(want)
    if top is None:
        texts = {state.ledger.host(row.name).topology for row in _usable(state, need, eligible)}
        known = [topology for text in sorted(texts) if (topology := parse_topology(text)) is not None]
        top = eligible.most[want] = max((count_tasks(topology, (), want, 1) for topology in known), default=0)
    return top


def _capacity(state: CycleState, host: str, by_cpu: bool, ptile: int) -> int:
    slots = state.cluster.slots_of(host)
    bounds = [UNLIMITED if slots < 0 else slots]
    if by_cpu:
        bounds.append(state.cluster.hosts.rows[host].facts.ncpus)
    return min(*bounds, ptile or UNLIMITED)
