"""Guaranteed resource pools and service classes: bresources -g, bsla. Queues with GUARANTEE are shown as pools of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from config.model.guarantees import ServiceClass
from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import JobState
from lavad.core.rules.guarantees.pools import PoolUse, members_of, ready_hosts, standing_of, uses_on
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.ownership import SLOTS
from lavad.queries.facts import queuefacts
from lavad.queries.frame.request import Request, Shown, err, leave, out

_RULE = "-" * 78 + "\n"
_COUNTED = ("PEND", "RUN", "SSUSP", "USUSP")


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


def show_bsla(request: Request) -> Iterator[Shown]:
    """bsla [-N] [class]: each service class, what is guaranteed to it in which pool, and its jobs (-N: their slots)."""
    options = request.options()
    classes = request.cluster.conf.service_classes
    if not classes and not request.words:
        raise Refused("No service class is configured")
    unknown = next((word for word in request.words if all(one.name != word for one in classes)), "")
    if unknown:
        raise Refused(f"{unknown[:80]}: No such service class")
    found, counts = pools(request), _counts(request, slots="N" in options)
    for one in classes:
        if not request.words or one.name in request.words:
            yield out("".join(_class(one, found, counts.get(one.name, Counter()), "NSLOTS" if "N" in options else "NJOBS")))


def _class(one: ServiceClass, found: list[PoolUse], counts: Counter[str], title: str) -> Iterator[str]:
    yield f"SERVICE CLASS NAME:  {one.name}\n -- {one.description}\n"
    lists = (
        ("QUEUES", one.queues),
        ("USERS", one.users),
        ("FAIRSHARE_GROUPS", one.fairshare_groups),
        ("APPS", one.apps),
        ("PROJECTS", one.projects),
    )
    access = " ".join(f"{name}[{' '.join(names)}]" for name, names in lists if names)
    if access:
        yield f"ACCESS CONTROL:  {access}\n"
    yield f"AUTO ATTACH:  {'Y' if one.auto_attach else 'N'}\n\nGOAL:  GUARANTEE\n\n"
    yield f"{'':<32}{'GUARANTEE':>10}{'GUARANTEE':>11}{'TOTAL':>8}\n"
    yield f"{'POOL NAME':<24}{'TYPE':<8}{'CONFIG':>10}{'USED':>11}{'USED':>8}\n"
    for pool in found:
        most = pool.guaranteed.get(one.name)
        if most is not None:
            used = pool.used[one.name]
            yield f"{pool.pool.name:<24}{pool.pool.type:<8}{most:>10}{min(used, most):>11}{used:>8}\n"
    yield f"\n{title:>6} {'PEND':>6} {'RUN':>6} {'SSUSP':>6} {'USUSP':>6}\n"
    yield f"{sum(counts.values()):>6} " + " ".join(f"{counts[state]:>6}" for state in _COUNTED) + "\n\n"


def _counts(request: Request, slots: bool) -> dict[str, Counter[str]]:
    """Service class to its jobs, or their slots, by state. Those that wait are counted by kinds of jobs, not one by one."""
    cluster, of_spec = request.cluster, request.view.service_classes.of
    specs, waiting = cluster.specs.rows, Counter(cluster.spec_jobs)
    found: dict[str, Counter[str]] = {}
    for key in cluster.started:
        job = cluster.jobs.rows[key]
        waiting[job.spec] -= 1
        if name := of_spec(specs[job.spec]):
            many = sum(part.slots for part in job.run.parts) if job.run is not None else 0
            found.setdefault(name, Counter())[_state(job)] += many if slots else 1
    for array in cluster.arrays.rows.values():
        waiting[array.spec] += len(array.pending) + len(array.held) - 1
    for number, count in waiting.items():
        if name := of_spec(specs[number]):
            found.setdefault(name, Counter())["PEND"] += count * (specs[number].slots if slots else 1)
    return found


def _state(job: Job) -> str:
    return job.state.name if job.state in (JobState.SSUSP, JobState.USUSP) else "RUN"
