"""Acceptance of a proposed growth: re-checked with the scheduler's ledger; its slots belong to the job at once."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Job, Placed
from lavad.core.job.resize import by_hosts, wants, why_not_grow
from lavad.core.job.spec import Spec
from lavad.core.plan.plan import Growth
from lavad.core.rules.gpus import per_task
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.limits import Limits
from lavad.core.rules.reserved import Reserved


def accept(cluster: Cluster, ledger: Ledger, limits: Limits, growth: Growth, now: float, reserved: Reserved) -> list[ev.Event]:
    """The events, if the growth is still possible; it is then counted in the ledger."""
    job = cluster.jobs.rows.get(growth.key)
    spec = None if job is None else cluster.specs.rows[job.spec]
    if job is None or spec is None or job.run is None or job.run.uid != growth.uid or why_not_grow(job, spec, now):
        return []
    if not _fits(ledger, limits, job, spec, growth.parts):
        return []
    if reserved.rows and any(reserved.why_not_part(spec, part) for part in growth.parts):
        return []
    ledger.grow(spec, growth.parts, (part.host for part in job.run.parts))
    run = job.run
    number = run.resizes + 1
    command = spec.resize_command if run.command is None else run.command
    events: list[ev.Event] = [
        ev.JobGrew(at=now, key=job.key, attempt=run.number, number=number, parts=growth.parts, command=command)
    ]
    own = {part.host for part in run.parts}
    if not command and all(placed.host in own for placed in growth.parts):
        events.append(ev.JobResized(at=now, key=job.key, attempt=run.number, number=number))
    return events


def _fits(ledger: Ledger, limits: Limits, job: Job, spec: Spec, parts: tuple[Placed, ...]) -> bool:
    run = job.run
    assert run is not None
    least, most = wants(run, spec)
    hosts = [placed.host for placed in parts]
    if not least <= sum(placed.slots for placed in parts) <= most or len(set(hosts)) != len(hosts):
        return False
    own = {part.host: part for part in run.parts}
    for placed in parts:
        part = own.get(placed.host)
        if part is not None and (part.leaving or by_hosts(spec)):
            return False
        asked = spec
        if part is not None and spec.gpu is not None and not per_task(spec.gpu):
            asked = replace(spec, gpu=None)
        if ledger.why_not_part(asked, placed):
            return False
    with limits.of_started(own):
        return not limits.why_not(spec, parts)
