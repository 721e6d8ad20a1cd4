"""Whose agent a peer is: what its socket or certificate proves, and nothing that it says itself."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from cli.local import certs
from lavad.rpc import server
from lavad.rpc.certificates import Certificates
from lavad.rpc.server import PeerAuth
from proto import agent_pb2_grpc
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


def test_a_stranger_who_shows_no_certificate_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the two minutes after which gRPC does so by itself."""
    short = {"grpc.server_handshake_timeout_ms": 500}
    monkeypatch.setattr(server, "OPTIONS", [(name, short.get(name, value)) for name, value in server.OPTIONS])
    certs.make(tmp_path, "c1", ["m"], ["a"])

    async def tried() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as free:
            host, port = free.getsockname()
        secure = Certificates(str(tmp_path), 30).credentials()
        listener = await server.serve(agent_pb2_grpc.AgentsServicer(), f"{host}:{port}", secure)
        reader, writer = await asyncio.open_connection(host, port)
        told = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        await listener.close()
        return told

    assert asyncio.run(tried()) == b""
