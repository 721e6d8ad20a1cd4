"""GANG=N: re-checks the slots of jobs that collect them one by one, and reports each deadlock once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event, JobDeadlocked, SlotsReserved
from lavad.core.job.job import Placed
from lavad.core.job.spec import Spec
from lavad.core.plan.plan import Placement
from lavad.core.rules.gpus import per_task
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.limits import Limits


def held(limits: Limits, holds: Iterable[Placement], find_spec: Callable[[Placement], Spec | None], now: float) -> list[Event]:
    """Events for the slots that are still free, and that limits still leave."""
    events: list[Event] = []
    ledger = limits.ledger
    for placement in holds:
        spec = find_spec(placement)
        job = ledger.cluster.jobs.rows.get(placement.key)
        if spec is None:
            continue
        old = job.promised if job is not None else ()
        more = _more(placement.parts, old)
        if more is None or not _fits(ledger, spec, more, {part.host for part in old}):
            continue
        if not old and (ledger.why_not_array(placement.key) or ledger.group_left(spec.group) <= 0):
            continue
        with limits.of_started(part.host for part in old):
            if limits.why_not(spec, tuple(more)):
                continue
            limits.shift(spec, more, 1)
        ledger.shift(more, spec, 1)
        ledger.count_slots(spec, tuple(more))
        if not old:
            ledger.count_job(placement.key, spec)
        events.append(SlotsReserved(at=now, key=placement.key, parts=placement.parts))
    return events


def _fits(ledger: Ledger, spec: Spec, more: list[Placed], own: set[str]) -> bool:
    """Whether hosts have room for more of a job that holds something on ``own``: GPUs that are not for each task it has there."""
    once = spec.gpu is not None and not per_task(spec.gpu)
    asked = [replace(spec, gpu=None) if once and part.host in own else spec for part in more]
    return not any(map(ledger.why_not_part, asked, more))


def _more(parts: tuple[Placed, ...], old: tuple[Placed, ...]) -> list[Placed] | None:
    """The new parts; None where an old one is missing, or nothing is new."""
    known = {part.host: part for part in old}
    found = []
    for part in parts:
        before = known.pop(part.host, None)
        if before is None:
            found.append(part)
        elif part != before:
            binds = part.binds[len(before.binds) :]
            if part.slots < before.slots or not set(before.gpus) <= set(part.gpus) or part.binds != before.binds + binds:
                return None
            amounts = dict(before.reserved)
            reserved = tuple((name, amount - amounts.get(name, 0.0)) for name, amount in part.reserved)
            gpus = tuple(gpu for gpu in part.gpus if gpu not in before.gpus)
            slots = part.slots - before.slots
            found.append(Placed(host=part.host, slots=slots, gpus=gpus, reserved=reserved, binds=binds))
    return None if known or not found else found


def deadlocked(cluster: Cluster, keys: tuple[int, ...], now: float) -> list[Event]:
    """An event for each job of a deadlock that still holds slots and was not reported yet."""
    rows = cluster.jobs.rows
    new = [key for key in keys if key in rows and rows[key].promised and not rows[key].deadlocked]
    return [JobDeadlocked(at=now, key=key, others=tuple(other for other in keys if other != key)) for key in new]
