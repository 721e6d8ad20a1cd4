"""The ranks' network between two hosts of a job, over real TLS: much output, and a first host that does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from agent.starter.mpi import rank_network
from agent.starter.mpi.rank_network import (
    LeafRankNetwork,
    Linked,
    Output,
    OutputRoom,
    PeerOver,
    RankNetworkEvent,
    RootRankNetwork,
)
from agent.starter.protocol.part import LinkSpec
from agent.starter.protocol.reports import HostEnd, Root
from agent.starter.system.watch import Watch
from agent.starter.wire.job_network import LeafNetwork, RootNetwork
from agent.starter.wire.taskwire import ERR, OUT
from lavad.hosts.joblink import credentials

LINE = b"x" * 65535 + b"\n"


class Hosts:
    """The first host of a job and another one, each asked to do what is due only when it is, as their parts do."""

    def __init__(self) -> None:
        key, cert = (one.decode() for one in credentials(b"secret", "uid"))
        self.watches = Watch(), Watch()
        self._networks = (
            RootNetwork(LinkSpec(0, cert, key, nodes=2), self.watches[0]),
            LeafNetwork(LinkSpec(1, cert, key, nodes=2), self.watches[1], "h2"),
        )
        self.events: tuple[list[RankNetworkEvent], list[RankNetworkEvent]] = ([], [])
        self.first = RootRankNetwork(self._networks[0], 2, False, self.events[0].append)
        self.other = LeafRankNetwork(self._networks[1], self.events[1].append)
        address = self._networks[0].address
        root = Root(address.host, address.port)
        self._networks[0].start(None)
        self._networks[1].start(root)
        self.first.start(None)
        self.other.start(root)

    def until(self, so: Callable[[], object], *turning: int) -> None:
        """Let these hosts work (both, where none is named) until that is so."""
        until = time.monotonic() + 30
        while not so():
            assert time.monotonic() < until, self.events
            for place in turning or (0, 1):
                self.watches[place].wait(0.001)
                ranks = (self.first, self.other)[place]
                if (at := ranks.wake_at()) is not None and at <= time.monotonic():
                    ranks.on_time()

    def close(self) -> None:
        for network in self._networks:
            network.close()


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    made = Hosts()
    made.until(lambda: any(isinstance(event, Linked) for event in made.events[1]))
    yield made
    made.close()


def test_output_that_had_no_room_goes_on_when_there_is_some(hosts: Hosts) -> None:
    """The first host reads nothing for a while; nobody asks the other host for anything meanwhile."""
    sent = 0
    while OutputRoom(False) not in hosts.events[1]:
        hosts.other.out(OUT, LINE)
        sent += len(LINE)
    hosts.until(lambda: OutputRoom(True) in hosts.events[1])
    hosts.other.out(ERR, b"the last\n")
    hosts.until(lambda: Output(ERR, b"the last\n") in hosts.events[0])
    assert sum(len(event.lines) for event in hosts.events[0] if isinstance(event, Output) and event.stream == OUT) == sent
    assert hosts.other.wake_at() is None, "nothing is to be looked at any more"


def test_a_first_host_that_does_not_answer_is_given_up_once(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else this host would wait for it for ever, and look without a pause."""
    monkeypatch.setattr(rank_network, "DONE_SECONDS", 0.1)
    hosts.other.done(HostEnd("h2", 0.0, 0.0, 0, 1, None))
    assert not hosts.other.over(None)
    hosts.until(lambda: hosts.other.over(None), 1)
    assert sum(isinstance(event, PeerOver) for event in hosts.events[1]) == 1, "the part looks whether it is over"
    assert hosts.other.wake_at() is None


def test_output_that_the_first_host_has_not_taken_is_waited_for(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the user of an interactive job looks at it page by page."""
    monkeypatch.setattr(rank_network, "DONE_SECONDS", 0.05)
    hosts.first.pause(True)
    sent = 0
    while OutputRoom(False) not in hosts.events[1]:
        hosts.other.out(OUT, LINE)
        sent += len(LINE)
    hosts.other.done(HostEnd("h2", 0.0, 0.0, 0, 1, None))
    enough = time.monotonic() + 0.3
    hosts.until(lambda: time.monotonic() > enough)
    assert not hosts.other.over(None)
    hosts.first.pause(False)
    hosts.until(lambda: hosts.other.over(None) and hosts.first.over(None))
    assert sum(len(event.lines) for event in hosts.events[0] if isinstance(event, Output)) == sent
