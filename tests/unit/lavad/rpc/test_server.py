"""Whose agent a peer is: what its socket or certificate proves, and nothing that it says itself."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lavad.rpc.server import PeerAuth


class Peer:
    """A call, as far as it tells who calls."""

    def __init__(self, names: tuple[bytes, ...] = (), **metadata: str | bytes) -> None:
        self._names = names
        self._metadata = tuple((name.replace("_", "-"), value) for name, value in metadata.items())

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return self._metadata

    def auth_context(self) -> Mapping[str, tuple[bytes, ...]]:
        return {"x509_common_name": self._names} if self._names else {}


def test_through_the_socket_of_the_machine_a_peer_is_the_host_that_it_names() -> None:
    auth = PeerAuth(local=True)
    assert auth.host_of(Peer(lava_host="h1")) == "h1"
    assert auth.why_not_host(Peer(lava_host="h1"), "h1") == ""
    assert auth.why_not_host(Peer(lava_host="h1"), "h2") == "the peer is host h1, and says that it is h2"
    assert auth.why_not_host(Peer(), "h1") == "the peer names no host"


def test_a_certificate_says_which_host_and_no_word_beside_it_does() -> None:
    auth = PeerAuth(local=False)
    assert auth.host_of(Peer((b"agent:h1",), lava_host="h2", lava_key="secret")) == "h1"
    assert auth.why_not_host(Peer((b"agent:h1",)), "h1") == ""
    assert auth.why_not_host(Peer((b"agent:h1",)), "h2") == "the peer is host h1, and says that it is h2"


@pytest.mark.parametrize("name", [b"master", b"h1", b"xagent:h1", b""])
def test_another_certificate_is_no_agents(name: bytes) -> None:
    assert PeerAuth(local=False).host_of(Peer((name,), lava_host="h1")) is None
    assert PeerAuth(local=False).why_not_host(Peer((name,)), "h1") == "no certificate of an agent"
