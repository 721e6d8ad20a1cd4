"""Hosts as records: a page of them, or one with its jobs and GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import show
from lavad.core.site.rights import may_switch_host
from lavad.queries.facts import gpufacts, hostfacts, visibility
from lavad.queries.facts.gpufacts import GpuRow
from lavad.queries.facts.jobfacts import cpus_of, parts_of
from lavad.queries.frame.request import Request
from lavad.queries.frame.view import View
from lavad.queries.records import asked, rows
from proto import site_records


def row(view: View, name: str, now: float) -> site_records.HostRow:
    slots = hostfacts.Slots(view, name)
    host = hostfacts.host_of(view, name)
    load = view.soft.load.get(name, {})
    gpus = [gpu for gpu in host.facts.gpus if not gpu.parent]
    use = view.cluster.use.hosts.get(name)
    taken = use.gpus.jobs if use is not None else {}
    closed = host.closed_devices()
    states = view.soft.gpus.get(name, {})
    power = [states[gpu.uuid].power for gpu in gpus if gpu.uuid in states and states[gpu.uuid].power >= 0]
    return site_records.HostRow(
        name=name,
        status=hostfacts.status(view, name, now, slots),
        comment=host.comment or (host.closed_for if host.closed else ""),
        slots=slots.max,
        used=slots.all,
        reserved=slots.rsv,
        mem=load.get("mem"),
        max_mem=host.facts.max_mem,
        cpu=100 * load["ut"] if "ut" in load else None,
        load=load.get("r1m"),
        gpus=len(gpus),
        gpus_used=sum(1 for gpu in gpus if taken.get(gpu.uuid)),
        gpus_closed=sum(1 for gpu in gpus if gpu.uuid in closed),
        power=float(sum(power)) if power else None,
    )


def read(request: Request) -> site_records.HostPage:
    """Options: search (part of a name, or a status), limit, cursor."""
    options = request.options()
    view, search = request.view, options.text("search").lower()
    names = hostfacts.all_hosts(view)
    start, limit = asked.place(options, "hosts") or 0, asked.limit(options)
    found: list[site_records.HostRow] = []
    for at, name in enumerate(names[start:], start):
        one = row(view, name, request.now)
        if search and search not in name.lower() and not one.status.lower().startswith(search):
            continue
        if len(found) == limit:
            return site_records.HostPage(hosts=found, next=asked.cursor("hosts", at))
        found.append(one)
    return site_records.HostPage(hosts=found, next=None)


def read_one(request: Request) -> site_records.Host:
    view, name = request.view, asked.name(request)
    if name not in hostfacts.all_hosts(view):
        raise Refused(f"{name}: {hostfacts.UNKNOWN}")
    host = hostfacts.host_of(view, name)
    use = view.cluster.use.hosts.get(name)
    sees = visibility.tested(request, False, None)
    jobs: list[Job] = [
        view.cluster.jobs.rows[key] for key in (use.jobs if use is not None else ()) if key in view.cluster.jobs.rows
    ]
    seen = {show(job.key) for job in jobs if sees is None or sees(job.spec)}
    return site_records.Host(
        row=row(view, name, request.now),
        type=hostfacts.type_of(view, name),
        model=hostfacts.model_of(view, name),
        cpus=host.facts.ncpus,
        resources=hostfacts.booleans(view, name),
        since=host.since or None,
        failures=host.failures,
        version=host.facts.version,
        jobs=[rows.row(view, job) for job in jobs[: asked.MOST] if show(job.key) in seen],
        gpus=[_gpu(one, seen) for one in gpufacts.of_host(view, name)],
        bound=[one for job in jobs for one in _bound(job, name) if one.job in seen],
        may_change=may_switch_host(request.cluster.conf, name, request.caller),
    )


def _bound(job: Job, host: str) -> Iterator[site_records.Bound]:
    for part in parts_of(job):
        if part.host == host and part.binds:
            yield site_records.Bound(job=show(job.key), cpus=cpus_of(part))


def _gpu(one: GpuRow, seen: set[str]) -> site_records.GpuRow:
    state = one.state
    return site_records.GpuRow(
        index=one.gpu.index,
        uuid=one.gpu.uuid,
        model=one.gpu.profile or one.gpu.model,
        memory=one.gpu.memory,
        used=state.mem_used if state.mem_used >= 0 else None,
        util=state.util if state.util >= 0 else None,
        temperature=state.temperature if state.temperature >= 0 else None,
        power=state.power if state.power >= 0 else None,
        closed=one.error if one.closed is not None else "",
        jobs=[name for key in (*one.run, *one.suspended, *one.held) if (name := show(key)) in seen],
    )
