"""The HTTP key-value server by which the ranks of a Horovod job find each other: GET, PUT and DELETE of ``/KEY:port/scope/key``.

Each host of the job serves its own ranks, on the loopback interface; the values are on the first host (mpi/meeting.py).
Rule: it runs in the shepherd's loop, and what clients send is bounded. Only who knows this attempt's KEY is answered: the ranks
have it in their environment, and put their port behind it as behind every address. A scope is dropped when every key in it was
deleted: each rank deletes its own once it is connected to all others, so that the scope can be used again.
"""

from __future__ import annotations

import hmac
import re
import socket
from collections.abc import Callable
from functools import partial

from agent.starter.system.watch import READ, WRITE, Watch

ADDRESS = "127.0.0.1"
MAX_HEAD = 16 * 1024
MAX_BODY = 4 << 20
MAX_KEPT = 64 << 20
MAX_CONNECTIONS = 4096

_FIRST = re.compile(rb"(GET|PUT|DELETE) (/\S*) HTTP/1\.[01]")
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,10})[ \t]*$", re.IGNORECASE | re.MULTILINE)
_REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    413: "Content Too Large",
    503: "Service Unavailable",
    507: "Insufficient Storage",
}
Answered = Callable[[int, bytes], None]
"""Called with HTTP status and body."""
Ask = Callable[[bytes, bytes, bytes, Answered], None]
"""Carries out a request: verb, path, body, and what to call with the answer, at once or later."""


class _Caller:
    __slots__ = ("asked", "out", "received", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.asked = False
        """The request is complete."""
        self.received = bytearray()
        self.out = bytearray()


class Values:
    """The stored values, by scope and key."""

    def __init__(self) -> None:
        self._scopes: dict[bytes, dict[bytes, bytes]] = {}
        self._deleted: dict[bytes, set[bytes]] = {}
        self._size = 0

    def request(self, verb: bytes, path: bytes, body: bytes) -> tuple[int, bytes]:
        """Carry out one request: (HTTP status, body of the answer)."""
        scope, _, key = path[1:].partition(b"/")
        if verb == b"GET":
            value = self._scopes.get(scope, {}).get(key)
            return (404, b"") if value is None else (200, value)
        if verb == b"PUT":
            return self._put(scope, key, body), b""
        self._deleted.setdefault(scope, set()).add(key)
        if self._scopes.get(scope, {}).keys() <= self._deleted[scope]:
            self._size -= sum(len(key) + len(value) for key, value in self._scopes.pop(scope, {}).items())
            del self._deleted[scope]
        return 200, b""

    def _put(self, scope: bytes, key: bytes, body: bytes) -> int:
        values = self._scopes.setdefault(scope, {})
        before = values.get(key)
        size = self._size + len(body) + (len(key) if before is None else -len(before))
        if size > MAX_KEPT:
            return 507
        self._size = size
        values[key] = body
        return 200


class Rendezvous:
    """Serves on a bound socket until closed; connections to other addresses of the host than ADDRESS are refused."""

    def __init__(self, sock: socket.socket, key: str, ask: Ask, watch: Watch) -> None:
        self._listener = sock
        self._key = key.encode()
        self._ask = ask
        self._watch = watch
        self._callers: dict[int, _Caller] = {}
        sock.setblocking(False)
        sock.listen(1024)
        watch.add(sock.fileno(), self._accept)

    def _accept(self, _: int) -> None:
        try:
            sock, _addr = self._listener.accept()
        except OSError:
            return
        if sock.getsockname()[0] not in (ADDRESS, f"::ffff:{ADDRESS}"):
            sock.close()
            return
        sock.setblocking(False)
        if len(self._callers) >= MAX_CONNECTIONS:
            # The oldest connection is the one that most likely sends nothing.
            self._drop(next(iter(self._callers.values())))
        caller = _Caller(sock)
        self._callers[sock.fileno()] = caller
        self._watch.add(sock.fileno(), lambda events: self._ready(caller, events))

    def _ready(self, caller: _Caller, events: int) -> None:
        if caller.out:
            if events & WRITE:
                self._send(caller)
            elif events & ~READ:
                self._drop(caller)
            return
        try:
            data = caller.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or caller.asked:
            self._drop(caller)
            return
        caller.received += data
        self._read(caller)

    def _read(self, caller: _Caller) -> None:
        """Carry out the request if it is complete; answer one that is bad."""
        received = caller.received
        end = received.find(b"\r\n\r\n")
        if end < 0:
            if len(received) > MAX_HEAD:
                self._answer(caller, 413)
            return
        first = _FIRST.match(received)
        if first is None:
            self._answer(caller, 400)
            return
        # the buffer that the match is of changes
        verb = bytes(first[1])
        shown, _, path = bytes(first[2])[1:].partition(b"/")
        if not hmac.compare_digest(shown.partition(b":")[0], self._key):
            self._answer(caller, 403)
            return
        length = _LENGTH.search(bytes(received[:end]).replace(b"\r\n", b"\n"))
        size = int(length[1]) if length else 0
        if size > MAX_BODY:
            self._answer(caller, 413)
            return
        body = bytes(received[end + 4 : end + 4 + size])
        if len(body) == size:
            caller.asked = True
            caller.received.clear()
            self._ask(verb, b"/" + path, body, partial(self._answer, caller))

    def _answer(self, caller: _Caller, status: int, body: bytes = b"") -> None:
        if caller.sock.fileno() < 0:
            return
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        caller.out += head.encode() + body
        self._send(caller)

    def _send(self, caller: _Caller) -> None:
        try:
            sent = caller.sock.send(caller.out)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(caller)
            return
        del caller.out[:sent]
        if caller.out:
            self._watch.change(caller.sock.fileno(), WRITE)
        else:
            self._drop(caller)

    def _drop(self, caller: _Caller) -> None:
        if self._callers.pop(caller.sock.fileno(), None) is not None:
            self._watch.remove(caller.sock.fileno())
            caller.sock.close()

    def close(self) -> None:
        """Close all connections and the listening socket."""
        for caller in list(self._callers.values()):
            self._drop(caller)
        self._watch.remove(self._listener.fileno())
        self._listener.close()
