"""May a class of jobs use a host at all? Queue, -m, the host's state and windows, type, select and load thresholds.

Rule: what is decided here does not change while a cycle places jobs. The answer is a pend reason for each host, 0 for yes,
kept between cycles until something that it was made from has changed.

A select expression over all hosts at once: a comparison of a number with a constant is one numpy operation; every other test
is made host by host by ``core.lang.resreq.eval``, which defines the meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from config.model.values import Thresholds
from lavad.core.lang.resreq.eval import COMPARE, Value, compile_select
from lavad.core.lang.resreq.text import Expr, names_in
from lavad.core.rules.host_values import type_of
from lavad.core.site.pend_reason import LOAD, PendReason, about
from lavad.sched.needs.arrays import Floats, Mask, np
from lavad.sched.needs.columns import Columns
from lavad.sched.needs.eligibility import Codes, Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row, read_load, read_values
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.in_time import without_slow_hosts

Check = Callable[[Row], int]


def get_eligible(state: CycleState, need: Need) -> Eligibility:
    """The reasons of all hosts for a class, worked out again only if they may be different by now."""
    return without_slow_hosts(state, need, _get_lasting(state, need))


def _get_lasting(state: CycleState, need: Need) -> Eligibility:
    cache = state.cache
    known = cache.eligibilities.get(need.eligible_key)
    made_from = (cache.state_seen, cache.rows_seen)
    if known is not None and known.is_current(*made_from):
        return known
    if state.columns is None:
        checks = list(_checks(state, need))
        codes: list[int] | Codes = [next((code for check in checks if (code := check(row))), 0) for row in state.rows]
    else:
        codes = _make_codes(state, state.columns, need)
    if known is not None and known.made_from[0] == made_from[0] and known.has_codes(codes):
        known.made_from = made_from
        return known
    eligible = cache.eligibilities[need.eligible_key] = Eligibility(codes, need.depends_on_load, made_from, cache.cycle)
    return eligible


def _checks(state: CycleState, need: Need) -> Iterator[Check]:
    """The checks of one host, in this order: each gives a pend reason, 0 for none."""
    yield _member_check(_usable(state, need), PendReason.HOST_QUE_MEMB)
    if need.spec.hosts:
        yield _member_check(_asked(state, need), PendReason.HOST_USR_SPEC)
    if need.spec.reservation:
        yield _member_check(_reserved(state, need), PendReason.HOST_RSV)
    codes = state.cache.codes
    yield lambda row: codes[row.index]
    local = local_type(state, need)
    if not need.type_free and local:
        yield lambda row: 0 if type_of(state.cluster, row.name) == local else PendReason.HOST_SCHED_TYPE
    for select, reason in _selects(need):
        yield _select_check(state, select, local, reason)
    if need.queue.thresholds.sched:
        yield lambda row: why_not_load(state, row, need.queue.thresholds)
    levels = _host_thresholds(state)
    if levels:
        yield lambda row: why_not_load(state, row, levels.get(row.name, _NO_THRESHOLDS))


def _make_codes(state: CycleState, columns: Columns, need: Need) -> Codes:
    """The same checks in the same order over all hosts at once."""
    local = local_type(state, need)
    codes = _codes_by_host(state, columns, need, local).copy()
    for select, reason in _selects(need):
        _deny(codes, ~select_mask(state, columns, select, local), reason)
    for name, most in need.queue.thresholds.sched:
        column = columns.value(f"load {name}", lambda at, name=name: _load_at(state, at, name))  # type: ignore[misc]
        beyond = column > most if name in state.cache.increasing else column < most
        _deny(codes, beyond, about(LOAD, name, state.ledger.names))
    for host, levels in _host_thresholds(state).items():
        row = state.cache.by_name.get(host)
        if row is not None and not codes[row.index]:
            codes[row.index] = why_not_load(state, row, levels)
    return codes


def _codes_by_host(state: CycleState, columns: Columns, need: Need, local: str) -> Codes:
    """The checks that ask what a host is: the same for many classes, whatever the load."""
    cache = state.cache
    by_type = local if not need.type_free else ""
    key = need.queue.name, need.spec.hosts, need.spec.reservation, by_type
    kept = cache.codes_by_host.get(key)
    if kept is not None and kept[0] == cache.state_seen:
        return kept[1]
    codes = np.zeros(columns.count, dtype=np.int32)
    _deny(codes, ~_members(state, _usable(state, need)), PendReason.HOST_QUE_MEMB)
    if need.spec.hosts:
        _deny(codes, ~_members(state, _asked(state, need)), PendReason.HOST_USR_SPEC)
    if need.spec.reservation:
        _deny(codes, ~_members(state, _reserved(state, need)), PendReason.HOST_RSV)
    codes = np.where(codes == 0, columns.codes, codes)
    if by_type:
        same: Expr = ("==", ("name", "type"), ("str", local))
        _deny(codes, ~select_mask(state, columns, same, local), PendReason.HOST_SCHED_TYPE)
    if len(cache.codes_by_host) >= _KEPT:
        cache.codes_by_host.clear()
    cache.codes_by_host[key] = (cache.state_seen, codes)
    return codes


def _deny(codes: Codes, failed: Mask, reason: int) -> None:
    codes[failed & (codes == 0)] = reason


def _members(state: CycleState, hosts: Iterable[str]) -> Mask:
    mask: Mask = np.zeros(len(state.rows), dtype=np.bool_)
    mask[[state.cache.by_name[host].index for host in hosts]] = True
    return mask


def _usable(state: CycleState, need: Need) -> dict[str, int]:
    return state.cluster.conf.groups_of_hosts.preferences(need.queue.hosts, state.cache.by_name)


def _asked(state: CycleState, need: Need) -> dict[str, int]:
    return state.cluster.conf.groups_of_hosts.preferences(need.spec.hosts, state.cache.by_name)


def _reserved(state: CycleState, need: Need) -> list[str]:
    """The hosts of the class's advance reservation (-U)."""
    row = state.cluster.reservations.rows.get(need.spec.reservation)
    return [host for host, _ in row.hosts if host in state.cache.by_name] if row is not None else []


def _selects(need: Need) -> Iterator[tuple[Expr, int]]:
    if need.queue_select is not None:
        yield need.queue_select, PendReason.HOST_QUE_RESREQ
    if need.job_select is not None:
        yield need.job_select, PendReason.HOST_RES_REQ


_NO_THRESHOLDS = Thresholds()


def _host_thresholds(state: CycleState) -> dict[str, Thresholds]:
    return {host.name: host.thresholds for host in state.cluster.conf.hosts if host.thresholds.sched}


def _member_check(hosts: Iterable[str], reason: int) -> Check:
    wanted = frozenset(hosts)
    return lambda row: 0 if row.name in wanted else reason


def local_type(state: CycleState, need: Need) -> str:
    """Type of the submission host; "": it is not of this cluster."""
    host = state.cluster.hosts.rows.get(need.spec.from_host)
    return type_of(state.cluster, host.name) if host is not None else ""


def _select_check(state: CycleState, select: Expr, local: str, reason: int) -> Check:
    test = compile_select(select, local)
    return lambda row: 0 if test(read_values(row, state.cluster, state.soft)) else reason


def _load_at(state: CycleState, at: int, name: str) -> float:
    value = read_load(state.rows[at], state.cluster, state.soft, name)
    return float("nan") if value is None else value


def why_not_load(state: CycleState, row: Row, thresholds: Thresholds) -> int:
    """The pend reason of the first load index beyond its scheduling threshold; 0: none is."""
    for name, most in thresholds.sched:
        value = read_load(row, state.cluster, state.soft, name)
        if value is not None and (value > most if name in state.cache.increasing else value < most):
            return about(LOAD, name, state.ledger.names)
    return 0


_KEPT = 1000


def select_mask(state: CycleState, columns: Columns, expr: Expr, local: str) -> Mask:
    """Which hosts satisfy a select expression. Shape: (hosts,)."""
    kind = expr[0]
    if kind in ("and", "or"):
        masks = [select_mask(state, columns, part, local) for part in expr[1:]]
        return np.asarray(np.all(masks, axis=0) if kind == "and" else np.any(masks, axis=0))
    if kind == "not":
        return ~select_mask(state, columns, expr[1], local)
    if kind in COMPARE and expr[1][0] == "name" and expr[2][0] == "num":
        column = _numbers(state, columns, expr[1][1])
        if column is not None:
            return np.asarray(COMPARE[kind](column, expr[2][1]) & ~np.isnan(column))
    return _by_host(state, expr, local)


def _numbers(state: CycleState, columns: Columns, name: str) -> Floats | None:
    """The values of a resource on all hosts; None: it is a text on some host."""
    if name in state.cache.texts:
        return None

    def read(at: int) -> float:
        value: Value | None = read_values(state.rows[at], state.cluster, state.soft).get(name)
        if isinstance(value, str):
            state.cache.texts.add(name)
            return float("nan")
        return float("nan") if value is None else float(value)

    column = columns.value(name, read)
    return None if name in state.cache.texts else column


def _by_host(state: CycleState, expr: Expr, local: str) -> Mask:
    cache = state.cache
    depends_on_load = not cache.dynamic.isdisjoint(names_in(expr))
    made_from = (cache.state_seen, cache.rows_seen if depends_on_load else -1)
    kept = cache.masks.get((expr, local))
    if kept is not None and kept[0] == made_from:
        return np.asarray(kept[1])
    test = compile_select(expr, local)
    count = len(state.rows)
    found = (test(read_values(row, state.cluster, state.soft)) for row in state.rows)
    mask: Mask = np.fromiter(found, dtype=np.bool_, count=count)
    if len(cache.masks) >= _KEPT:
        cache.masks.clear()
    cache.masks[expr, local] = (made_from, mask)
    return mask
