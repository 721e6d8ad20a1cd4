"""Ranks over several hosts: the first host merges barriers, output and ends; the others follow it.

Rule: a host that is lost before it was done ends the ranks on all hosts, unless the job is elastic.
To the first host: in (barrier), fail, done (with what its tasks used), and frames of output. From it: barrier, end, bye.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from agent.starter.protocol.codec import Json, ProtocolError, parse, read, text, write
from agent.starter.protocol.reports import FirstFailure, HostEnd, Root
from agent.starter.wire import star as network
from agent.starter.wire import taskwire as wire
from agent.starter.wire.link import HANDSHAKE_SECONDS
from agent.starter.wire.star import JOIN_SECONDS, LeafStar, RootStar

DONE_SECONDS = 10.0
"""How long one end waits for the other after a failure, or for its last word."""
MAX_UNSENT = 4 << 20
"""Bytes of output on the way to the first host above which ranks must wait."""


class Linked(NamedTuple):
    """The tasks may start."""


class BarrierPassed(NamedTuple):
    """Every host is in the barrier; what all of them put since the last one."""

    puts: Mapping[str, str]


class Output(NamedTuple):
    """Whole lines of another host's ranks."""

    stream: int
    lines: bytes


class Failed(NamedTuple):
    """Another host or the link to it has failed: the other hosts are to be told."""

    first: FirstFailure


class EndedByRoot(NamedTuple):
    """The first host ends the job on all hosts."""

    first: FirstFailure


class PeerOver(NamedTuple):
    """Another host is done or lost: it may be the end."""


class Room(NamedTuple):
    """Whether there is room for more output on the link."""

    free: bool


NetEvent = Linked | BarrierPassed | Output | Failed | EndedByRoot | PeerOver | Room
Say = Callable[[NetEvent], None]


class _Host(Enum):
    """What the first host knows of another."""

    JOINED = "joined"
    LEFT = "left"
    """The job goes on without it."""
    DONE = "done"
    LOST = "lost"


class RootNet:
    """The first host's side."""

    def __init__(self, star: RootStar, nodes: int, elastic: bool, say: Say) -> None:
        self._star = star
        self._others = max(0, nodes - 1)
        self._elastic = elastic
        """Hosts may join late, and be lost: that is no failure."""
        self._say = say
        self._hosts: dict[int, tuple[str, _Host]] = {}
        """Of each place that has joined: its name and state."""
        self._done = 0
        self.others: list[HostEnd] = []
        """What the other hosts told of their tasks."""
        self._puts: dict[str, str] = {}
        self._in_barrier = 0
        self._join_by: float | None = None
        star.on_ranks(self._took)

    def go(self, _: Root | None) -> None:
        """The tasks may start at once; the other hosts have a minute to join."""
        self._join_by = time.monotonic() + JOIN_SECONDS
        self._look_who_joined()
        self._say(Linked())

    def barrier(self, puts: dict[str, str]) -> None:
        """This host is in the barrier."""
        self._one_in(puts)

    def _one_in(self, puts: dict[str, str]) -> None:
        self._puts.update(puts)
        self._in_barrier += 1
        if self._in_barrier > self._others:
            merged, self._puts, self._in_barrier = self._puts, {}, 0
            self._star.send_all(wire.RANKS, text({"f": "barrier", "puts": merged}))
            self._say(BarrierPassed(merged))

    def fail(self, first: FirstFailure) -> None:
        """The job ends: tell the other hosts."""
        self._star.send_all(wire.RANKS, text({"f": "end", "first": write(first)}))

    def pause(self, paused: bool) -> None:
        """Read nothing from the other hosts while what they say cannot be passed on."""
        self._star.pause(paused)

    def over(self, failed_at: float | None) -> bool:
        """Every other host is done, or had its time to be after a failure."""
        if failed_at is not None and (time.monotonic() >= failed_at + DONE_SECONDS or not self._star.has_peers):
            return True
        if self._elastic:
            return all(state is not _Host.JOINED for _, state in self._hosts.values())
        return self._done >= self._others

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return self._join_by

    def on_time(self) -> None:
        """Hosts that did not join in time fail the job."""
        if self._join_by is None or time.monotonic() < self._join_by:
            return
        self._join_by = None
        missing = self._others - len(self._hosts)
        if missing > 0 and not self._elastic:
            self._say(Failed(FirstFailure(-1, 255 << 8, f"{missing} of the job's hosts did not connect")))

    def _took(self, event: network.Event) -> None:
        match event:
            case network.Joined(place, host):
                self._joined(place, host)
            case network.Lost(place, why):
                self._lost(place, why)
            case wire.Frame(kind=wire.RANK_OUTPUT, number=stream, body=lines):
                self._say(Output(stream, lines))
            case wire.Frame(origin=place, body=body) if place in self._hosts:
                self._told(place, parse(body))
            case _:
                pass  # of a host that never joined

    def _joined(self, place: int, host: str) -> None:
        if place not in self._hosts or self._elastic:
            self._hosts[place] = host, _Host.JOINED
            self._look_who_joined()

    def _look_who_joined(self) -> None:
        if len(self._hosts) >= self._others:
            self._join_by = None

    def _told(self, place: int, message: Json) -> None:
        name, state = self._hosts[place]
        match message.get("f"):
            case "in":
                self._one_in(_puts(message))
            case "fail" if self._elastic and read(FirstFailure, message.get("first")).rank < 0:
                self._hosts[place] = name, _Host.LEFT
                self._say(PeerOver())
            case "fail":
                self._say(Failed(read(FirstFailure, message.get("first"))))
            case "done" if state in (_Host.JOINED, _Host.LEFT):
                self._hosts[place] = name, _Host.DONE
                self._done += 1
                with contextlib.suppress(ProtocolError):
                    self.others.append(read(HostEnd, message.get("of")))
                self._star.send(wire.Frame(wire.RANKS, place, 0, 0, text({"f": "bye"})))
                self._say(PeerOver())

    def _lost(self, place: int, why: str) -> None:
        name, state = self._hosts.get(place, ("", _Host.LOST))
        if state is _Host.JOINED:
            self._hosts[place] = name, _Host.LOST
            if not self._elastic:
                self._say(Failed(FirstFailure(-1, 255 << 8, f"link to {name} lost: {why}")))
            self._say(PeerOver())


class LeafNet:
    """Every other host's side."""

    def __init__(self, star: LeafStar, say: Say) -> None:
        self._star = star
        self._say = say
        self._first_host = "the first host"
        self._join_by: float | None = None
        self._done_at: float | None = None
        self._bye = False
        self._lost_it = False
        self._full = False
        star.on_ranks(self._took)

    def go(self, root: Root | None) -> None:
        """The tasks start when the connection to the first host is there."""
        if root is not None:
            self._first_host = root.host
        self._join_by = time.monotonic() + HANDSHAKE_SECONDS

    def barrier(self, puts: dict[str, str]) -> None:
        """This host is in the barrier."""
        self._send({"f": "in", "puts": puts})

    def out(self, stream: int, lines: bytes) -> None:
        """Lines of this host's ranks, for the first host to write."""
        self._star.send(wire.Frame(wire.RANK_OUTPUT, 0, self._star.place, stream, lines))
        self._look_at_room()

    def fail(self, first: FirstFailure) -> None:
        """The ranks failed here."""
        self._send({"f": "fail", "first": write(first)})

    def done(self, end: HostEnd) -> None:
        """No task runs here any more, and all output was sent."""
        if self._done_at is None:
            self._done_at = time.monotonic()
            self._send({"f": "done", "of": write(end)})

    def over(self, _: float | None) -> bool:
        """The first host knows that this one is done, or cannot be told."""
        late = self._done_at is not None and time.monotonic() >= self._done_at + DONE_SECONDS
        gone = self._lost_it or (self._join_by is None and not self._star.is_connected)
        return self._bye or gone or late

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        if self._full:
            return time.monotonic() + 0.02
        if self._done_at is not None and not self._bye:
            return self._done_at + DONE_SECONDS
        return self._join_by

    def on_time(self) -> None:
        """A first host that does not answer fails the ranks."""
        self._look_at_room()
        if self._join_by is not None and time.monotonic() >= self._join_by:
            self._lost("no answer")

    def _send(self, message: Json) -> None:
        self._star.send(wire.Frame(wire.RANKS, 0, self._star.place, 0, text(message)))

    def _look_at_room(self) -> None:
        full = self._star.is_connected and self._star.unsent > MAX_UNSENT
        if full is not self._full:
            self._full = full
            self._say(Room(not full))

    def _took(self, event: network.Event) -> None:
        match event:
            case network.Joined():
                self._joined()
            case network.Lost(why=why) | network.NotConnected(why):
                self._lost(why)
            case wire.Frame(body=body):
                self._told(parse(body))

    def _joined(self) -> None:
        if self._join_by is not None:
            self._join_by = None
            self._say(Linked())

    def _told(self, message: Json) -> None:
        match message.get("f"):
            case "barrier":
                self._say(BarrierPassed(_puts(message)))
            case "end":
                self._say(EndedByRoot(read(FirstFailure, message.get("first"))))
            case "bye":
                self._bye = True
                self._say(PeerOver())

    def _lost(self, why: str) -> None:
        if self._lost_it:
            return
        self._join_by = None
        self._lost_it = True
        if not self._bye and self._done_at is None:
            self._say(Failed(FirstFailure(-1, 255 << 8, f"link to {self._first_host} lost: {why}")))
        self._say(PeerOver())


def _puts(message: Json) -> dict[str, str]:
    puts = message.get("puts")
    if not isinstance(puts, dict):
        raise ProtocolError("a barrier without puts")
    return puts
