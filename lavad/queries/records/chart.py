"""Hosts over time: what ran, what runs, and what is promised: reserved starts of waiting jobs and advance reservations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Job
from lavad.core.job.run_time import start_of
from lavad.core.lang.ids import show
from lavad.core.rules.cpu_factors import longest_on
from lavad.core.site.reservation import periods
from lavad.local_time import local_time
from lavad.queries.facts import hostfacts, jobfacts, visibility
from lavad.queries.frame.request import Request
from lavad.queries.records import asked
from lavad.store.asked import Find
from proto.records import OnHost
from proto.site_records import Block, Chart

PAST, AHEAD = 3600.0, 3600.0
MOST = 5000
FINISHED = 2000

Sees = Callable[[int], bool]
"""Whether the caller may see jobs of a spec."""


def read(request: Request) -> Chart:
    """Options: from, to, search (part of a host's name), limit and cursor of hosts."""
    options = request.options()
    begin = asked.seconds(options, "from", request.now - PAST)
    end = max(asked.seconds(options, "to", request.now + AHEAD), begin + 1)
    search = options.text("search").lower()
    names = [name for name in hostfacts.all_hosts(request.view) if search in name.lower()]
    start, limit = asked.place(options, "chart") or 0, asked.limit(options)
    chosen = names[start : start + limit]
    blocks = sorted(_blocks(request, frozenset(chosen), begin, end), key=lambda block: (block.begin, block.host, block.id))
    return Chart(
        now=request.now,
        begin=begin,
        end=end,
        hosts=[OnHost(host=name, slots=request.cluster.slots_of(name)) for name in chosen],
        blocks=blocks[-MOST:],
        more=len(blocks) > MOST,
        next=asked.cursor("chart", start + limit) if len(names) > start + limit else None,
    )


def _blocks(request: Request, hosts: frozenset[str], begin: float, end: float) -> Iterator[Block]:
    sees = visibility.tested(request, False, None)
    yield from _of_jobs(request, sees, hosts, begin, end)
    yield from _of_promises(request, sees, hosts, begin, end)
    yield from _of_reservations(request, hosts, begin, end)


def _of_jobs(request: Request, sees: Sees | None, hosts: frozenset[str], begin: float, end: float) -> Iterator[Block]:
    view, cluster = request.view, request.cluster
    past = view.reader.finished_jobs(Find(since=begin, newest_first=True, limit=FINISHED)) if begin < request.now else []
    past = [job for job in past if not view.is_live(job.key)]
    view.load_specs(past)
    running = [
        cluster.jobs.rows[key]
        for host in hosts
        if (use := cluster.use.hosts.get(host))
        for key in use.jobs
        if key in cluster.jobs.rows
    ]
    live = {job.key: job for job in running}
    for job in (*past, *live.values()):
        if sees is None or sees(job.spec):
            yield from _of_job(request, job, hosts, begin, end)


def _of_promises(request: Request, sees: Sees | None, hosts: frozenset[str], begin: float, end: float) -> Iterator[Block]:
    view, cluster = request.view, request.cluster
    for key, promise in view.soft.promises.items():
        waiting = cluster.jobs.rows.get(key) or cluster.find_array(key)
        if waiting is None or not begin < promise.start < end or (sees is not None and not sees(waiting.spec)):
            continue
        spec = view.spec(waiting)
        hosts_of = (host for host, _ in promise.hosts)
        until = promise.start + longest_on(cluster, spec, spec.expected, hosts_of) if spec.expected else end
        for host, slots in promise.hosts:
            if host in hosts:
                yield _block(host, show(key), "held", spec.user, slots, promise.start, until, spec.expected is None)


def _of_reservations(request: Request, hosts: frozenset[str], begin: float, end: float) -> Iterator[Block]:
    for row in request.cluster.reservations.rows.values():
        for first, last in periods(row, begin, end, local_time(begin)):
            for host, slots in row.hosts:
                if host in hosts:
                    yield _block(host, row.name, "reservation", " ".join(row.users), slots, first, last, False)


def _of_job(request: Request, job: Job, hosts: frozenset[str], begin: float, end: float) -> Iterator[Block]:
    spec = request.view.spec(job)
    first, ended = start_of(job), jobfacts.end_of(job)
    left = None if ended else jobfacts.time_left(job, spec, request.view, request.now)
    last = ended or (request.now + left[0] if left is not None else max(end, request.now))
    if not first or first >= end or last <= begin:
        return
    for part in jobfacts.parts_of(job):
        if part.host in hosts:
            yield _block(
                part.host,
                show(job.key),
                "past" if ended else "run",
                spec.user,
                slots_in(part),
                first,
                last,
                not ended and left is None,
            )


def _block(host: str, ident: str, kind: str, user: str, slots: int, begin: float, end: float, is_open: bool) -> Block:
    return Block(host=host, id=ident, kind=kind, user=user, slots=slots, begin=begin, end=end, open=is_open)
