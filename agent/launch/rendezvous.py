"""How the hosts of a job find each other: the starter's lists as messages of the wire, and the master's word as the starter's.

Rule: pure. The starter's list is [host, port, ports, port for tasks]; in the word to go, ``ports`` has a list for each host.
"""

from __future__ import annotations

from typing import Any

from agent.starter.protocol.reports import Address
from proto import agent_pb2 as pb


def endpoint(found: list[Any] | None) -> pb.Endpoint:
    """What the master is told of a prepared part; an empty message where nothing of it can be reached."""
    if not found:
        return pb.Endpoint()
    address = Address.from_json(found)
    return pb.Endpoint(host=address.host, port=address.port, ports=address.ports, tasks_port=address.tasks_port)


def root_of(release: pb.Release) -> list[Any] | None:
    """What the starter is told of the first host, and of the ports that each host keeps; None where there is nothing to say."""
    root, ports = release.root, [list(one.ports) for one in release.ports]
    return [root.host, root.port, ports, root.tasks_port] if root.host or ports else None
