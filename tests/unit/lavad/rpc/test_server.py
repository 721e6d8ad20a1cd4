"""Whose agent a peer is: what the key or the certificate says, and nothing that it says itself."""

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


def test_with_the_clusters_key_a_peer_is_the_host_that_it_names() -> None:
    auth = PeerAuth(b"secret")
    assert auth.host_of(Peer(lava_key="secret", lava_host="h1")) == "h1"
    assert auth.host_of(Peer(lava_key=b"secret", lava_host="h1")) == "h1"
    assert auth.why_not_host(Peer(lava_key="secret", lava_host="h1"), "h1") == ""


@pytest.mark.parametrize("key", ["", "Secret", "secret ", "s\u00fc\u00df", b"secre"])
def test_another_key_is_nobodys(key: str | bytes) -> None:
    auth = PeerAuth(b"secret")
    assert auth.host_of(Peer(lava_key=key, lava_host="h1")) is None
    assert auth.why_not_host(Peer(lava_key=key, lava_host="h1"), "h1") == "the cluster key is wrong"


def test_no_key_is_nobodys() -> None:
    assert PeerAuth(b"secret").host_of(Peer()) is None
    assert PeerAuth(b"secret").host_of(Peer((b"agent:h1",), lava_host="h1")) is None


def test_a_certificate_says_which_host_and_no_word_beside_it_does() -> None:
    auth = PeerAuth(None)
    assert auth.host_of(Peer((b"agent:h1",), lava_host="h2", lava_key="secret")) == "h1"
    assert auth.why_not_host(Peer((b"agent:h1",)), "h1") == ""
    assert auth.why_not_host(Peer((b"agent:h1",)), "h2") == "the peer is host h1, and says that it is h2"


@pytest.mark.parametrize("name", [b"master", b"h1", b"xagent:h1", b""])
def test_another_certificate_is_no_agents(name: bytes) -> None:
    assert PeerAuth(None).host_of(Peer((name,), lava_host="h1")) is None
    assert PeerAuth(None).why_not_host(Peer((name,)), "h1") == "no certificate of an agent"
