"""May a class of jobs use a host at all? Queue, -m, the host's state and windows, type, select and load thresholds.

Rule: what is decided here does not change while a cycle places jobs; the answer for all hosts is a list of reasons, 0
for yes, kept between cycles as long as nothing that it was made from has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from lavad.core.lang.resreq.eval import compile_select
from lavad.core.lang.resreq.text import Expr
from lavad.core.site.conf import Thresholds
from lavad.core.site.host_names import preferences
from lavad.core.site.pend_reason import LOAD, PendReason, about
from lavad.sched.needs.bases import Base, Codes
from lavad.sched.needs.columns import Columns, Mask
from lavad.sched.needs.needs import Need
from lavad.sched.needs.rows import Row, host_type, read_load, read_values
from lavad.sched.state.cycle_state import View
from lavad.sched.state.select_mask import select_mask

Check = Callable[[Row], int]


def find_base(view: View, need: Need) -> Base:
    """The reasons for a class, made anew only where they may be different by now."""
    memory = view.memory
    base = memory.bases.get(need.base_key)
    if base is not None and base.made[0] == memory.state_seen and (not base.moving or base.made[1] == memory.rows_seen):
        return base
    made = (memory.state_seen, memory.rows_seen)
    if view.columns is None:
        checks = list(_checks(view, need))
        codes: list[int] | Codes = [next((code for check in checks if (code := check(row))), 0) for row in view.rows]
    else:
        codes = _make_codes(view, view.columns, need)
    base = memory.bases[need.base_key] = Base(codes, need.moving, made)
    return base


def _checks(view: View, need: Need) -> Iterator[Check]:
    """One host after the other: each check gives a reason, 0 for none."""
    yield _member_check(_usable(view, need), PendReason.HOST_QUE_MEMB)
    if need.spec.hosts:
        yield _member_check(_asked(view, need), PendReason.HOST_USR_SPEC)
    if need.spec.reservation:
        yield _member_check(_reserved(view, need), PendReason.HOST_RSV)
    codes = view.memory.codes
    yield lambda row: codes[row.at]
    local = local_type(view, need)
    if not need.type_free and local:
        yield lambda row: 0 if host_type(view.cluster, row.host) == local else PendReason.HOST_SCHED_TYPE
    for select, reason in _selects(need):
        yield _select_check(view, select, local, reason)
    if need.queue.thresholds.sched:
        yield lambda row: why_not_load(view, row, need.queue.thresholds)
    levels = _host_thresholds(view)
    if levels:
        yield lambda row: why_not_load(view, row, levels.get(row.name, _NO_THRESHOLDS))


def _make_codes(view: View, columns: Columns, need: Need) -> Codes:
    """The same checks in the same order over all hosts at once."""
    codes = np.zeros(columns.count, dtype=np.int32)
    _deny(codes, ~_members(view, _usable(view, need)), PendReason.HOST_QUE_MEMB)
    if need.spec.hosts:
        _deny(codes, ~_members(view, _asked(view, need)), PendReason.HOST_USR_SPEC)
    if need.spec.reservation:
        _deny(codes, ~_members(view, _reserved(view, need)), PendReason.HOST_RSV)
    codes = np.where(codes == 0, np.asarray(view.memory.codes, dtype=np.int32), codes)
    local = local_type(view, need)
    if not need.type_free and local:
        same: Expr = ("==", ("name", "type"), ("str", local))
        _deny(codes, ~select_mask(view, columns, same, local), PendReason.HOST_SCHED_TYPE)
    for select, reason in _selects(need):
        _deny(codes, ~select_mask(view, columns, select, local), reason)
    for name, most in need.queue.thresholds.sched:
        column = columns.value(f"load {name}", lambda at, name=name: _load_at(view, at, name))  # type: ignore[misc]
        beyond = column > most if name in view.memory.increasing else column < most
        _deny(codes, beyond, about(LOAD, name, view.ledger.names))
    for host, levels in _host_thresholds(view).items():
        row = view.memory.by_name.get(host)
        if row is not None and not codes[row.at]:
            codes[row.at] = why_not_load(view, row, levels)
    return codes


def _deny(codes: Codes, failed: Mask, reason: int) -> None:
    codes[failed & (codes == 0)] = reason


def _members(view: View, hosts: Iterable[str]) -> Mask:
    mask: Mask = np.zeros(len(view.rows), dtype=np.bool_)
    mask[[view.memory.by_name[host].at for host in hosts]] = True
    return mask


def _usable(view: View, need: Need) -> dict[str, int]:
    return preferences(view.cluster.conf, need.queue.hosts, view.memory.by_name)


def _asked(view: View, need: Need) -> dict[str, int]:
    return preferences(view.cluster.conf, need.spec.hosts, view.memory.by_name)


def _reserved(view: View, need: Need) -> list[str]:
    """The hosts of the advance reservation that a class is to run in."""
    row = view.cluster.reservations.rows.get(need.spec.reservation)
    return [host for host, _ in row.hosts if host in view.memory.by_name] if row is not None else []


def _selects(need: Need) -> Iterator[tuple[Expr, int]]:
    if need.queue_select is not None:
        yield need.queue_select, PendReason.HOST_QUE_RESREQ
    if need.job_select is not None:
        yield need.job_select, PendReason.HOST_RES_REQ


_NO_THRESHOLDS = Thresholds()


def _host_thresholds(view: View) -> dict[str, Thresholds]:
    return {host.name: host.thresholds for host in view.cluster.conf.hosts if host.thresholds.sched}


def _member_check(hosts: Iterable[str], reason: int) -> Check:
    wanted = frozenset(hosts)
    return lambda row: 0 if row.name in wanted else reason


def local_type(view: View, need: Need) -> str:
    """Type of the submission host; "" when it is not of this cluster."""
    host = view.cluster.hosts.rows.get(need.spec.from_host)
    return host_type(view.cluster, host) if host is not None else ""


def _select_check(view: View, select: Expr, local: str, reason: int) -> Check:
    test = compile_select(select, local)
    return lambda row: 0 if test(read_values(row, view.cluster, view.soft)) else reason


def _load_at(view: View, at: int, name: str) -> float:
    value = read_load(view.rows[at], view.cluster, view.soft, name)
    return float("nan") if value is None else value


def why_not_load(view: View, row: Row, thresholds: Thresholds) -> int:
    """The reason of the first load index beyond its threshold for dispatch, 0: none is."""
    for name, most in thresholds.sched:
        value = read_load(row, view.cluster, view.soft, name)
        if value is not None and (value > most if name in view.memory.increasing else value < most):
            return about(LOAD, name, view.ledger.names)
    return 0
