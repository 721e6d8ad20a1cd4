"""A gang over several hosts: the root shepherd merges barriers, output and ends; leaves follow it.

Rule: a link that is lost before its host was done ends the whole gang, on both sides.
Frames to the root: hello, in (barrier), out (lines), fail, done (with what its tasks used). To a leaf: barrier, end, bye.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from agent.starter.system.watch import Watch
from agent.starter.wire.link import HANDSHAKE_SECONDS, Identity, Peer, connect, listen

JOIN_SECONDS = 60.0
DONE_SECONDS = 10.0
MAX_UNSENT = 4 << 20

# (what, content): ready, barrier, out, fail, end, over, room
Say = Callable[[str, Any], None]


class RootNet:
    """The root's side: a listener, and one peer for each other host."""

    def __init__(self, nodes: int, bind: str, identity: Identity, watch: Watch, say: Say, elastic: bool = False) -> None:
        self._others = max(0, nodes - 1)
        self._elastic = elastic
        """Hosts may join late, and be lost: that is no failure."""
        self._watch = watch
        self._identity = identity
        self._say = say
        self._peers: list[Peer] = []
        self._joined: list[Peer] = []
        self._done = 0
        self.others: list[dict[str, Any]] = []
        """What the other hosts told of their tasks."""
        self._puts: dict[str, str] = {}
        self._in_barrier = 0
        self._join_by: float | None = None
        self._paused = False
        self._listener = listen(bind)
        self._watch.add(self._listener.fileno(), self._accept)

    def address(self) -> list[Any]:
        """Where the leaves connect to."""
        host, port = self._listener.getsockname()[:2]
        return [host, port]

    def go(self, _: list[Any] | None) -> None:
        """The tasks may start at once; the other hosts have a minute to join."""
        self._join_by = time.monotonic() + JOIN_SECONDS
        self._say("ready", None)

    def barrier(self, puts: dict[str, str]) -> None:
        """This host is in the barrier."""
        self._one_in(puts)

    def _one_in(self, puts: dict[str, str]) -> None:
        self._puts.update(puts)
        self._in_barrier += 1
        if self._in_barrier > self._others:
            merged, self._puts, self._in_barrier = self._puts, {}, 0
            self._to_all({"f": "barrier", "puts": merged})
            self._say("barrier", merged)

    def fail(self, first: dict[str, Any]) -> None:
        """The gang ends: tell the other hosts."""
        self._to_all({"f": "end", "first": first})

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
            return all(peer.state != "joined" for peer in self._joined)
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
            self._say("fail", {"rank": -1, "status": 255 << 8, "reason": reason})

    def close(self) -> None:
        """Close everything."""
        if self._listener.fileno() >= 0:
            self._watch.remove(self._listener.fileno())
            self._listener.close()
        for peer in self._peers:
            peer.close()

    def _to_all(self, frame: dict[str, Any]) -> None:
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
        self._peers.append(Peer(sock, self._identity, True, self._watch, self._took, _ignore, self._lost))

    def _took(self, peer: Peer, frame: dict[str, Any]) -> None:
        what = frame.get("f")
        if what == "hello" and peer not in self._joined:
            peer.name = str(frame.get("host"))
            peer.state = "joined"
            self._joined.append(peer)
            peer.pause(self._paused)
            if len(self._joined) >= self._others:
                self._join_by = None
        elif peer not in self._joined:
            peer.close()
        elif what == "in":
            self._one_in(frame["puts"])
        elif what == "out":
            self._say("out", (int(frame["s"]), frame["d"].encode("latin-1")))
        elif what == "fail" and self._elastic and int(frame["first"].get("rank", -1)) < 0:
            peer.state = "left"
            self._say("over", None)
        elif what == "fail":
            self._say("fail", frame["first"])
        elif what == "done" and peer.state in ("joined", "left"):
            peer.state = "done"
            self._done += 1
            if isinstance(frame.get("of"), dict):
                self.others.append(frame["of"])
            peer.send({"f": "bye"})
            self._say("over", None)

    def _lost(self, peer: Peer, why: str) -> None:
        if peer.state == "joined":
            peer.state = "lost"
            if not self._elastic:
                self._say("fail", {"rank": -1, "status": 255 << 8, "reason": f"link to {peer.name} lost: {why}"})
            self._say("over", None)


class LeafNet:
    """A leaf's side: one peer, the root."""

    def __init__(self, host: str, identity: Identity, watch: Watch, say: Say) -> None:
        self._host = host
        self._identity = identity
        self._watch = watch
        self._say = say
        self._peer: Peer | None = None
        self._name = "the first host"
        self._join_by: float | None = None
        self._done_at: float | None = None
        self._bye = False
        self._full = False

    def address(self) -> None:
        """A leaf is not connected to."""
        return

    def go(self, root: list[Any] | None) -> None:
        """Connect; the tasks start when the link is there."""
        if not root:
            self._lost(None, "its address was not given")
            return
        try:
            self._name = str(root[0])
            sock: socket.socket = connect(self._name, int(root[1]))
        except (OSError, LookupError, ValueError, TypeError, OverflowError) as e:
            self._lost(None, getattr(e, "strerror", None) or str(e))
            return
        self._join_by = time.monotonic() + HANDSHAKE_SECONDS
        self._peer = Peer(sock, self._identity, False, self._watch, self._took, self._opened, self._lost)

    def barrier(self, puts: dict[str, str]) -> None:
        """This host is in the barrier."""
        self._send({"f": "in", "puts": puts})

    def out(self, stream: int, lines: bytes) -> None:
        """Lines of this host's ranks, for the root to write."""
        self._send({"f": "out", "s": stream, "d": lines.decode("latin-1")})
        self._look_at_room()

    def fail(self, first: dict[str, Any]) -> None:
        """The gang failed here."""
        self._send({"f": "fail", "first": first})

    def done(self, story: dict[str, Any]) -> None:
        """No task runs here any more, and all output was sent."""
        if self._done_at is None:
            self._done_at = time.monotonic()
            self._send({"f": "done", "of": story})

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

    def _send(self, frame: dict[str, Any]) -> None:
        if self._peer is not None:
            self._peer.send(frame)

    def _look_at_room(self) -> None:
        full = self._peer is not None and not self._peer.closed and self._peer.waiting > MAX_UNSENT
        if full is not self._full:
            self._full = full
            self._say("room", not full)

    def _opened(self, peer: Peer, _: str) -> None:
        self._join_by = None
        peer.send({"f": "hello", "host": self._host})
        self._say("ready", None)

    def _took(self, _: Peer, frame: dict[str, Any]) -> None:
        what = frame.get("f")
        if what == "barrier":
            self._say("barrier", frame["puts"])
        elif what == "end":
            self._say("end", frame["first"])
        elif what == "bye":
            self._bye = True
            self._say("over", None)

    def _lost(self, _: Peer | None, why: str) -> None:
        if not self._bye and self._done_at is None:
            self._say("fail", {"rank": -1, "status": 255 << 8, "reason": f"link to {self._name} lost: {why}"})
        self._say("over", None)


def _ignore(_: Peer, __: str) -> None:
    pass
