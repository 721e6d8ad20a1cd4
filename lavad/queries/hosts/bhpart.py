"""bhpart: host partitions, their hosts and shares."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.lang.asks import Refused
from lavad.queries.facts import shares
from lavad.queries.frame.request import Request, Shown, err, leave, out
from lavad.sched.order.fairshare import partition_policies


def show(request: Request) -> Iterator[Shown]:
    """A record for each partition; ``-r`` shows groups within groups as well."""
    options = request.options()
    conf = request.cluster.conf
    if not conf.partitions:
        raise Refused("No host partition is defined in the system")
    hosts = {part.name: part.hosts for part in conf.partitions}
    groups = {name for name, _ in conf.host_groups}
    known = {policy.name: policy for policy in partition_policies(conf)}
    names = list(known) if not request.words or "all" in request.words else request.words
    for at, name in enumerate(names):
        policy = known.get(name)
        if policy is None:
            yield err(f"{name}: No such host partition")
            yield leave(255)
            continue
        listed = " ".join(f"{host}/" if host in groups else host for host in hosts[name])
        yield out("\n" if at else "")
        yield out(f"HOST_PARTITION_NAME: {name}\nHOSTS: {listed}\n")
        for piece in shares.tables(request.view, policy, request.now, name, "r" in options):
            yield out(piece)
