"""A gang over several hosts: the root shepherd merges barriers, output and ends; leaves follow it.

Rule: a link that is lost before its host was done ends the whole gang, on both sides.
Frames to the root: hello, in (barrier), out (lines), fail, done (with what its tasks used). To a leaf: barrier, end, bye.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent.starter.protocol.codec import Json, ProtocolError, read, write
from agent.starter.protocol.reports import Address, FirstFailure, HostEnd, Root
from agent.starter.system.watch import Watch
from agent.starter.wire.frames import FrameReader
from agent.starter.wire.link import HANDSHAKE_SECONDS, Identity, Peer, PeerState, connect, listen

JOIN_SECONDS = 60.0
DONE_SECONDS = 10.0
MAX_UNSENT = 4 << 20


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
HostPeer = Peer[Json]


class RootNet:
    """The root's side: a listener, and one peer for each other host."""

    def __init__(self, nodes: int, bind: str, identity: Identity, watch: Watch, say: Say, elastic: bool = False) -> None:
        self._others = max(0, nodes - 1)
        self._elastic = elastic
        """Hosts may join late, and be lost: that is no failure."""
        self._watch = watch
        self._identity = identity
        self._say = say
        self._peers: list[HostPeer] = []
        self._joined: list[HostPeer] = []
        self._done = 0
        self.others: list[HostEnd] = []
        """What the other hosts told of their tasks."""
        self._puts: dict[str, str] = {}
        self._in_barrier = 0
        self._join_by: float | None = None
        self._paused = False
        self._listener = listen(bind)
        self._watch.add(self._listener.fileno(), self._accept)

    def address(self) -> Address:
        """Where the leaves connect to."""
        host, port = self._listener.getsockname()[:2]
        return Address(host, port)

    def go(self, _: Root | None) -> None:
        """The tasks may start at once; the other hosts have a minute to join."""
        self._join_by = time.monotonic() + JOIN_SECONDS
        self._say(Linked())

    def barrier(self, puts: dict[str, str]) -> None:
        """This host is in the barrier."""
        self._one_in(puts)

    def _one_in(self, puts: dict[str, str]) -> None:
        self._puts.update(puts)
        self._in_barrier += 1
        if self._in_barrier > self._others:
            merged, self._puts, self._in_barrier = self._puts, {}, 0
            self._to_all({"f": "barrier", "puts": merged})
            self._say(BarrierPassed(merged))

    def fail(self, first: FirstFailure) -> None:
        """The gang ends: tell the other hosts."""
        self._to_all({"f": "end", "first": write(first)})

    def pause(self, paused: bool) -> None:
        """Read nothing from the other hosts while what they say cannot be passed on."""
        self._paused = paused
        for peer in list(self._joined):
            peer.pause(paused)

    def over(self, failed_at: float | None) -> bool:
        """Every other host is done, or had its time to be after a failure."""
        if failed_at is not None and time.monotonic() >= failed_at + DONE_SECONDS:
            return True
        if failed_at is not None and not any(p.open and not p.closed for p in self._joined):
            return True
        if self._elastic:
            return all(peer.state is not PeerState.JOINED for peer in self._joined)
        return self._done >= self._others

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do."""
        return self._join_by

    def on_time(self) -> None:
        """Hosts that did not join in time fail the gang."""
        if self._join_by is None or time.monotonic() < self._join_by:
            return
        self._join_by = None
        missing = self._others - len(self._joined)
        if missing > 0 and not self._elastic:
            reason = f"{missing} of the job's hosts did not connect"
            self._say(Failed(FirstFailure(-1, 255 << 8, reason)))

    def close(self) -> None:
        """Close everything."""
        if self._listener.fileno() >= 0:
            self._watch.remove(self._listener.fileno())
            self._listener.close()
        for peer in self._peers:
            peer.close()

    def _to_all(self, frame: Json) -> None:
        for peer in list(self._joined):
            peer.send(frame)

    def _accept(self, _: int) -> None:
        try:
            sock, _addr = self._listener.accept()
        except OSError:
            return
        now = time.monotonic()
        for peer in self._peers:
            if not peer.open and now - peer.since > HANDSHAKE_SECONDS:
                peer.close()
        self._peers = [p for p in self._peers if not p.closed]
        if len(self._peers) > 2 * self._others + 8:
            sock.close()
            return
        self._peers.append(Peer(sock, self._identity, True, self._watch, self._took, _ignore, self._lost, FrameReader()))

    def _took(self, peer: HostPeer, frame: Json) -> None:
        what = frame.get("f")
        if what == "hello" and peer not in self._joined:
            peer.name = str(frame.get("host"))
            peer.state = PeerState.JOINED
            self._joined.append(peer)
            peer.pause(self._paused)
            if len(self._joined) >= self._others:
                self._join_by = None
        elif peer not in self._joined:
            peer.close()
        elif what == "in":
            self._one_in(_puts(frame))
        elif what == "out":
            self._say(Output(int(str(frame["s"])), str(frame["d"]).encode("latin-1")))
        elif what == "fail" and self._elastic and read(FirstFailure, frame.get("first")).rank < 0:
            peer.state = PeerState.LEFT
            self._say(PeerOver())
        elif what == "fail":
            self._say(Failed(read(FirstFailure, frame.get("first"))))
        elif what == "done" and peer.state in (PeerState.JOINED, PeerState.LEFT):
            peer.state = PeerState.DONE
            self._done += 1
            with contextlib.suppress(ProtocolError):
                self.others.append(read(HostEnd, frame.get("of")))
            peer.send({"f": "bye"})
            self._say(PeerOver())

    def _lost(self, peer: HostPeer, why: str) -> None:
        if peer.state is PeerState.JOINED:
            peer.state = PeerState.LOST
            if not self._elastic:
                self._say(Failed(FirstFailure(-1, 255 << 8, f"link to {peer.name} lost: {why}")))
            self._say(PeerOver())


class LeafNet:
    """A leaf's side: one peer, the root."""

    def __init__(self, host: str, identity: Identity, watch: Watch, say: Say) -> None:
        self._host = host
        self._identity = identity
        self._watch = watch
        self._say = say
        self._peer: HostPeer | None = None
        self._name = "the first host"
        self._join_by: float | None = None
        self._done_at: float | None = None
        self._bye = False
        self._full = False

    def address(self) -> None:
        """A leaf is not connected to."""
        return

    def go(self, root: Root | None) -> None:
        """Connect; the tasks start when the link is there."""
        if not root:
            self._lost(None, "its address was not given")
            return
        try:
            self._name = root.host
            sock: socket.socket = connect(self._name, root.port)
        except (OSError, ValueError, OverflowError) as e:
            self._lost(None, getattr(e, "strerror", None) or str(e))
            return
        self._join_by = time.monotonic() + HANDSHAKE_SECONDS
        self._peer = Peer(sock, self._identity, False, self._watch, self._took, self._opened, self._lost, FrameReader())

    def barrier(self, puts: dict[str, str]) -> None:
        """This host is in the barrier."""
        self._send({"f": "in", "puts": puts})

    def out(self, stream: int, lines: bytes) -> None:
        """Lines of this host's ranks, for the root to write."""
        self._send({"f": "out", "s": stream, "d": lines.decode("latin-1")})
        self._look_at_room()

    def fail(self, first: FirstFailure) -> None:
        """The gang failed here."""
        self._send({"f": "fail", "first": write(first)})

    def done(self, end: HostEnd) -> None:
        """No task runs here any more, and all output was sent."""
        if self._done_at is None:
            self._done_at = time.monotonic()
            self._send({"f": "done", "of": write(end)})

    def over(self, _: float | None) -> bool:
        """The root knows that this host is done, or cannot be told."""
        gone = self._peer is None or self._peer.closed
        late = self._done_at is not None and time.monotonic() >= self._done_at + DONE_SECONDS
        return self._bye or gone or late

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do."""
        if self._full:
            return time.monotonic() + 0.02
        if self._done_at is not None and not self._bye:
            return self._done_at + DONE_SECONDS
        return self._join_by

    def on_time(self) -> None:
        """A root that does not answer fails the gang."""
        self._look_at_room()
        if self._join_by is not None and time.monotonic() >= self._join_by:
            self._join_by = None
            if self._peer is not None:
                self._peer.close()
            self._lost(None, "no answer")

    def close(self) -> None:
        """Close the link."""
        if self._peer is not None:
            self._peer.close()

    def _send(self, frame: Json) -> None:
        if self._peer is not None:
            self._peer.send(frame)

    def _look_at_room(self) -> None:
        full = self._peer is not None and not self._peer.closed and self._peer.waiting > MAX_UNSENT
        if full is not self._full:
            self._full = full
            self._say(Room(not full))

    def _opened(self, peer: HostPeer, _: str) -> None:
        self._join_by = None
        peer.send({"f": "hello", "host": self._host})
        self._say(Linked())

    def _took(self, _: HostPeer, frame: Json) -> None:
        what = frame.get("f")
        if what == "barrier":
            self._say(BarrierPassed(_puts(frame)))
        elif what == "end":
            self._say(EndedByRoot(read(FirstFailure, frame.get("first"))))
        elif what == "bye":
            self._bye = True
            self._say(PeerOver())

    def _lost(self, _: HostPeer | None, why: str) -> None:
        if not self._bye and self._done_at is None:
            self._say(Failed(FirstFailure(-1, 255 << 8, f"link to {self._name} lost: {why}")))
        self._say(PeerOver())


def _puts(frame: Json) -> dict[str, str]:
    puts = frame.get("puts")
    if not isinstance(puts, dict):
        raise ProtocolError("a barrier without puts")
    return puts


def _ignore(_: HostPeer, __: str) -> None:
    pass
