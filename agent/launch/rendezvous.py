"""How the hosts of a job find each other: the starter's records as messages of the wire, and the master's word as the starter's.

Rule: pure.
"""

from __future__ import annotations

from agent.starter.protocol.reports import Address, Root
from proto import agent_pb2 as pb


def endpoint(found: Address | None) -> pb.Endpoint:
    """What the master is told of a prepared part; an empty message where nothing of it can be reached."""
    if found is None:
        return pb.Endpoint()
    return pb.Endpoint(host=found.host, port=found.port, ports=found.ports)


def root_of(release: pb.Release) -> Root | None:
    """What the starter is told of the first host, and of the ports that each host keeps; None where there is nothing to say."""
    root, ports = release.root, tuple(tuple(one.ports) for one in release.ports)
    return Root(root.host, root.port, ports) if root.host or ports else None
