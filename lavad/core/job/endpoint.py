"""The network endpoint of a prepared part, for the other hosts of its job, and its form in stored events.

The stored form is ``HOST:PORT;tcp=P1,P2``; either piece is left out where it is empty.
"""

from __future__ import annotations

import msgspec

_PORTS = "tcp="


class Endpoint(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """``host`` and ``port`` on which the shepherd listens; "" and 0: it does not listen."""

    host: str = ""
    port: int = 0
    ports: tuple[int, ...] = ()
    """TCP ports that its host keeps free for the job's processes."""


def endpoint_text(endpoint: Endpoint) -> str:
    """The stored form."""
    pieces = [f"{endpoint.host}:{endpoint.port}" if endpoint.host else ""]
    if endpoint.ports:
        pieces.append(_PORTS + ",".join(map(str, endpoint.ports)))
    return ";".join(pieces)


def parse_endpoint(text: str) -> Endpoint:
    """From the stored form; pieces that cannot be read are ignored."""
    link, *more = text.split(";")
    host, _, port = link.rpartition(":")
    ports: tuple[int, ...] = ()
    for piece in more:
        if piece.startswith(_PORTS):
            ports = tuple(int(one) for one in piece.removeprefix(_PORTS).split(",") if one.isdecimal())
    return Endpoint(host, int(port), ports) if host and port.isdecimal() else Endpoint("", 0, ports)
