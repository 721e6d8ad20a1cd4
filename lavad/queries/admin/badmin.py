"""badmin: its history of hosts, queues and masters, showstatus, and what it and lsadmin say about daemons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core import events as ev
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import SUSPENDED, HostState, JobState
from lavad.core.site.host import Host
from lavad.core.site.rights import as_administrator, is_admin
from lavad.queries.facts import hostfacts, lsf_log
from lavad.queries.facts.cluster_sentences import cluster_sentence
from lavad.queries.facts.hostfacts import Slots
from lavad.queries.frame import formats
from lavad.queries.frame.formats import wrap
from lavad.queries.frame.request import Request, Shown, err, leave, out, read_period

SITE_KINDS: dict[str, tuple[type[ev.Event], ...]] = {
    "mbdhist": (ev.MasterStarted, ev.StoreRestored, ev.LeasesExtended),
    "hhist": (ev.HostSwitched, ev.HostLeft, ev.HostFenced, ev.GpuSwitched),
    "qhist": (ev.QueueSwitched,),
}
SITE_KINDS["hist"] = tuple(kind for kinds in SITE_KINDS.values() for kind in kinds)


def show(request: Request) -> Iterator[Shown]:
    """A paragraph an event; names choose hosts or queues. showstatus and the daemons' commands have forms of their own."""
    options = request.options()
    request, _ = lsf_log.opened(request, options)
    what, *names = request.words or ["hist"]
    if what in _DAEMON_COMMANDS:
        yield from _show_daemons(request, what, names)
        return
    if what == "showstatus":
        yield from _show_status(request)
        return
    kinds = SITE_KINDS.get(what)
    if kinds is None:
        raise Refused(f"Invalid command <{what[:80]}>")
    begin, end = read_period(request, options.text("t")) if "t" in options else (0.0, request.now + 1)
    found = False
    for _, event in request.view.reader.site_events([ev.kind_of(kind) for kind in kinds], begin, end):
        noted = isinstance(event, ev.LeasesExtended) and not event.by
        if not noted and (not names or _name(event) in names):
            found = True
            yield out(wrap(f"{formats.full_time(event.at)}: {site_sentence(request, event)}"))
    if not found:
        yield err("No matching event found")


def _name(event: ev.Event) -> str:
    if isinstance(event, ev.QueueSwitched):
        return event.queue
    return event.host if isinstance(event, ev.HostSwitched | ev.HostLeft | ev.HostFenced | ev.GpuSwitched) else ""


def site_sentence(request: Request, event: ev.Event) -> str:
    """What happened to a host, a queue, a GPU or the master."""
    if isinstance(event, ev.MasterStarted):
        hosts, queues = len(hostfacts.all_hosts(request.view)), len(request.cluster.conf.queues)
        return (
            f"mbatchd started on host <{event.host}>; cluster name <{request.view.name}>, {hosts} server hosts, {queues} queues."
        )
    return cluster_sentence(event)


_BATCH_DAEMONS = {
    "hrestart": "Restart slave batch daemon on",
    "hshutdown": "Shut down slave batch daemon on",
    "hstartup": "Start up slave batch daemon on",
}
_BASE_DAEMONS = {
    "limstartup": "Start up LIM on",
    "limshutdown": "Shut down LIM on",
    "limrestart": "Restart LIM on",
    "resstartup": "Start up RES on",
    "resshutdown": "Shut down RES on",
    "resrestart": "Restart RES on",
}
_DENIED_BATCH = "Host control failed.: User permission denied"
_DENIED_LOCK = "Operation permission denied by LIM"
_DENIED_BASE = f"ls_limcontrol: {_DENIED_LOCK}"
_LOCKED_BY = "lava does it with badmin hclose and hopen"
_LOCKS = ("limlock", "limunlock")
_DAEMON_COMMANDS = frozenset({*_BATCH_DAEMONS, *_BASE_DAEMONS, *_LOCKS})


def _show_daemons(request: Request, what: str, words: list[str]) -> Iterator[Shown]:
    """A line a host, in LSF's words; an administrator is told what to do instead, anybody else that they may not.

    Never done: lava's daemons are services of the host, which its service manager starts and stops. So administrators hear that
    from every host.
    """
    allowed = is_admin(request.cluster.conf, as_administrator(request.caller))
    if what in _LOCKS:  # of the host that the caller is on, which LSF does not name
        raise Refused(f"failed: {_LOCKED_BY if allowed else _DENIED_LOCK}")
    if what in _BATCH_DAEMONS:
        verb, denied = _BATCH_DAEMONS[what], _DENIED_BATCH
        instead = "Host control failed.: lava leaves it to the service lava-agent of the host"
    else:
        verb, denied = _BASE_DAEMONS[what], _DENIED_BASE
        instead = "ls_limcontrol: lava leaves it to the service lava-agent of the host"
    if not words:
        words = [request.caller.host]
    for name in hostfacts.named(request, words):
        yield err(f"{verb} <{name}> ...... {instead if allowed else denied}")
    yield leave(255)


def _show_status(request: Request) -> Iterator[Shown]:
    """showstatus: the paragraphs in LSF's order. Monitors count the words of the whole output, so every line is there."""
    yield out("LSF runtime mbatchd information\n")
    for part in (_available, _servers, _jobs, _users, _starts):
        for title, value in part(request):
            yield out(f"{'    ' + title + ':':<42}{value}".rstrip() + "\n")
        yield out("\n")
    at, seconds = request.cluster.extended
    if seconds:
        yield out(f"Leases of hosts are extended until {formats.full_time(at + seconds)}\n")
    for notice in request.view.soft.notices:
        yield out(f"    Warning: {notice}\n")


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
    in_chunks = sum(job.state is JobState.WAIT for job in started)
    waiting = len(cluster.jobs.rows) - len(started) + in_chunks
    waiting += sum(len(array.pending) + len(array.held) for array in cluster.arrays.rows.values())
    finished = len(view.finished_keys(request.now - view.params.clean_period))
    yield "Number of jobs", len(started) - in_chunks + waiting + finished
    yield "    Running", len(started) - in_chunks - suspended
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
        yield title, formats.full_time(last[kind]) if kind in last else "-"
