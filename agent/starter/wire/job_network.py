"""The network between the shepherds of one attempt on several hosts: each connects to the first host's shepherd, which relays.

Rule: a broken connection is made again; the users of the network decide what the loss means. There are three users on each
host, over one connection: the ranks, which start, fail and end together (mpi/rank_network.py), their meeting point
(mpi/meeting.py), and the tasks of blaunch (blaunch/taskhub.py). Frames for a host that has not joined yet are queued on the
first host until its time to join is over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from agent.starter.protocol.part import LinkSpec
from agent.starter.protocol.reports import Address, Root
from agent.starter.system.watch import Watch
from agent.starter.wire import taskwire as wire
from agent.starter.wire.link import HANDSHAKE_SECONDS, Identity, Peer, connect, listen

JOIN_SECONDS = 60.0
"""Seconds that a host may take to join; after that, what is queued for it is dropped."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two attempts to connect: from the first, doubled each time up to the longest."""
MAX_UNSENT = 256 << 20
"""Bytes that may be queued for a peer that does not read, before it is disconnected."""
MAX_STRANGERS = 64
"""Connections that have not shown the job's certificate yet; a handshake takes milliseconds."""
ALL_HOSTS = -1
"""As the index of a lost host: the connection to the first host is lost, and with it all other hosts."""


class Joined(NamedTuple):
    """A connection is open: on the first host, to host number ``host_index``; elsewhere, to the first host (0)."""

    host_index: int
    host: str


class Lost(NamedTuple):
    """A host, or ALL_HOSTS, can no longer be reached."""

    host_index: int
    why: str


class NotConnected(NamedTuple):
    """An attempt to connect to the first host has failed; it is repeated."""

    why: str


Event = Joined | wire.Frame | Lost | NotConnected
OnEvent = Callable[[Event], None]
NetworkPeer = Peer[wire.Frame]


def _ignore_event(_: Event) -> None:
    """For a user of the network that this part does not have."""


class _Queue:
    """Frames for a host that has not joined yet, and when it is given up (monotonic)."""

    __slots__ = ("frames", "until")

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.until = time.monotonic() + JOIN_SECONDS


class _NetworkEnd:
    """What both ends have: this host's index, and the users of the network."""

    def __init__(self, link: LinkSpec, watch: Watch) -> None:
        self.host_index = link.place
        self._identity = Identity(link.cert, link.key)
        self._watch = watch
        self._ranks: OnEvent = _ignore_event
        self._tasks: OnEvent = _ignore_event
        self._meeting: OnEvent = _ignore_event

    def on_ranks(self, on_event: OnEvent) -> None:
        """Call ``on_event`` for frames of the ranks, and when a connection opens or is lost."""
        self._ranks = on_event

    def on_tasks(self, on_event: OnEvent) -> None:
        """Call ``on_event`` for frames of blaunch's tasks, and when a connection opens or is lost."""
        self._tasks = on_event

    def on_meeting(self, on_event: OnEvent) -> None:
        """Call ``on_event`` for frames of the ranks' meeting point, and when a connection opens or is lost."""
        self._meeting = on_event

    def _notify_all(self, event: Event) -> None:
        self._ranks(event)
        self._tasks(event)
        self._meeting(event)

    def _deliver(self, frame: wire.Frame) -> None:
        if frame.kind == wire.MEETING:
            self._meeting(frame)
        else:
            (self._ranks if frame.kind in wire.OF_RANKS else self._tasks)(frame)


class RootNetwork(_NetworkEnd):
    """The first host's end: a listener, and one peer for each other host."""

    def __init__(self, link: LinkSpec, watch: Watch) -> None:
        super().__init__(link, watch)
        self._nodes, self._elastic = link.nodes, link.elastic
        self._paused = False
        self._anonymous: list[NetworkPeer] = []
        """Connections without a HELLO so far."""
        self._peers: dict[int, NetworkPeer] = {}
        self._queued: dict[int, _Queue] = {host_index: _Queue() for host_index in range(1, link.nodes)}
        self._listener = listen(link.bind or "127.0.0.1")
        watch.add(self._listener.fileno(), self._accept)

    @property
    def address(self) -> Address:
        """The address that the other hosts connect to."""
        host, port = self._listener.getsockname()[:2]
        return Address(host, port)

    @property
    def has_peers(self) -> bool:
        """Whether any other host is connected."""
        return bool(self._peers)

    def start(self, _: Root | None) -> None:
        """The part starts: the other hosts have JOIN_SECONDS from now to join."""
        for queue in self._queued.values():
            queue.until = time.monotonic() + JOIN_SECONDS

    def expect(self, host_indexes: Iterable[int]) -> None:
        """Queue frames for these hosts too, for JOIN_SECONDS, until they join."""
        for host_index in host_indexes:
            if host_index and host_index not in self._peers and host_index not in self._queued:
                self._queued[host_index] = _Queue()

    def send(self, frame: wire.Frame) -> bool:
        """Send to host ``frame.to``, or queue it if that host may still join; False when it cannot be reached."""
        peer = self._peers.get(frame.to)
        if peer is not None:
            return _send(peer, frame)
        queue = self._queued.get(frame.to)
        if queue is None:
            return False
        queue.frames.append(wire.pack(frame))
        return True

    def send_all(self, kind: int, body: bytes) -> None:
        """Send to every host that is connected."""
        for host_index, peer in list(self._peers.items()):
            _send(peer, wire.Frame(kind, host_index, 0, 0, body))

    def pause(self, paused: bool) -> None:
        """Stop or resume reading from the other hosts: the output of their ranks cannot be passed on meanwhile."""
        self._paused = paused
        for peer in list(self._peers.values()):
            peer.pause(paused)

    def _accept(self, _: int) -> None:
        try:
            sock, _addr = self._listener.accept()
        except OSError:
            return
        self._make_room()
        peer = Peer(sock, self._identity, True, self._watch, self._on_frame, _ignore, self._on_close, wire.FrameReader())
        self._anonymous.append(peer)

    def _make_room(self) -> None:
        """Close what has been silent for long, and of too many the oldest: strangers leave room for the hosts of the job."""
        now = time.monotonic()
        for peer in self._anonymous:
            if now - peer.since > HANDSHAKE_SECONDS:
                peer.close()
        self._anonymous = [peer for peer in self._anonymous if not peer.closed]
        # one that is open has shown the job's certificate
        strangers = [peer for peer in self._anonymous if not peer.open]
        for peer in strangers[: max(0, len(strangers) - MAX_STRANGERS)]:
            peer.close()
            self._anonymous.remove(peer)

    def _on_frame(self, peer: NetworkPeer, frame: wire.Frame) -> None:
        if peer.host_index is None:
            self._on_hello(peer, frame)
        elif frame.to == 0:
            self._deliver(frame)
        elif not self.send(frame) and wire.is_for_task(frame) and frame.kind != wire.ABANDON:
            self.send(wire.Frame(wire.FAIL, frame.origin, frame.origin, frame.number, b"its host is not reached"))

    def _on_hello(self, peer: NetworkPeer, frame: wire.Frame) -> None:
        host_index = frame.origin
        if frame.kind != wire.HELLO or host_index < 1 or (host_index >= self._nodes and not self._elastic):
            peer.close()
            return
        self._anonymous = [one for one in self._anonymous if one is not peer]
        previous = self._peers.get(host_index)
        if previous is not None and not previous.closed:
            previous.end("it came again")
        peer.host_index, peer.name = host_index, str(host_index)
        self._peers[host_index] = peer
        peer.pause(self._paused)
        queue = self._queued.pop(host_index, None)
        for ready in queue.frames if queue else ():
            peer.send_bytes(ready)
        self._notify_all(Joined(host_index, _host_name_in(frame)))

    def _on_close(self, peer: NetworkPeer, why: str) -> None:
        if peer.host_index is not None and self._peers.get(peer.host_index) is peer:
            del self._peers[peer.host_index]
            self._report_loss(Lost(peer.host_index, why))

    def _report_loss(self, lost: Lost) -> None:
        self._notify_all(lost)
        for other, peer in list(self._peers.items()):
            peer.send_bytes(wire.pack(wire.Frame(wire.LOST, other, lost.host_index, 0)))

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic), None: nothing is queued."""
        return min((queue.until for queue in self._queued.values() if queue.frames), default=None)

    def on_time(self) -> None:
        """Report hosts that did not join in time as lost, if something is queued for them."""
        now = time.monotonic()
        for host_index, queue in list(self._queued.items()):
            if queue.frames and now >= queue.until:
                del self._queued[host_index]
                self._report_loss(Lost(host_index, "it did not connect"))

    def close(self) -> None:
        """Close all connections without reporting events."""
        if self._listener.fileno() >= 0:
            self._watch.remove(self._listener.fileno())
            self._listener.close()
        for peer in (*self._anonymous, *self._peers.values()):
            peer.close()
        self._peers.clear()
        self._queued.clear()


class LeafNetwork(_NetworkEnd):
    """Every other host's end: one connection to the first host, made again when it breaks."""

    def __init__(self, link: LinkSpec, watch: Watch, host: str) -> None:
        super().__init__(link, watch)
        self._host = host
        self._root: Root | None = None
        self._peer: NetworkPeer | None = None
        self._queued: _Queue | None = _Queue()
        """What is sent before the first connection is open; None afterwards."""
        self._reconnect_at: float | None = None
        self._pause = FIRST_PAUSE
        self._since = 0.0

    @property
    def address(self) -> None:
        """None: no host connects to this one."""
        return

    @property
    def is_connected(self) -> bool:
        """Whether the connection to the first host is open."""
        return self._peer is not None and self._peer.open and not self._peer.closed

    @property
    def unsent(self) -> int:
        """Bytes queued for the first host."""
        return self._peer.waiting if self._peer is not None else 0

    def start(self, root: Root | None) -> None:
        """The part starts: connect to the first host at the address ``root``."""
        if root is None:
            self._notify_all(NotConnected("its address was not given"))
            return
        self._root = root
        self._connect()

    def _connect(self) -> None:
        assert self._root is not None
        self._reconnect_at = None
        self._since = time.monotonic()
        try:
            sock = connect(self._root.host, self._root.port)
        except (OSError, ValueError, OverflowError) as e:
            self._reconnect_later()
            self._notify_all(NotConnected(getattr(e, "strerror", None) or str(e)))
            return
        self._peer = Peer(
            sock, self._identity, False, self._watch, self._on_frame, self._on_open, self._on_close, wire.FrameReader()
        )

    def _reconnect_later(self) -> None:
        self._peer = None
        self._reconnect_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def expect(self, host_indexes: Iterable[int]) -> None:
        """Nothing to do: frames go to the first host in any case."""

    def send(self, frame: wire.Frame) -> bool:
        """Send to the first host, or queue before the first connection; False when the connection is lost."""
        if self._peer is not None and self.is_connected:
            return _send(self._peer, frame)
        if self._queued is None:
            return False
        self._queued.frames.append(wire.pack(frame))
        return True

    def _on_open(self, peer: NetworkPeer, _: str) -> None:
        self._pause = FIRST_PAUSE
        hello = json.dumps({"host": self._host}).encode()
        peer.send_bytes(wire.pack(wire.Frame(wire.HELLO, 0, self.host_index, 0, hello)))
        queue, self._queued = self._queued, None
        for ready in queue.frames if queue else ():
            peer.send_bytes(ready)
        assert self._root is not None
        self._notify_all(Joined(0, self._root.host))

    def _on_frame(self, _: NetworkPeer, frame: wire.Frame) -> None:
        if frame.to == self.host_index:
            self._deliver(frame)

    def _on_close(self, peer: NetworkPeer, why: str) -> None:
        if peer is self._peer:
            self._reconnect_later()
            self._notify_all(Lost(ALL_HOSTS, why) if peer.open else NotConnected(why))

    def _times(self) -> Iterator[float]:
        if self._reconnect_at is not None:
            yield self._reconnect_at
        if self._queued is not None and self._queued.frames:
            yield self._queued.until
        if self._peer is not None and not self._peer.open:
            yield self._since + HANDSHAKE_SECONDS

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return min(self._times(), default=None)

    def on_time(self) -> None:
        """Connect again when that is due; give up a handshake or a first connection that takes too long."""
        now = time.monotonic()
        if self._peer is not None and not self._peer.open and now >= self._since + HANDSHAKE_SECONDS:
            self._peer.close()
            self._reconnect_later()
            self._notify_all(NotConnected("no answer"))
        if self._reconnect_at is not None and now >= self._reconnect_at:
            self._connect()
        if self._queued is not None and self._queued.frames and now >= self._queued.until:
            self._queued = None
            self._notify_all(Lost(ALL_HOSTS, "no answer"))

    def close(self) -> None:
        """Close the connection for good without reporting events."""
        self._reconnect_at = None
        if self._peer is not None:
            self._peer.close()
            self._peer = None


JobNetwork = RootNetwork | LeafNetwork


def open_network(link: LinkSpec, watch: Watch, host: str) -> JobNetwork:
    """This host's end of the network: RootNetwork on host 0. OSError when the first host cannot listen."""
    return RootNetwork(link, watch) if link.place == 0 else LeafNetwork(link, watch, host)


def _send(peer: NetworkPeer, frame: wire.Frame) -> bool:
    if peer.closed:
        return False
    if peer.waiting > MAX_UNSENT:
        peer.end("it does not read")
        return False
    peer.send_bytes(wire.pack(frame))
    return True


def _host_name_in(hello: wire.Frame) -> str:
    try:
        return str(json.loads(hello.body)["host"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"host {hello.origin}"


def _ignore(_: NetworkPeer, __: str) -> None:
    pass
