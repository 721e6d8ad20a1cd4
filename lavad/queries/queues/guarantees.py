"""Guaranteed resource pools and service classes: bresources -g, bsla. Queues with GUARANTEE are shown as pools of their own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from lavad.core.lang.asks import Refused
from lavad.core.rules.guarantees.pools import PoolUse, members_of, ready_hosts, standing_of, uses_on
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.ownership import SLOTS
from lavad.queries.facts import queuefacts
from lavad.queries.frame.request import Request, Shown, err, leave, out

_RULE = "-" * 78 + "\n"


def pools(request: Request) -> list[PoolUse]:
    """The pools as they are now."""
    cluster, classes = request.cluster, request.view.service_classes
    ledger = Ledger(cluster)
    found = []
    for pool in cluster.conf.pools:
        hosts = ready_hosts(cluster, members_of(cluster, pool), request.now)
        found.append(
            PoolUse(pool, ledger, {host: standing_of(pool, ledger, host, uses_on(cluster, host, classes)) for host in hosts})
        )
    return found


def show_pools(request: Request) -> Iterator[Shown]:
    """bresources -g [-l [-m]] [pool ...]"""
    options = request.options()
    found = pools(request)
    owned = list(_of_queues(request)) if not request.words and "l" not in options else []
    if not (found or owned):
        raise Refused("No guaranteed resource pool is configured")
    unknown = [word for word in request.words if all(one.pool.name != word for one in found)]
    chosen = [one for one in found if not request.words or one.pool.name in request.words]
    if "l" in options:
        for place, one in enumerate(chosen):
            yield out((_RULE if place else "") + "".join(_long(one, "m" in options)))
    elif chosen or owned:
        yield out(
            f"{'POOL_NAME':<20} {'TYPE':<8} {'STATUS':<13} {'TOTAL':>6} {'FREE':>6} {'GUAR CONFIG':>12} {'GUAR USED':>10}\n"
        )
        for name, kind, status, *numbers in chain(map(_row, chosen), owned):
            total, free, guaranteed, used = numbers
            yield out(f"{name:<20} {kind:<8} {status:<13} {total:>6} {free:>6} {guaranteed:>12} {used:>10}\n")
    for word in unknown:
        yield err(f"{word}: No such guaranteed resource pool")
        yield leave(255)


_Row = tuple[str, str, str, int, int, int, int]


def _row(one: PoolUse) -> _Row:
    guaranteed = sum(one.guaranteed.values())
    used = sum(min(one.used[name], most) for name, most in one.guaranteed.items())
    return one.pool.name, one.pool.type, _status(one), one.total, one.idle, guaranteed, used


def _status(one: PoolUse) -> str:
    return "overcommitted" if sum(one.guaranteed.values()) > one.total else "ok"


def _of_queues(request: Request) -> Iterator[_Row]:
    """What GUARANTEE of queues keeps for them, of the slots and GPUs of the whole cluster."""
    for owned in queuefacts.owned(request.view):
        name = "slots" if owned.what is SLOTS else "gpus"
        total = owned.what.total(request.cluster)
        free = max(0, total - sum(has for _, has, _ in owned.queues))
        for queue, has, _ in owned.queues:
            kept = owned.what.terms(queue)[2]
            status = "ok" if min(has, kept) + free >= kept else "overcommitted"
            if kept:
                yield queue.name, name, status, total, free, kept, min(has, kept)


def _long(one: PoolUse, hosts: bool) -> Iterator[str]:
    pool = one.pool
    about = f"{pool.description}\n" if pool.description else ""
    yield f"\nGUARANTEED RESOURCE POOL: {pool.name}\n{about}\n"
    yield f"TYPE: {pool.type_text}\n"
    yield f"DISTRIBUTION: {' '.join(f'[{name}, {amount}]' for name, amount in pool.distribution)}\n"
    if pool.loan is not None:
        yield f"LOAN_POLICIES: {pool.loan}\n"
    yield f"HOSTS: {' '.join(sorted(one.free)) if hosts else ' '.join(pool.hosts)}\n"
    if pool.res_select:
        yield f"RES_SELECT: {pool.res_select}\n"
    if pool.slots_per_host is not None:
        yield f"SLOTS_PER_HOST: {pool.slots_per_host}\n"
    yield f"STATUS: {_status(one)}\n\nRESOURCE SUMMARY:\n"
    _, _, _, total, free, guaranteed, used = _row(one)
    unused = sum(map(one.unused, one.guaranteed))
    for title, number in (
        ("TOTAL", total),
        ("FREE", free),
        ("GUARANTEE CONFIGURED", guaranteed),
        ("GUARANTEE USED", used),
        ("GUARANTEE UNUSED", unused),
    ):
        yield f"{title:<24}{number:>12}\n"
    yield f"\n{'':<24}{'GUARANTEE':>12}{'GUARANTEE':>12}{'TOTAL':>12}\n"
    yield f"{'SERVICE CLASS':<24}{'CONFIGURED':>12}{'USED':>12}{'USED':>12}\n"
    for name, most in one.guaranteed.items():
        yield f"{name:<24}{most:>12}{min(one.used[name], most):>12}{one.used[name]:>12}\n"
