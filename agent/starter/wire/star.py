"""The network between the shepherds of one attempt on several hosts: each connects to the first host's, which relays.

Rule: a connection that breaks is made again; what the loss means is decided by those who are told of it. A host has
one connection for both of its users: the ranks, which start, fail and end together (mpi/rank_network.py), and the tasks
of blaunch (blaunch/taskhub.py). What is for a host that has not joined yet waits at the first host, as long as it may join.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from agent.starter.protocol.part import StarLink
from agent.starter.protocol.reports import Address, Root
from agent.starter.system.watch import Watch
from agent.starter.wire import taskwire as wire
from agent.starter.wire.link import HANDSHAKE_SECONDS, Identity, Peer, connect, listen

JOIN_SECONDS = 60.0
"""How long a host may take to join before what waits for it is given up."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two attempts to connect: doubled from the first to the longest."""
MAX_UNSENT = 256 << 20
"""Bytes that a peer may leave unread before it is given up."""
EVERY = -1
"""All other hosts: the connection to the first one is lost, and with it the way to all."""


class Joined(NamedTuple):
    """A connection is there: on the first host to ``place``, elsewhere to the first host."""

    place: int
    host: str


class Lost(NamedTuple):
    """A host (or EVERY other one) is not reached."""

    place: int
    why: str


class NotConnected(NamedTuple):
    """An attempt to connect to the first host has failed; there will be others."""

    why: str


Event = Joined | wire.Frame | Lost | NotConnected
Sink = Callable[[Event], None]
StarPeer = Peer[wire.Frame]


def _nobody(_: Event) -> None:
    """Neither ranks nor tasks of this part use the network."""


class _Waiting:
    """Frames for a place that has not joined yet."""

    __slots__ = ("frames", "until")

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.until = time.monotonic() + JOIN_SECONDS


class _Star:
    """What both ends have: who is told of frames, connections and losses."""

    def __init__(self, link: StarLink, watch: Watch) -> None:
        self.place = link.place
        self._identity = Identity(link.cert, link.key)
        self._watch = watch
        self._ranks: Sink = _nobody
        self._tasks: Sink = _nobody

    def on_ranks(self, sink: Sink) -> None:
        """Tell ``sink`` of the ranks' frames and of every connection."""
        self._ranks = sink

    def on_tasks(self, sink: Sink) -> None:
        """Tell ``sink`` of the tasks' frames and of every connection."""
        self._tasks = sink

    def _tell(self, event: Event) -> None:
        self._ranks(event)
        self._tasks(event)

    def _deliver(self, frame: wire.Frame) -> None:
        (self._ranks if frame.kind in wire.OF_RANKS else self._tasks)(frame)


class RootStar(_Star):
    """The first host's end: a listener, and one peer for each other place."""

    def __init__(self, link: StarLink, watch: Watch) -> None:
        super().__init__(link, watch)
        self._nodes, self._elastic = link.nodes, link.elastic
        self._paused = False
        self._unknown: list[StarPeer] = []
        """Connections that have not said which host they are."""
        self._peers: dict[int, StarPeer] = {}
        self._waiting: dict[int, _Waiting] = {place: _Waiting() for place in range(1, link.nodes)}
        self._listener = listen(link.bind or "127.0.0.1")
        watch.add(self._listener.fileno(), self._accept)

    @property
    def address(self) -> Address:
        """Where the other hosts connect to."""
        host, port = self._listener.getsockname()[:2]
        return Address(host, port)

    @property
    def has_peers(self) -> bool:
        """Whether any other host is connected."""
        return bool(self._peers)

    def go(self, _: Root | None) -> None:
        """The other hosts have a minute to join from now."""
        for waiting in self._waiting.values():
            waiting.until = time.monotonic() + JOIN_SECONDS

    def expect(self, places: Iterable[int]) -> None:
        """These are to be reached: one that has not joined yet has its time to."""
        for place in places:
            if place and place not in self._peers and place not in self._waiting:
                self._waiting[place] = _Waiting()

    def send(self, frame: wire.Frame) -> bool:
        """Send towards the frame's place; False when there is no way."""
        peer = self._peers.get(frame.to)
        if peer is not None:
            return _send(peer, frame)
        waiting = self._waiting.get(frame.to)
        if waiting is None:
            return False
        waiting.frames.append(wire.pack(frame))
        return True

    def send_all(self, kind: int, body: bytes) -> None:
        """Send to every host that is connected."""
        for place, peer in list(self._peers.items()):
            _send(peer, wire.Frame(kind, place, 0, 0, body))

    def pause(self, paused: bool) -> None:
        """Read nothing from the other hosts while what they say cannot be passed on."""
        self._paused = paused
        for peer in list(self._peers.values()):
            peer.pause(paused)

    def _accept(self, _: int) -> None:
        try:
            sock, _addr = self._listener.accept()
        except OSError:
            return
        now = time.monotonic()
        for peer in self._unknown:
            if now - peer.since > HANDSHAKE_SECONDS:
                peer.close()
        self._unknown = [peer for peer in self._unknown if not peer.closed]
        if len(self._unknown) > 2 * self._nodes + 8:
            sock.close()
            return
        peer = Peer(sock, self._identity, True, self._watch, self._took, _ignore, self._ended, wire.FrameReader())
        self._unknown.append(peer)

    def _took(self, peer: StarPeer, frame: wire.Frame) -> None:
        if peer.place is None:
            self._greeted(peer, frame)
        elif frame.to == 0:
            self._deliver(frame)
        elif not self.send(frame) and wire.is_for_task(frame) and frame.kind != wire.ABANDON:
            self.send(wire.Frame(wire.FAIL, frame.origin, frame.origin, frame.number, b"its host is not reached"))

    def _greeted(self, peer: StarPeer, frame: wire.Frame) -> None:
        place = frame.origin
        if frame.kind != wire.HELLO or place < 1 or (place >= self._nodes and not self._elastic):
            peer.close()
            return
        self._unknown = [one for one in self._unknown if one is not peer]
        former = self._peers.get(place)
        if former is not None and not former.closed:
            former.end("it came again")
        peer.place, peer.name = place, str(place)
        self._peers[place] = peer
        peer.pause(self._paused)
        waiting = self._waiting.pop(place, None)
        for ready in waiting.frames if waiting else ():
            peer.send_bytes(ready)
        self._tell(Joined(place, _host_in(frame)))

    def _ended(self, peer: StarPeer, why: str) -> None:
        if peer.place is not None and self._peers.get(peer.place) is peer:
            del self._peers[peer.place]
            self._gone(Lost(peer.place, why))

    def _gone(self, lost: Lost) -> None:
        self._tell(lost)
        for other, peer in list(self._peers.items()):
            peer.send_bytes(wire.pack(wire.Frame(wire.LOST, other, lost.place, 0)))

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic): only for frames that wait."""
        return min((waiting.until for waiting in self._waiting.values() if waiting.frames), default=None)

    def on_time(self) -> None:
        """Places that did not join in time are not there for those who wait for them."""
        now = time.monotonic()
        for place, waiting in list(self._waiting.items()):
            if waiting.frames and now >= waiting.until:
                del self._waiting[place]
                self._gone(Lost(place, "it did not connect"))

    def close(self) -> None:
        """Close everything; nobody is told."""
        if self._listener.fileno() >= 0:
            self._watch.remove(self._listener.fileno())
            self._listener.close()
        for peer in (*self._unknown, *self._peers.values()):
            peer.close()
        self._peers.clear()
        self._waiting.clear()


class LeafStar(_Star):
    """Every other host's end: one peer, the first host; connected again when it breaks."""

    def __init__(self, link: StarLink, watch: Watch, host: str) -> None:
        super().__init__(link, watch)
        self._host = host
        self._root: Root | None = None
        self._peer: StarPeer | None = None
        self._waiting: _Waiting | None = _Waiting()
        """What is sent before the first connection; None once there was one."""
        self._again: float | None = None
        self._pause = FIRST_PAUSE
        self._since = 0.0

    @property
    def address(self) -> None:
        """Nobody connects to it."""
        return

    @property
    def is_connected(self) -> bool:
        """Whether frames go out now."""
        return self._peer is not None and self._peer.open and not self._peer.closed

    @property
    def unsent(self) -> int:
        """Bytes that the first host has not taken yet."""
        return self._peer.waiting if self._peer is not None else 0

    def go(self, root: Root | None) -> None:
        """Connect to the first host."""
        if root is None:
            self._tell(NotConnected("its address was not given"))
            return
        self._root = root
        self._connect()

    def _connect(self) -> None:
        assert self._root is not None
        self._again = None
        self._since = time.monotonic()
        try:
            sock = connect(self._root.host, self._root.port)
        except (OSError, ValueError, OverflowError) as e:
            self._later()
            self._tell(NotConnected(getattr(e, "strerror", None) or str(e)))
            return
        self._peer = Peer(sock, self._identity, False, self._watch, self._took, self._opened, self._ended, wire.FrameReader())

    def _later(self) -> None:
        self._peer = None
        self._again = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def expect(self, places: Iterable[int]) -> None:
        """The first host knows who is there."""

    def send(self, frame: wire.Frame) -> bool:
        """Send to the first host; False when it is not there."""
        if self._peer is not None and self.is_connected:
            return _send(self._peer, frame)
        if self._waiting is None:
            return False
        self._waiting.frames.append(wire.pack(frame))
        return True

    def _opened(self, peer: StarPeer, _: str) -> None:
        self._pause = FIRST_PAUSE
        hello = json.dumps({"host": self._host}).encode()
        peer.send_bytes(wire.pack(wire.Frame(wire.HELLO, 0, self.place, 0, hello)))
        waiting, self._waiting = self._waiting, None
        for ready in waiting.frames if waiting else ():
            peer.send_bytes(ready)
        assert self._root is not None
        self._tell(Joined(0, self._root.host))

    def _took(self, _: StarPeer, frame: wire.Frame) -> None:
        if frame.to == self.place:
            self._deliver(frame)

    def _ended(self, peer: StarPeer, why: str) -> None:
        if peer is self._peer:
            self._later()
            self._tell(Lost(EVERY, why) if peer.open else NotConnected(why))

    def _times(self) -> Iterator[float]:
        if self._again is not None:
            yield self._again
        if self._waiting is not None and self._waiting.frames:
            yield self._waiting.until
        if self._peer is not None and not self._peer.open:
            yield self._since + HANDSHAKE_SECONDS

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return min(self._times(), default=None)

    def on_time(self) -> None:
        """Connect again; give up waiting."""
        now = time.monotonic()
        if self._peer is not None and not self._peer.open and now >= self._since + HANDSHAKE_SECONDS:
            self._peer.close()
            self._later()
            self._tell(NotConnected("no answer"))
        if self._again is not None and now >= self._again:
            self._connect()
        if self._waiting is not None and self._waiting.frames and now >= self._waiting.until:
            self._waiting = None
            self._tell(Lost(EVERY, "no answer"))

    def close(self) -> None:
        """Close the connection for good; nobody is told."""
        self._again = None
        if self._peer is not None:
            self._peer.close()
            self._peer = None


Star = RootStar | LeafStar


def open_star(link: StarLink, watch: Watch, host: str) -> Star:
    """This host's end of the network; OSError when the first host cannot listen."""
    return RootStar(link, watch) if link.place == 0 else LeafStar(link, watch, host)


def _send(peer: StarPeer, frame: wire.Frame) -> bool:
    if peer.closed:
        return False
    if peer.waiting > MAX_UNSENT:
        peer.end("it does not read")
        return False
    peer.send_bytes(wire.pack(frame))
    return True


def _host_in(hello: wire.Frame) -> str:
    try:
        return str(json.loads(hello.body)["host"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"host {hello.origin}"


def _ignore(_: StarPeer, __: str) -> None:
    pass
