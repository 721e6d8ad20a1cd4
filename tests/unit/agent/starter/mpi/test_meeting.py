"""Ranks of two hosts meet: what one puts on its host another gets on the other, over the shepherds' own TLS network."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from agent.starter.mpi.meeting import FirstHost, OtherHost
from agent.starter.mpi.rendezvous import Rendezvous
from agent.starter.protocol.part import LinkSpec
from agent.starter.protocol.reports import Root
from agent.starter.system.watch import Watch
from agent.starter.wire.job_network import LeafNetwork, RootNetwork
from lavad.hosts.joblink import credentials

KEY = "k" * 64


class Hosts:
    """Two hosts of a job, each with its network's end and its meeting point."""

    def __init__(self) -> None:
        key, cert = (one.decode() for one in credentials(b"secret", "uid"))
        self._watch = Watch()
        self.first = RootNetwork(LinkSpec(0, cert, key, nodes=2), self._watch)
        self.other = LeafNetwork(LinkSpec(1, cert, key, nodes=2), self._watch, "h2")
        asks = (FirstHost(self.first).ask, OtherHost(self.other).ask)
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in asks]
        self.ports = [sock.getsockname()[1] for sock in sockets]
        self._servers = [Rendezvous(sock, KEY, ask, self._watch) for sock, ask in zip(sockets, asks, strict=True)]
        self._over = threading.Event()
        self.breaks = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def start(self) -> None:
        address = self.first.address
        self.first.start(None)
        self.other.start(Root(address.host, address.port))
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            self._watch.wait(0.01)
            if self.breaks.is_set():
                self.first.close()
                self.breaks.clear()

    def ask(self, host: int, verb: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """As a rank of the host does: (status, body)."""
        port = self.ports[host]
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{KEY}:{port}{path}", body, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        for server in self._servers:
            server.close()
        for one in (self.first, self.other):
            one.close()


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    made = Hosts()
    made.start()
    yield made
    made.end()


def test_ranks_of_two_hosts_meet(hosts: Hosts) -> None:
    """The first request of the other host waits until the network is connected."""
    large = b"\x00a b\r\n\r\n" * 100_000
    assert hosts.ask(1, "GET", "/global/0") == (404, b"")
    assert hosts.ask(0, "PUT", "/global/0", b"here\0") == (200, b"")
    assert hosts.ask(1, "PUT", "/global/1", large) == (200, b"")
    assert hosts.ask(1, "GET", "/global/0") == (200, b"here\0")
    assert hosts.ask(0, "GET", "/global/1") == (200, large)
    for rank in range(2):
        assert hosts.ask(rank, "DELETE", f"/global/{rank}") == (200, b"")
    assert hosts.ask(1, "GET", "/global/1") == (404, b"")


def test_a_broken_network_is_told(hosts: Hosts) -> None:
    assert hosts.ask(1, "PUT", "/global/1", b"x") == (200, b"")
    hosts.breaks.set()
    status = 200
    while status == 200:
        status, _ = hosts.ask(1, "GET", "/global/1")
    assert status == 503
