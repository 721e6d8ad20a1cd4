"""The way to a host that holds copies of a job's generations: over TLS, as the job's user, with a token for that job alone.

A request is one JSON line. An archive goes to the holder in pieces, each after its length (4 bytes), a length of 0 ends them; it
comes back as it is, of the size that its manifest names.

Rule: the holder is the one whose certificate lavad named; nothing is sent before that is known.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import ssl
import struct
from collections.abc import Iterator
from typing import IO, cast

from agent.launch.checkpointing.copies import Facts, archive_in, number_in

SECONDS = 60.0
"""How long either side waits for the other to go on."""
CONNECT_SECONDS = 10.0
LONGEST_LINE = 64 << 10
PUT, GET = "put", "get"
LENGTH = struct.Struct(">I")
_PIECE = 256 << 10


class HolderError(Exception):
    """Why a host does not serve, in one line. ``final``: it has answered, and will not say otherwise; ``busy``: but later."""

    def __init__(self, why: str, final: bool = False, busy: bool = False) -> None:
        super().__init__(why)
        self.final = final
        self.busy = busy


class Holder:
    """A host that holds copies, as the agent describes it."""

    def __init__(self, fields: Facts) -> None:
        self.host = str(fields["host"])
        self.address = str(fields["address"])
        self.port = int(str(fields["port"]))
        self.print = str(fields["print"])
        """SHA-256 of its certificate."""
        self.token = str(fields["token"])
        found = fields.get("generations")
        self.generations = [one for one in found if isinstance(one, int)] if isinstance(found, list) else []
        """Those that it has been given."""


class Got:
    """An archive that is being read. ``facts``: what its manifest says."""

    def __init__(self, facts: Facts, file: IO[bytes], who: str) -> None:
        self.facts = facts
        self._file = file
        self._left = number_in(archive_in(facts), "size")
        self._who = who

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes, b"" at the end."""
        wanted = self._left if size < 0 else min(size, self._left)
        if not wanted:
            return b""
        with _told(self._who):
            data = self._file.read(min(wanted, _PIECE))
        if not data:
            raise HolderError(f"{self._who} ended the connection")
        self._left -= len(data)
        return data


class Putting:
    """An archive that is being written. ``there``: the bytes of the copy that is there already, 0: there is none."""

    def __init__(self, there: int, file: IO[bytes], who: str) -> None:
        self.there = there
        self._file = file
        self._who = who

    def write(self, data: bytes) -> int:
        """All of it."""
        with _told(self._who):
            for at in range(0, len(data), _PIECE):
                piece = data[at : at + _PIECE]
                self._file.write(LENGTH.pack(len(piece)) + piece)
        return len(data)

    def flush(self) -> None:
        """What was kept back goes on."""
        with _told(self._who):
            self._file.flush()

    def commit(self, archive: Facts) -> None:
        """All was written: the holder has it whole then, under this size and SHA-256."""
        with _told(self._who):
            self._file.write(LENGTH.pack(0))
            send(self._file, archive)
            _answer(self._file, self._who)


@contextlib.contextmanager
def getting(one: Holder, number: int) -> Iterator[Got]:
    """The copy of a generation."""
    with _asking(one, {"do": GET, "generation": number}) as (answer, file, who):
        facts = answer.get("facts")
        if not isinstance(facts, dict):
            raise HolderError(f"{who} answered nonsense", final=True)
        yield Got(facts, file, who)


@contextlib.contextmanager
def putting(one: Holder, told: Facts) -> Iterator[Putting]:
    """A new copy; ``told``: the number of its generation, and what else its manifest is to say."""
    with _asking(one, {"do": PUT, **told}) as (answer, file, who):
        yield Putting(number_in(answer, "there"), file, who)


@contextlib.contextmanager
def _asking(one: Holder, request: Facts) -> Iterator[tuple[Facts, IO[bytes], str]]:
    who = f"host {one.host}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # by its fingerprint
    with contextlib.ExitStack() as stack:
        with _told(who):
            plain = stack.enter_context(socket.create_connection((one.address, one.port), CONNECT_SECONDS))
            plain.settimeout(SECONDS)
            sock = stack.enter_context(context.wrap_socket(plain))
            if hashlib.sha256(sock.getpeercert(binary_form=True) or b"").hexdigest() != one.print:
                raise HolderError(f"{who} has another certificate than it should")
            file = cast("IO[bytes]", sock.makefile("rwb"))
            stack.callback(_close, file)
            send(file, {"token": one.token, **request})
            answer = _answer(file, who)
        yield answer, file, who


def _close(file: IO[bytes]) -> None:
    """What could not be written is of no use any more."""
    with contextlib.suppress(OSError, ValueError):
        file.close()


def send(file: IO[bytes], what: Facts) -> None:
    """One line."""
    file.write(json.dumps(what).encode() + b"\n")
    file.flush()


def receive(file: IO[bytes]) -> Facts:
    """One line; ValueError for what is none, EOFError where the other side has gone."""
    line = file.readline(LONGEST_LINE)
    if not line:
        raise EOFError
    if not line.endswith(b"\n"):
        raise ValueError("a line without an end")
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _answer(file: IO[bytes], who: str) -> Facts:
    answer = receive(file)
    if why := answer.get("why"):
        busy = bool(answer.get("later"))
        raise HolderError(f"{who}: {why}", final=not busy, busy=busy)
    return answer


@contextlib.contextmanager
def _told(who: str) -> Iterator[None]:
    """Whatever goes wrong with the connection is a HolderError."""
    try:
        yield
    except TimeoutError:
        raise HolderError(f"{who} does not answer") from None
    except EOFError:
        raise HolderError(f"{who} ended the connection") from None
    except (OSError, ValueError, RecursionError) as e:
        raise HolderError(f"{who}: {getattr(e, 'reason', None) or getattr(e, 'strerror', None) or e}") from None
