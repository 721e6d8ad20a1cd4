"""Whose agent a peer is: what its socket or certificate proves, and nothing that it says itself."""

from __future__ import annotations

import pytest

from lavad.rpc.server import PeerAuth
from tests.support.worlds.peer import Peer


def test_through_the_socket_of_the_machine_a_peer_is_the_host_that_it_names() -> None:
    auth = PeerAuth(local=True)
    assert auth.identify(Peer(lava_host="h1")) == ("h1", "")
    assert auth.why_not_host(Peer(lava_host="h1"), "h1") == ""
    assert auth.why_not_host(Peer(lava_host="h1"), "h2") == "the peer is host h1, and says that it is h2"
    assert auth.why_not_host(Peer(), "h1") == "the peer names no host"


def test_a_certificate_says_which_host_and_no_word_beside_it_does() -> None:
    auth = PeerAuth(local=False)
    assert auth.identify(Peer("agent:h1", lava_host="h2", lava_key="secret")) == ("h1", "")
    assert auth.why_not_host(Peer("agent:h1"), "h1") == ""
    assert auth.why_not_host(Peer("agent:h1"), "h2") == "the peer is host h1, and says that it is h2"


@pytest.mark.parametrize("name", ["master", "h1", "xagent:h1", "agent:", ""])
def test_another_certificate_is_no_agents(name: str) -> None:
    assert PeerAuth(local=False).identify(Peer(name, lava_host="h1")) == ("", "no certificate of an agent")
    assert PeerAuth(local=False).why_not_host(Peer(name), "h1") == "no certificate of an agent"


def test_a_certificate_that_holds_no_more_is_nobodys() -> None:
    auth = PeerAuth(False, lambda pem: "revoked")
    assert auth.identify(Peer("agent:h1")) == ("", "revoked")
    assert auth.why_not_host(Peer("agent:h1"), "h1") == "revoked"
