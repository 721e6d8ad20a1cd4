"""bhosts -s: resources that hosts share, with what of them is reserved."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.site.conf import ResourceConf
from lavad.queries.facts import hostfacts
from lavad.queries.frame.request import Request, Shown, err, out
from lavad.queries.frame.view import View


def shared(view: View) -> list[ResourceConf]:
    """The shared resources of the cluster."""
    return [resource for resource in view.cluster.conf.resources if resource.locations]


def reserved(view: View, resource: str, hosts: tuple[str, ...]) -> float:
    """How much of a resource jobs on these hosts hold."""
    uses = view.cluster.use.hosts
    return sum(uses[host].reserved.get(resource, 0.0) for host in hosts if host in uses)


def places(view: View, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts of an instance, ``all`` taken apart."""
    return tuple(hostfacts.all_hosts(view)) if "all" in hosts else hosts


def show(request: Request, header: bool) -> Iterator[Shown]:
    """One line for each instance."""
    view = request.view
    wanted = [r for r in shared(view) if not request.words or r.name in request.words]
    if not wanted:
        yield err("No shared resources defined")
        return
    if header:
        yield out("RESOURCE                 TOTAL       RESERVED       LOCATION\n")
    for resource in wanted:
        for amount, hosts in resource.locations:
            where = places(view, hosts)
            held = reserved(view, resource.name, where)
            line = f"{resource.name:<20} {amount:>9g} {held:>14.1f}       {' '.join(where)} "
            yield out(line + "\n")
