"""Frames between ``blaunch`` and the shepherd of its job: length, kind, two node indices and a task number, then bytes.

Rule: ``agent/starter/wire/taskwire.py`` is the other end, and documents the kinds.
"""

from __future__ import annotations

from struct import Struct

HELLO, START, STARTED, DATA, CREDIT, SIGNAL, EXIT, FAIL, ABANDON, LOST, SIZE, STOPPED = range(1, 13)
X_OPEN, X_DATA, X_CREDIT, X_CLOSE = range(16, 20)
IN, OUT, ERR = range(3)

_HEAD = Struct("!IBIII")
_CREDIT = Struct("!BI")
_X_CREDIT = Struct("!I")
_EXIT = Struct("!i")


def pack(kind: int, number: int, body: bytes = b"") -> bytes:
    """A frame about one task by this command's number for it."""
    return _HEAD.pack(_HEAD.size - 4 + len(body), kind, 0, 0, number) + body


def credit(number: int, stream: int, count: int) -> bytes:
    """A frame that lets the other end send this many more bytes of a stream."""
    return pack(CREDIT, number, _CREDIT.pack(stream, count))


def read_credit(body: bytes) -> int:
    """How many more bytes of standard input may be sent."""
    stream, count = _CREDIT.unpack(body)
    return int(count) if stream == IN else 0


def x_credit(number: int, count: int) -> bytes:
    """A frame that lets the other end send this many more bytes of a client of the X11 display."""
    return pack(X_CREDIT, number, _X_CREDIT.pack(count))


def read_x_credit(body: bytes) -> int:
    """How many more bytes may be sent to such a client."""
    return int(_X_CREDIT.unpack(body)[0])


def read_exit(body: bytes) -> int:
    """The exit code of a task."""
    return int(_EXIT.unpack(body)[0])


def take(buffer: bytearray) -> list[tuple[int, int, bytes]]:
    """(kind, number, body) of the whole frames in a buffer, which keeps the rest."""
    found = []
    at = 0
    while len(buffer) - at >= _HEAD.size:
        size, kind, _, _, number = _HEAD.unpack_from(buffer, at)
        if len(buffer) - at - 4 < size:
            break
        found.append((kind, number, bytes(buffer[at + _HEAD.size : at + 4 + size])))
        at += 4 + size
    if at:
        del buffer[:at]
    return found
