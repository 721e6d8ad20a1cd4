"""badmin showstatus: the cluster in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core import events as ev
from lavad.core.states import SUSPENDED, HostState
from lavad.queries import hostfacts, times
from lavad.queries.hostfacts import Slots
from lavad.queries.request import Request, Shown, out


def show(request: Request) -> Iterator[Shown]:
    """The paragraphs, in LSF's order."""
    yield out("LSF runtime mbatchd information\n")
    for title, value in (*_hosts(request), *_jobs(request), *_users(request), *_starts(request)):
        yield out(f"{title + ':':<42}{value}\n" if value != "" else f"{title}:\n")


def _hosts(request: Request) -> Iterator[tuple[str, object]]:
    view = request.view
    names = hostfacts.all_hosts(view)
    rows = [hostfacts.host_of(view, name) for name in names]
    slots = [Slots(view, name) for name in names]
    pairs = zip(names, slots, strict=True)
    status = Counter(hostfacts.status(view, name, request.now, own).partition("_")[0] for name, own in pairs)
    servers = [name for name in names if hostfacts.conf_of(view, name).server]
    cpus = sum(row.facts.ncpus for row in rows if row.state is HostState.OK)
    yield "    Available local hosts (current/peak)", ""
    yield "        Clients", f"{len(names) - len(servers)}/{len(names) - len(servers)}"
    yield "        Servers", f"{sum(row.state is HostState.OK for row in rows)}/{len(servers)}"
    yield "            CPUs", f"{cpus}/{sum(row.facts.ncpus for row in rows)}"
    yield "            Slots", sum(max(own.max, 0) for own in slots)
    yield "    Number of servers", len(servers)
    for title, key in (("Ok", "ok"), ("Closed", "closed"), ("Unreachable", "unreach"), ("Unavailable", "unavail")):
        yield f"        {title}", status[key]


def _jobs(request: Request) -> Iterator[tuple[str, object]]:
    cluster, view = request.cluster, request.view
    started = [cluster.jobs.rows[key] for key in cluster.started]
    suspended = sum(job.state in SUSPENDED for job in started)
    waiting = len(cluster.jobs.rows) - len(started)
    waiting += sum(len(array.pending) + len(array.held) for array in cluster.arrays.rows.values())
    finished = len(view.finished_jobs(since=request.now - view.params.clean_period))
    yield "    Number of jobs", len(started) + waiting + finished
    yield "        Running", len(started) - suspended
    yield "        Suspended", suspended
    yield "        Pending", waiting
    yield "        Finished", finished


def _users(request: Request) -> Iterator[tuple[str, object]]:
    cluster = request.cluster
    active = sum(1 for keys in cluster.by_user.values() if keys)
    yield "    Number of users", max(active, len([user for user in cluster.conf.users if user.name != "default"]))
    yield "        User groups", len(cluster.conf.user_groups)
    yield "        Active users", active


def _starts(request: Request) -> Iterator[tuple[str, object]]:
    events = request.view.reader.site_events(("MasterStarted", "Configured"), 0.0, request.now + 1)
    last = {type(event): event.at for _, event in events}
    for title, kind in (("Latest mbatchd start", ev.MasterStarted), ("Latest mbatchd reconfig", ev.Configured)):
        yield f"    {title}", times.full(last[kind]) if kind in last else "-"
