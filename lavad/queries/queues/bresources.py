"""bresources: the limits of lsb.resources as they are in force; with -g the slots that queues are guaranteed."""

from __future__ import annotations

from collections.abc import Iterator

from config.model.cluster import Limit
from lavad.core.lang.asks import Refused
from lavad.core.rules.ownership import total_slots
from lavad.queries.facts import owned
from lavad.queries.frame.request import Request, Shown, err, leave, out

POOLS = f"{'POOL_NAME':<20} {'TYPE':<6} {'STATUS':<11} {'TOTAL':>6} {'FREE':>6} {'GUAR CONFIG':>12} {'GUAR USED':>10}\n"


def show(request: Request) -> Iterator[Shown]:
    """A section for each limit, or a row for each guarantee."""
    options = request.options()
    if options.any("s", "p", "m"):
        raise Refused("bresources: only -g is supported by lava")
    if "g" in options:
        yield from _guarantees(request)
        return
    limits = {limit.name: limit for limit in request.cluster.conf.limits}
    for word in request.words or limits:
        if word in limits:
            yield out(_section(limits[word]))
        else:
            yield err(f"{word}: No such limit")
            yield leave(255)


def _guarantees(request: Request) -> Iterator[Shown]:
    rows = [row for row in owned.table(request.view) if row[0].guarantee]
    if not rows:
        raise Refused("No guaranteed resource pool is configured")
    total = total_slots(request.cluster)
    free = max(0, total - sum(has for _, has, _ in owned.table(request.view)))
    yield out(POOLS)
    for queue, has, _ in rows:
        kept = queue.guarantee
        status = "ok" if min(has, kept) + free >= kept else "overcommit"
        yield out(f"{queue.name:<20} {'slots':<6} {status:<11} {total:>6} {free:>6} {kept:>12} {min(has, kept):>10}\n")


def _section(limit: Limit) -> str:
    lines = [f"NAME = {limit.name}"]
    per = {
        "USERS": limit.per_user,
        "HOSTS": limit.per_host,
        "QUEUES": limit.per_queue,
        "PROJECTS": limit.per_project,
        "APPS": limit.per_app,
    }
    for title, names in (
        ("USERS", limit.users),
        ("QUEUES", limit.queues),
        ("HOSTS", limit.hosts),
        ("PROJECTS", limit.projects),
        ("APPS", limit.apps),
    ):
        if names or per.get(title):
            lines.append(f"{'PER_' + title[:-1] if per.get(title) else title} = {' '.join(names) or 'all'}")
    for title, amount in (
        ("SLOTS", limit.slots),
        ("SLOTS_PER_PROCESSOR", limit.slots_per_processor),
        ("JOBS", limit.jobs),
        ("MEM", limit.mem),
    ):
        if amount is not None:
            lines.append(f"{title} = {amount:g}{'%' if title.lower() in limit.percent else ''}")
    if limit.resources:
        lines.append("RESOURCE = " + " ".join(f"[{name}, {amount:g}]" for name, amount in limit.resources))
    return "\nBegin Limit\n" + "\n".join(lines) + "\nEnd Limit\n"
