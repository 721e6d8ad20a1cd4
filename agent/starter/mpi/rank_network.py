"""Ranks over several hosts: the first host merges barriers, output and ends, and tells the other hosts the result.

Rule: the loss of a host whose ranks have not ended ends the ranks on all hosts, unless the job is elastic.
Messages to the first host: "in" (in the barrier; with "pmi" where that is not PMI-1), "fail", "done" (with what its tasks used),
and frames of output. Messages from it: "barrier" (all are in), "end" (end the ranks), "bye" (the answer to "done").
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from agent.starter.mpi.pmi_job import Barrier
from agent.starter.protocol.codec import Json, ProtocolError, parse, read, text, write
from agent.starter.protocol.reports import FirstFailure, HostEnd, Root
from agent.starter.wire import job_network
from agent.starter.wire import taskwire as wire
from agent.starter.wire.job_network import JOIN_SECONDS, LeafNetwork, RootNetwork
from agent.starter.wire.link import HANDSHAKE_SECONDS

DONE_SECONDS = 10.0
"""Seconds to wait for the other hosts after a failure, or for the answer to "done"."""
MAX_UNSENT = 4 << 20
"""Bytes of output queued for the first host above which this host stops reading its ranks' output."""
LOOK_SECONDS = 0.02
"""Seconds until it looks whether they have gone out."""


class Linked(NamedTuple):
    """The tasks may start."""


class BarrierPassed(NamedTuple):
    """Every host is in the barrier. ``puts``: the keys and values that all of them put since the last one."""

    puts: Mapping[str, str]


class Output(NamedTuple):
    """Whole lines of another host's ranks."""

    stream: int
    lines: bytes


class Failed(NamedTuple):
    """Another host or the connection to it has failed; the ranks of all hosts must end."""

    first: FirstFailure


class EndedByRoot(NamedTuple):
    """The first host ends the ranks on all hosts."""

    first: FirstFailure


class PeerOver(NamedTuple):
    """Another host is done or lost: the part may be over now."""


class OutputRoom(NamedTuple):
    """Whether there is room for more output on the connection to the first host."""

    free: bool


RankNetworkEvent = Linked | BarrierPassed | Output | Failed | EndedByRoot | PeerOver | OutputRoom
OnEvent = Callable[[RankNetworkEvent], None]


class _HostState(Enum):
    """The state of another host, as the first host knows it."""

    JOINED = "joined"
    LEFT = "left"
    """The job continues without it."""
    DONE = "done"
    LOST = "lost"


class RootRankNetwork:
    """The first host's side."""

    def __init__(self, network: RootNetwork, nodes: int, elastic: bool, on_event: OnEvent) -> None:
        self._network = network
        self._others = max(0, nodes - 1)
        self._elastic = elastic
        """Hosts may join late and may be lost without failing the job."""
        self._on_event = on_event
        self._hosts: dict[int, tuple[str, _HostState]] = {}
        """Index of each host that has joined to its name and state."""
        self._done = 0
        self.others: list[HostEnd] = []
        """What the tasks of the other hosts used, as far as they have reported it."""
        self._puts: dict[str, str] = {}
        self._in_barrier = 0
        self._pmi = 0
        """The version of PMI that the ranks speak, 0 before the first barrier."""
        self._join_by: float | None = None
        network.on_ranks(self._on_network_event)

    def start(self, _: Root | None) -> None:
        """The part starts: the tasks here may start at once; the other hosts have JOIN_SECONDS to join."""
        self._join_by = time.monotonic() + JOIN_SECONDS
        self._check_all_joined()
        self._on_event(Linked())

    def barrier(self, reached: Barrier) -> None:
        """All ranks of this host are in the barrier."""
        self._enter_barrier("the first host", reached)

    def _enter_barrier(self, host: str, reached: Barrier) -> None:
        if self._pmi not in (0, reached.version):
            reason = f"the ranks of {host} speak PMI-{reached.version}, those of another host PMI-{self._pmi}"
            self._on_event(Failed(FirstFailure(-1, 1 << 8, reason)))
            return
        self._pmi = reached.version
        self._puts.update(reached.puts)
        self._in_barrier += 1
        if self._in_barrier > self._others:
            merged, self._puts, self._in_barrier = self._puts, {}, 0
            self._network.send_all(wire.RANKS, text({"f": "barrier", "puts": merged}))
            self._on_event(BarrierPassed(merged))

    def fail(self, first: FirstFailure) -> None:
        """The ranks failed: end them on the other hosts too."""
        self._network.send_all(wire.RANKS, text({"f": "end", "first": write(first)}))

    def pause(self, paused: bool) -> None:
        """Stop or resume reading from the other hosts, while their output cannot be passed on."""
        self._network.pause(paused)

    def over(self, failed_at: float | None) -> bool:
        """Whether every other host is done; after a failure (``failed_at``, monotonic) it is waited for DONE_SECONDS at most."""
        if failed_at is not None and (time.monotonic() >= failed_at + DONE_SECONDS or not self._network.has_peers):
            return True
        if self._elastic:
            return all(state is not _HostState.JOINED for _, state in self._hosts.values())
        return self._done >= self._others

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return self._join_by

    def on_time(self) -> None:
        """Fail the job if hosts did not join in time."""
        if self._join_by is None or time.monotonic() < self._join_by:
            return
        self._join_by = None
        missing = self._others - len(self._hosts)
        if missing > 0 and not self._elastic:
            self._on_event(Failed(FirstFailure(-1, 255 << 8, f"{missing} of the job's hosts did not connect")))

    def _on_network_event(self, event: job_network.Event) -> None:
        match event:
            case job_network.Joined(host_index, host):
                self._on_join(host_index, host)
            case job_network.Lost(host_index, why):
                self._on_loss(host_index, why)
            case wire.Frame(kind=wire.RANK_OUTPUT, number=stream, body=lines):
                self._on_event(Output(stream, lines))
            case wire.Frame(origin=host_index, body=body) if host_index in self._hosts:
                self._on_message(host_index, parse(body))
            case _:
                pass  # a frame of a host that has not joined

    def _on_join(self, host_index: int, host: str) -> None:
        if host_index not in self._hosts or self._elastic:
            self._hosts[host_index] = host, _HostState.JOINED
            self._check_all_joined()

    def _check_all_joined(self) -> None:
        if len(self._hosts) >= self._others:
            self._join_by = None

    def _on_message(self, host_index: int, message: Json) -> None:
        name, state = self._hosts[host_index]
        match message.get("f"):
            case "in":
                self._enter_barrier(name, Barrier(_puts(message), 2 if message.get("pmi") == 2 else 1))
            case "fail" if self._elastic and read(FirstFailure, message.get("first")).rank < 0:
                self._hosts[host_index] = name, _HostState.LEFT
                self._on_event(PeerOver())
            case "fail":
                self._on_event(Failed(read(FirstFailure, message.get("first"))))
            case "done" if state in (_HostState.JOINED, _HostState.LEFT):
                self._hosts[host_index] = name, _HostState.DONE
                self._done += 1
                with contextlib.suppress(ProtocolError):
                    self.others.append(read(HostEnd, message.get("of")))
                self._network.send(wire.Frame(wire.RANKS, host_index, 0, 0, text({"f": "bye"})))
                self._on_event(PeerOver())

    def _on_loss(self, host_index: int, why: str) -> None:
        name, state = self._hosts.get(host_index, ("", _HostState.LOST))
        if state is _HostState.JOINED:
            self._hosts[host_index] = name, _HostState.LOST
            if not self._elastic:
                self._on_event(Failed(FirstFailure(-1, 255 << 8, f"link to {name} lost: {why}")))
            self._on_event(PeerOver())


class LeafRankNetwork:
    """Every other host's side."""

    def __init__(self, network: LeafNetwork, on_event: OnEvent) -> None:
        self._network = network
        self._on_event = on_event
        self._first_host = "the first host"
        self._is_joined = False
        self._join_by: float | None = None
        self._done_by: float | None = None
        """When the answer to "done" is due (monotonic); None: it was not sent."""
        self._acknowledged = False
        self._is_late = False
        self._is_lost = False
        self._look_at: float | None = None
        """When to look whether there is room for output again (monotonic); None: there is."""
        network.on_ranks(self._on_network_event)

    def start(self, root: Root | None) -> None:
        """The part starts: its tasks start when the connection to the first host is open."""
        if root is not None:
            self._first_host = root.host
        self._join_by = time.monotonic() + HANDSHAKE_SECONDS

    def barrier(self, reached: Barrier) -> None:
        """All ranks of this host are in the barrier."""
        self._send({"f": "in", "puts": reached.puts, **({"pmi": reached.version} if reached.version > 1 else {})})

    def out(self, stream: int, lines: bytes) -> None:
        """Send lines of this host's ranks to the first host, which writes them."""
        self._network.send(wire.Frame(wire.RANK_OUTPUT, 0, self._network.host_index, stream, lines))
        self._check_unsent()

    def fail(self, first: FirstFailure) -> None:
        """A rank of this host failed: the first host ends all."""
        self._send({"f": "fail", "first": write(first)})

    def done(self, end: HostEnd) -> None:
        """All tasks of this host have ended and all output was sent."""
        if self._done_by is None:
            self._done_by = time.monotonic() + DONE_SECONDS
            self._send({"f": "done", "of": write(end)})

    def over(self, _: float | None) -> bool:
        """Whether the first host has acknowledged that this one is done, or cannot."""
        gone = self._is_lost or (self._join_by is None and not self._network.is_connected)
        return self._acknowledged or gone or self._is_late

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        done_by = None if self._acknowledged or self._is_late else self._done_by
        return min((at for at in (self._look_at, done_by, self._join_by) if at is not None), default=None)

    def on_time(self) -> None:
        """Fail the ranks if the first host cannot be joined in time; be over where it has all and does not answer "done"."""
        now = time.monotonic()
        self._check_unsent()
        if self._join_by is not None and now >= self._join_by:
            self._on_loss("no answer")
        if self._done_by is None or now < self._done_by or self._is_late:
            return
        if self._network.unsent:  # the first host is slow, as its user does not read: what it has not taken would be lost
            self._done_by = now + DONE_SECONDS
            return
        self._is_late = True
        self._on_event(PeerOver())

    def _send(self, message: Json) -> None:
        self._network.send(wire.Frame(wire.RANKS, 0, self._network.host_index, 0, text(message)))

    def _check_unsent(self) -> None:
        full = self._network.is_connected and self._network.unsent > MAX_UNSENT
        was_full = self._look_at is not None
        self._look_at = time.monotonic() + LOOK_SECONDS if full else None
        if full is not was_full:
            self._on_event(OutputRoom(not full))

    def _on_network_event(self, event: job_network.Event) -> None:
        match event:
            case job_network.Joined():
                self._on_join()
            case job_network.Lost(why=why) | job_network.NotConnected(why):
                self._on_loss(why)
            case wire.Frame(body=body):
                self._on_message(parse(body))

    def _on_join(self) -> None:
        if self._join_by is not None:
            self._join_by, self._is_joined = None, True
            self._on_event(Linked())

    def _on_message(self, message: Json) -> None:
        match message.get("f"):
            case "barrier":
                self._on_event(BarrierPassed(_puts(message)))
            case "end":
                self._on_event(EndedByRoot(read(FirstFailure, message.get("first"))))
            case "bye":
                self._acknowledged = True
                self._on_event(PeerOver())

    def _on_loss(self, why: str) -> None:
        if self._is_lost:
            return
        self._join_by = None
        self._is_lost = True
        if not self._acknowledged and self._done_by is None:
            lost = (
                f"link to {self._first_host} lost"
                if self._is_joined
                else f"the job's first host cannot be reached at {self._first_host}"
            )
            self._on_event(Failed(FirstFailure(-1, 255 << 8, f"{lost}: {why}")))
        self._on_event(PeerOver())


def _puts(message: Json) -> dict[str, str]:
    puts = message.get("puts")
    if not isinstance(puts, dict):
        raise ProtocolError("a barrier without puts")
    return puts
