"""bslots: slots that are held for a waiting job and could serve a short one meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.states import HostState
from lavad.queries.request import Request, Shown, out


def show(request: Request) -> Iterator[Shown]:
    """How many, and for how long."""
    request.options("l w", "n W")
    cluster = request.cluster
    held = sum(part.slots for key in cluster.promised for part in cluster.jobs.rows[key].promised)
    free = 0
    for name, host in cluster.hosts.rows.items():
        if host.state is HostState.OK and not host.closed:
            free += max(0, cluster.slots_of(name) - cluster.use.hosts[name].slots)
    if not held or not free:
        yield out("No backfill window exists at this time\n")
        return
    yield out("SLOTS          RUNTIME\n")
    yield out(f"{min(free, held):<14} UNLIMITED\n")
