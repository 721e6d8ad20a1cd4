"""badmin showstatus: the cluster in numbers.

Rule: monitors count the words of the whole output, so every line is there, and each number at its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core import events as ev
from lavad.core.lang.states import SUSPENDED, HostState
from lavad.core.site.host import Host
from lavad.queries.facts import hostfacts
from lavad.queries.facts.hostfacts import Slots
from lavad.queries.frame import times
from lavad.queries.frame.request import Request, Shown, out


def show(request: Request) -> Iterator[Shown]:
    """The paragraphs, in LSF's order, a blank line between them."""
    yield out("LSF runtime mbatchd information\n")
    for part in (_available, _servers, _jobs, _users, _starts):
        for title, value in part(request):
            yield out(f"{'    ' + title + ':':<42}{value}".rstrip() + "\n")
        yield out("\n")


def _available(request: Request) -> Iterator[tuple[str, object]]:
    view = request.view
    names = hostfacts.all_hosts(view)
    servers = [name for name in names if hostfacts.conf_of(view, name).server]
    rows = [hostfacts.host_of(view, name) for name in servers]
    up = [row for row in rows if row.state is HostState.OK]
    slots = {row.name: max(Slots(view, row.name).max, 0) for row in rows}
    clients = len(names) - len(servers)
    yield "Available local hosts (current/peak)", ""
    yield "    Clients", f"{clients}/{clients}"
    yield "    Servers", f"{len(up)}/{len(rows)}"
    yield "        CPUs", f"{sum(row.facts.nprocs for row in up)}/{sum(row.facts.nprocs for row in rows)}"
    yield "        Cores", f"{sum(_cores(row) for row in up)}/{sum(_cores(row) for row in rows)}"
    yield "        Slots", f"{sum(slots[row.name] for row in up)}/{sum(slots.values())}"


def _cores(row: Host) -> int:
    return row.facts.nprocs * row.facts.ncores or row.facts.ncpus


def _servers(request: Request) -> Iterator[tuple[str, object]]:
    view = request.view
    names = [name for name in hostfacts.all_hosts(view) if hostfacts.conf_of(view, name).server]
    status = Counter(hostfacts.status(view, name, request.now, Slots(view, name)).partition("_")[0] for name in names)
    yield "Number of servers", len(names)
    for title, key in (("Ok", "ok"), ("Closed", "closed"), ("Unreachable", "unreach"), ("Unavailable", "unavail")):
        yield f"    {title}", status[key]


def _jobs(request: Request) -> Iterator[tuple[str, object]]:
    cluster, view = request.cluster, request.view
    started = [cluster.jobs.rows[key] for key in cluster.started]
    suspended = sum(job.state in SUSPENDED for job in started)
    waiting = len(cluster.jobs.rows) - len(started)
    waiting += sum(len(array.pending) + len(array.held) for array in cluster.arrays.rows.values())
    finished = len(view.finished_keys(request.now - view.params.clean_period))
    yield "Number of jobs", len(started) + waiting + finished
    yield "    Running", len(started) - suspended
    yield "    Suspended", suspended
    yield "    Pending", waiting
    yield "    Finished", finished


def _users(request: Request) -> Iterator[tuple[str, object]]:
    cluster = request.cluster
    active = sum(1 for keys in cluster.by_user.values() if keys)
    yield "Number of users", max(active, len([user for user in cluster.conf.users if user.name != "default"]))
    yield "Number of user groups", len(cluster.conf.user_groups)
    yield "Number of active users", active


def _starts(request: Request) -> Iterator[tuple[str, object]]:
    events = request.view.reader.site_events(("MasterStarted", "Configured"), 0.0, request.now + 1)
    last = {type(event): event.at for _, event in events}
    for title, kind in (("Latest mbatchd start", ev.MasterStarted), ("Latest mbatchd reconfig", ev.Configured)):
        yield title, times.full(last[kind]) if kind in last else "-"
