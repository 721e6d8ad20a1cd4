"""A call of an agent, as far as it tells who calls."""

from __future__ import annotations

from collections.abc import Mapping

HERE, THERE = "ipv4:10.0.0.1:50001", "ipv4:10.0.0.9:50009"


class Peer:
    """With the common names of its certificate, over a connection, with what it says of itself."""

    def __init__(self, *names: str, peer: str = HERE, **metadata: str) -> None:
        self._names = tuple(name.encode() for name in names)
        self._peer = peer
        self._metadata = tuple((name.replace("_", "-"), value) for name, value in metadata.items())

    def peer(self) -> str:
        """The connection, in gRPC's words."""
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """What the peer says."""
        return self._metadata

    def auth_context(self) -> Mapping[str, tuple[bytes, ...]]:
        """What its certificate says."""
        return {"x509_common_name": self._names} if self._names else {}
