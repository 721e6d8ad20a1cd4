"""Compound resource requirements, `2*{…}+4*{…}`: each term gets hosts by its own requirement; terms may share a host.

Rule: the terms are placed on the ledger one after the other, and taken off again. Where the written order does not fit, other
orders are tried, terms that fewer hosts suit first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations

from lavad.core.job.job import Placed
from lavad.core.lang.rusage_decay import merge_decays
from lavad.sched.hosts.candidates import Candidates
from lavad.sched.hosts.choose import Offer
from lavad.sched.hosts.fit import units
from lavad.sched.hosts.over_hosts import find_parts
from lavad.sched.needs.arrays import Ints, np
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.eligible import get_eligible

MAX_ORDERS = 24
"""Orders of the terms that are tried for one job."""
MAX_LOOKS = 50_000
"""Hosts looked at for one job, over all orders: fewer orders are tried where there are many hosts or terms."""


def find_compound(state: CycleState, need: Need, most: int, avoid: frozenset[str] = frozenset()) -> tuple[Placed, ...]:
    """The parts of a job with a compound requirement, one for each host; none: it does not fit. ``avoid``: hosts left out.

    Where every order of the terms breaks a limit, that of the parts is why the job waits.
    """
    with state.slots_coming_back():
        if not _may_fit(state, need, avoid):
            return ()
        refused: tuple[Placed, ...] = ()
        for order in _orders(state, need):
            found = _place(state, need, order, most, avoid)
            parts = _merged([part for parts in found for part in parts], need.gpu_per_task) if found else ()
            # what two terms share on one host (the same GPU) is seen only here
            if parts and not any(state.ledger.why_not_part(need.spec, part) for part in parts):
                if not state.limits.why_not(need.spec, parts):
                    return parts
                refused = refused or parts
    return refused


def _may_fit(state: CycleState, need: Need, avoid: frozenset[str]) -> bool:
    """Whether each term would fit alone."""
    terms = enumerate(need.terms)
    return all(find_parts(state, term, _offers(state, need, at, avoid), term.slots) for at, term in terms)


def _orders(state: CycleState, need: Need) -> Iterator[Sequence[int]]:
    """Orders of the terms: as written, then with terms first that fewer hosts suit, then others."""
    numbers = range(len(need.terms))
    yield numbers
    suits = [int(get_eligible(state, term).ok.sum()) for term in need.terms]
    tries = min(MAX_ORDERS, MAX_LOOKS // (len(suits) * max(1, len(state.rows))))
    yield from islice(permutations(sorted(numbers, key=suits.__getitem__)), max(1, tries))


def _place(
    state: CycleState, need: Need, order: Sequence[int], most: int, avoid: frozenset[str]
) -> list[tuple[Placed, ...]] | None:
    """The parts of each term by its number, None if one does not fit; the ledger is left as it was."""
    found: list[tuple[Placed, ...]] = [()] * len(need.terms)
    left = most
    try:
        for place, at in enumerate(order):
            term = need.terms[at]
            reserve = sum(need.terms[other].slots for other in order[place + 1 :])
            found[at] = find_parts(state, term, _offers(state, need, at, avoid), min(term.most, left - reserve))
            if not found[at]:
                return None
            left -= sum(part.slots for part in found[at])
            _shift(state, need, found[at], 1)
    finally:
        for parts in found:
            _shift(state, need, parts, -1)
    return found


def _offers(state: CycleState, need: Need, at: int, avoid: frozenset[str]) -> Iterator[Offer]:
    """What hosts offer a term; hosts that suit fewer of the other terms go first."""
    term = need.terms[at]
    others = [get_eligible(state, other).ok for other in need.terms if other is not term]
    wanted: Ints = np.sum(others, axis=0, dtype=np.int64) if others else np.zeros(len(state.rows), dtype=np.int64)
    for row in sorted(Candidates(state, term, get_eligible(state, term)), key=lambda row: wanted[row.index]):
        slots = 0 if row.name in avoid else units(state, term, row)[0]
        if slots:
            yield row, slots


def _shift(state: CycleState, need: Need, parts: Sequence[Placed], sign: int) -> None:
    if parts:
        state.ledger.shift(parts, need.spec, sign)
        state.limits.shift(need.spec, parts, sign, jobs=0)
        for part in parts:
            state.renew(state.cache.by_name[part.host])


def _merged(parts: Sequence[Placed], gpu_per_task: bool) -> tuple[Placed, ...]:
    """One part for each host, as an attempt has them."""
    found: dict[str, Placed] = {}
    for part in parts:
        old = found.get(part.host)
        found[part.host] = part if old is None else _both(old, part, gpu_per_task)
    return tuple(found.values())


def _both(one: Placed, other: Placed, gpu_per_task: bool) -> Placed:
    amounts = dict(one.reserved)
    for name, amount in other.reserved:
        amounts[name] = amounts.get(name, 0.0) + amount
    same = {fade.name for fade in one.decays} & {fade.name for fade in other.decays}
    whole = ({name for name, _ in one.reserved} & {name for name, _ in other.reserved}) - same
    decays = tuple(fade for fade in merge_decays(one.decays, other.decays) if fade.name not in whole)
    return Placed(
        host=one.host,
        slots=one.slots + other.slots,
        gpus=one.gpus + other.gpus if gpu_per_task else one.gpus,
        reserved=tuple(amounts.items()),
        decays=decays,
        binds=one.binds + other.binds,
    )
