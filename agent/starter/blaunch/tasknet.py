"""The star between the shepherds of one attempt on several hosts, for tasks: leaves connect to the root, which relays.

Rule: a link that breaks ends what ran over it and nothing else; a leaf connects again. The first host to be asked may be
asked before it has joined: what is for it waits, so long as it may still join. Tasks' windows bound what is on the way.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable

from agent.starter.protocol.reports import Address, Root
from agent.starter.system.watch import Watch
from agent.starter.wire import taskwire as wire
from agent.starter.wire.link import HANDSHAKE_SECONDS, Identity, Peer, connect, listen

JOIN_SECONDS = 60.0
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
MAX_UNSENT = 256 << 20

TaskPeer = Peer[wire.Frame]
Take = Callable[[wire.Frame], None]
Lost = Callable[[int], None]


class Waiting:
    """Frames for a place that has not joined yet."""

    __slots__ = ("frames", "until")

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.until = time.monotonic() + JOIN_SECONDS


class RootNet:
    """The root's side: a listener, one peer for each other place."""

    def __init__(
        self, nodes: int, bind: str, identity: Identity, watch: Watch, take: Take, lost: Lost, elastic: bool = False
    ) -> None:
        self._nodes = nodes
        self._elastic = elastic
        self._identity = identity
        self._watch = watch
        self._take = take
        self._lost = lost
        self._strangers: list[TaskPeer] = []
        self._peers: dict[int, TaskPeer] = {}
        self._waiting: dict[int, Waiting] = {place: Waiting() for place in range(1, nodes)}
        self._listener = listen(bind)
        watch.add(self._listener.fileno(), self._accept)

    def address(self) -> Address:
        """Where the leaves connect to."""
        host, port = self._listener.getsockname()[:2]
        return Address(host, port)

    def go(self, _: Root | None) -> None:
        """The other hosts have a minute to join from now."""
        for waiting in self._waiting.values():
            waiting.until = time.monotonic() + JOIN_SECONDS

    def expect(self, places: Iterable[int]) -> None:
        """These are to be reached: one that has not joined yet has its time to."""
        for place in places:
            if place and place not in self._peers and place not in self._waiting:
                self._waiting[place] = Waiting()

    def send(self, frame: wire.Frame) -> bool:
        """Send towards the frame's place; False when there is no way."""
        peer = self._peers.get(frame.to)
        if peer is not None and not peer.closed:
            if peer.waiting > MAX_UNSENT:
                peer.end("it does not read")
                return False
            peer.send_bytes(wire.pack(frame))
            return True
        waiting = self._waiting.get(frame.to)
        if waiting is None:
            return False
        waiting.frames.append(wire.pack(frame))
        return True

    def _accept(self, _: int) -> None:
        try:
            sock, _addr = self._listener.accept()
        except OSError:
            return
        now = time.monotonic()
        for peer in self._strangers:
            if now - peer.since > HANDSHAKE_SECONDS:
                peer.close()
        self._strangers = [peer for peer in self._strangers if not peer.closed]
        if len(self._strangers) > 2 * self._nodes + 8:
            sock.close()
            return
        peer = Peer(sock, self._identity, True, self._watch, self._took, _ignore, self._ended, wire.FrameReader())
        self._strangers.append(peer)

    def _took(self, peer: TaskPeer, frame: wire.Frame) -> None:
        if peer.place is None:
            self._greeted(peer, frame)
        elif frame.to == 0:
            self._take(frame)
        elif not self.send(frame) and wire.is_for_task(frame) and frame.kind != wire.ABANDON:
            self.send(wire.Frame(wire.FAIL, frame.origin, frame.origin, frame.number, b"its host is not reached"))

    def _greeted(self, peer: TaskPeer, frame: wire.Frame) -> None:
        place = frame.origin
        if frame.kind != wire.HELLO or place < 1 or (place >= self._nodes and not self._elastic):
            peer.close()
            return
        self._strangers = [one for one in self._strangers if one is not peer]
        former = self._peers.get(place)
        if former is not None and not former.closed:
            former.end("it came again")
        peer.place, peer.name = place, str(place)
        self._peers[place] = peer
        waiting = self._waiting.pop(place, None)
        for ready in waiting.frames if waiting else ():
            peer.send_bytes(ready)

    def _ended(self, peer: TaskPeer, _: str) -> None:
        place = peer.place
        if place is None or self._peers.get(place) is not peer:
            return
        del self._peers[place]
        self._gone(place)

    def _gone(self, place: int) -> None:
        self._lost(place)
        for other, peer in list(self._peers.items()):
            peer.send_bytes(wire.pack(wire.Frame(wire.LOST, other, place, 0)))

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do: only for those who wait."""
        return min((w.until for w in self._waiting.values() if w.frames), default=None)

    def on_time(self, now: float) -> None:
        """Places that did not join in time are not there for those who wait for them."""
        for place, waiting in list(self._waiting.items()):
            if waiting.frames and now >= waiting.until:
                del self._waiting[place]
                self._gone(place)

    def close(self) -> None:
        """Close everything."""
        if self._listener.fileno() >= 0:
            self._watch.remove(self._listener.fileno())
            self._listener.close()
        for peer in (*self._strangers, *self._peers.values()):
            peer.close()
        self._peers.clear()
        self._waiting.clear()


class LeafNet:
    """A leaf's side: one peer, the root; connected again when it breaks."""

    def __init__(self, place: int, identity: Identity, watch: Watch, take: Take, lost: Lost) -> None:
        self._place = place
        self._identity = identity
        self._watch = watch
        self._take = take
        self._lost = lost
        self._root: Root | None = None
        self._peer: TaskPeer | None = None
        self._waiting: Waiting | None = Waiting()
        self._again: float | None = None
        self._pause = FIRST_PAUSE
        self._since = 0.0

    def address(self) -> None:
        """A leaf is not connected to."""
        return

    def go(self, root: Root | None) -> None:
        """Connect to the root."""
        if root:
            self._root = root
            self._connect()

    def _connect(self) -> None:
        assert self._root is not None
        self._again = None
        self._since = time.monotonic()
        try:
            sock = connect(self._root.host, self._root.port)
        except (OSError, ValueError, OverflowError):
            self._later()
            return
        self._peer = Peer(sock, self._identity, False, self._watch, self._took, self._opened, self._ended, wire.FrameReader())

    def _later(self) -> None:
        self._peer = None
        self._again = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def expect(self, places: Iterable[int]) -> None:
        """The root knows who is there."""

    def send(self, frame: wire.Frame) -> bool:
        """Send to the root; False when it is not there."""
        peer = self._peer
        if peer is not None and peer.open and not peer.closed:
            if peer.waiting > MAX_UNSENT:
                peer.end("it does not read")
                return False
            peer.send_bytes(wire.pack(frame))
            return True
        if self._waiting is None:
            return False
        self._waiting.frames.append(wire.pack(frame))
        return True

    def _opened(self, peer: TaskPeer, _: str) -> None:
        self._pause = FIRST_PAUSE
        peer.send_bytes(wire.pack(wire.Frame(wire.HELLO, 0, self._place, 0, json.dumps({"place": self._place}).encode())))
        waiting, self._waiting = self._waiting, None
        for ready in waiting.frames if waiting else ():
            peer.send_bytes(ready)

    def _took(self, _: TaskPeer, frame: wire.Frame) -> None:
        if frame.kind == wire.LOST:
            self._lost(frame.origin)
        elif frame.to == self._place:
            self._take(frame)

    def _ended(self, peer: TaskPeer, _: str) -> None:
        if peer is not self._peer:
            return
        was_open = peer.open
        self._later()
        if was_open:
            self._lost(-1)

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do."""
        times = [self._again] if self._again is not None else []
        if self._waiting is not None and self._waiting.frames:
            times.append(self._waiting.until)
        if self._peer is not None and not self._peer.open:
            times.append(self._since + HANDSHAKE_SECONDS)
        return min(times, default=None)

    def on_time(self, now: float) -> None:
        """Connect again; give up waiting."""
        if self._peer is not None and not self._peer.open and now >= self._since + HANDSHAKE_SECONDS:
            self._peer.close()
            self._later()
        if self._again is not None and now >= self._again:
            self._connect()
        if self._waiting is not None and self._waiting.frames and now >= self._waiting.until:
            self._waiting = None
            self._lost(-1)

    def close(self) -> None:
        """Close the link."""
        self._again = None
        if self._peer is not None:
            self._peer.close()


def _ignore(_: TaskPeer, __: str) -> None:
    pass
