"""The wiring of a job whose ranks lava starts itself: which ranks are where, and what their PMI service must know."""

from __future__ import annotations

from collections.abc import Sequence

from agent.starter.protocol.part import LinkSpec, PmiSpec
from agent.starter.protocol.reports import Address, Root
from proto import agent_pb2 as pb


def ranks_of(hosts: Sequence[pb.HostSlots], place: int) -> range:
    """The ranks of one host: they are numbered along the list of hosts, a host's slots in a row."""
    first = sum(host.slots for host in hosts[:place])
    return range(first, first + hosts[place].slots)


def process_mapping(slots: Sequence[int]) -> str:
    """PMI_process_mapping: runs of hosts with equal slots, as ``(vector,(first host,hosts,ranks a host),…)``."""
    runs: list[list[int]] = []
    for node, count in enumerate(slots):
        if runs and runs[-1][2] == count:
            runs[-1][1] += 1
        else:
            runs.append([node, 1, count])
    return "(vector," + ",".join(f"({first},{hosts},{count})" for first, hosts, count in runs) + ")"


def kvs_name(cluster: str, job: str, attempt: int, uid: str) -> str:
    """A name that no other attempt ever has: MPICH names its shared memory by it."""
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in f"{cluster}_{job}")
    return f"lava_{safe[:120]}_{attempt}_{uid[:16]}"


def pmi(hosts: Sequence[pb.HostSlots], cluster: str, job: str, attempt: int, uid: str) -> PmiSpec:
    """What the PMI service of a host must know."""
    slots = [host.slots for host in hosts]
    return PmiSpec(kvs_name(cluster, job, attempt, uid), sum(slots), process_mapping(slots))


def link(start: pb.Start, address: str, elastic: bool = False, ranks: bool = True) -> LinkSpec | None:
    """The network to the other hosts; None where there is no other host, or no key.

    ``elastic``: hosts may join and leave. ``ranks``: the tasks start, fail and end together; else blaunch alone uses it.
    """
    if (len(start.hosts) < 2 and not elastic) or not start.cert_pem:
        return None
    place = start.hosts[start.place].node_index if elastic else start.place
    cert, key = start.cert_pem.decode(), start.key_pem.decode()
    return LinkSpec(place, cert, key, nodes=len(start.hosts), bind=address, elastic=elastic, ranks=ranks)


def endpoint(found: Address | None) -> pb.Endpoint:
    """The endpoint of a prepared part for the master; an empty message when it has none."""
    if found is None:
        return pb.Endpoint()
    return pb.Endpoint(host=found.host, port=found.port, ports=found.ports)


def root_of(release: pb.Release) -> Root | None:
    """The first host's endpoint and the ports of each host, for the starter; None when there are none."""
    root, ports = release.root, tuple(tuple(one.ports) for one in release.ports)
    return Root(root.host, root.port, ports) if root.host or ports else None
