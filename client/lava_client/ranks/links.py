"""Connections between ranks: each rank has one to every rank that writes.

Both sides prove that they know a secret that the ranks have of each other through lava; what passes is not encrypted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import TYPE_CHECKING, NamedTuple

from lava_client.ranks.group import RanksLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lava_client.ranks.group import Ranks

CONNECT_WITHIN = 10.0
"""Seconds for each address of a rank."""
_SIOCGIFADDR = 0x8915
_RANK = struct.Struct("!I")


class Links(NamedTuple):
    """Connections by the number of the rank at the other end: to those that write, and, of one that writes, from all others."""

    to: dict[int, Connection]
    of: dict[int, Connection]

    def close(self) -> None:
        """Close them all."""
        for link in (*self.to.values(), *self.of.values()):
            link.close()


def host() -> str:
    """This host, as lava calls it."""
    return os.environ.get("LAVA_HOST") or os.uname().nodename


def connect(ranks: Ranks, writers: Sequence[int]) -> Links:
    """Connect all ranks with the writers. Every rank calls it. Raises OSError, RanksLost."""
    links = Links({}, {})
    if ranks.size == 1:
        return links
    is_writer = ranks.rank in writers
    secret = os.urandom(32)
    listener = _listen(ranks.size) if is_writer else None
    port = listener.getsockname()[1] if listener else 0
    known = ranks.allgather((host(), _addresses(), port, secret if is_writer else b""))
    accepting = _Accepting(listener, secret, ranks.size - 1) if listener else None
    try:
        for writer in writers:
            if writer != ranks.rank:
                links.to[writer] = _connected(ranks.rank, writer, *known[writer])
        if accepting is not None:
            links.of.update(accepting.all())
    except BaseException:
        links.close()
        raise
    finally:
        if accepting is not None:
            accepting.close()
    return links


class _Accepting:
    """Takes connections, and asks each who it is, in a thread of its own: a stranger's keeps nobody waiting."""

    def __init__(self, listener: socket.socket, secret: bytes, wanted: int) -> None:
        self._listener, self._secret, self._wanted = listener, secret, wanted
        self._found: dict[int, Connection] = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def all(self) -> dict[int, Connection]:
        """Returns once all others are connected: one that dies before ends the job."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._found) == self._wanted)
        return self._found

    def close(self) -> None:
        """Take no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._ask, args=(Connection(taken.detach()),), daemon=True).start()

    def _ask(self, link: Connection) -> None:
        try:
            deliver_challenge(link, self._secret)
            answer_challenge(link, self._secret)
            (rank,) = _RANK.unpack(link.recv_bytes(_RANK.size))
        except (OSError, EOFError, AuthenticationError, AssertionError, ValueError, struct.error):
            link.close()
            return
        with self._changed:
            if rank in self._found:
                link.close()
            else:
                self._found[rank] = link
                self._changed.notify_all()


def _listen(size: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", 0), family=socket.AF_INET6, backlog=size, dualstack_ipv6=True)
    return socket.create_server(("", 0), backlog=size)


def _connected(rank: int, writer: int, name: str, addresses: list[str], port: int, secret: bytes) -> Connection:
    why: list[str] = []
    tried = ["127.0.0.1", *addresses] if name == host() else [*addresses, "127.0.0.1"]
    for address in tried:
        try:
            made = socket.create_connection((address, port), CONNECT_WITHIN)
        except OSError as error:
            why.append(f"{address}: {error.strerror or error}")
            continue
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.settimeout(None)
        link = Connection(made.detach())
        try:
            answer_challenge(link, secret)
            deliver_challenge(link, secret)
            link.send_bytes(_RANK.pack(rank))
            return link
        except (OSError, EOFError, AuthenticationError, AssertionError, ValueError) as error:
            link.close()
            why.append(f"{address}: {error or type(error).__name__}")
    raise RanksLost(f"rank {rank} cannot connect to rank {writer} on {name}, port {port}: {'; '.join(why)}")


def _addresses() -> list[str]:
    """Of this host's interfaces, and of its name."""
    found: dict[str, None] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                found[socket.inet_ntoa(answer[20:24])] = None
    with contextlib.suppress(OSError):
        found.update((str(one[4][0]), None) for one in socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM))
    return [address for address in found if not address.startswith("127.") and address != "::1"]
