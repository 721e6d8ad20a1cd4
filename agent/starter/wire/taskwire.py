"""Frames between the shepherds of one attempt, and between ``blaunch`` and its host's shepherd.

Rule: pure. A frame is its length, kind, the index of the host that it is for, the index of the host that requested the task,
the number of the request there, and a body of bytes. Standard input flows from the requesting host to the task, output the
other way; nobody sends more bytes than were granted by CREDIT. ``cli/terminal/taskframes.py`` is the command's side of this.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from agent.starter.wire.frames import FrameError

MAX_FRAME = 16 << 20
WINDOW = 128 * 1024
"""Bytes of one stream of one task that may be in flight, and so must be buffered at most."""
X_WINDOW = 512 * 1024
"""The same of a client of an X11 display, each way: pictures are large, and the way may be long."""
CHUNK = 32 * 1024

HELLO, START, STARTED, DATA, CREDIT, SIGNAL, EXIT, FAIL, ABANDON, LOST, SIZE, STOPPED = range(1, 13)
RANKS, RANK_OUTPUT = 13, 14
"""Of the job's ranks: a message (JSON), and whole lines of output, with the stream in the field ``number``."""
OF_RANKS = frozenset((RANKS, RANK_OUTPUT))
MEETING = 15
"""A request at the meeting point of the job's ranks, and its answer; ``number`` says which."""
X_OPEN, X_DATA, X_CREDIT, X_CLOSE = range(16, 20)
"""Of a client of a forwarded X11 display, which ``number`` names: it is there, its bytes, how many more may come, it is gone."""
IN, OUT, ERR = range(3)

_HEAD = struct.Struct("!IBIII")
_AFTER_LENGTH = _HEAD.size - 4
_CREDIT = struct.Struct("!BI")
_X_CREDIT = struct.Struct("!I")
_EXIT = struct.Struct("!i")


class Frame(NamedTuple):
    """One frame. DATA without bytes ends its stream."""

    kind: int
    to: int
    origin: int
    number: int
    body: bytes = b""


def pack(frame: Frame) -> bytes:
    """A frame as bytes."""
    kind, to, origin, number, body = frame
    return _HEAD.pack(_AFTER_LENGTH + len(body), kind, to, origin, number) + body


def data(stream: int, content: bytes) -> bytes:
    """The body of DATA."""
    return bytes((stream,)) + content


def credit(stream: int, count: int) -> bytes:
    """The body of CREDIT: ``count`` more bytes of the stream may be sent."""
    return _CREDIT.pack(stream, count)


def read_credit(body: bytes) -> tuple[int, int]:
    """(stream, number of bytes) from the body of CREDIT; FrameError when it is malformed."""
    try:
        stream, count = _CREDIT.unpack(body)
    except struct.error:
        raise FrameError("a credit is not one") from None
    return int(stream), int(count)


def x_credit(count: int) -> bytes:
    """The body of X_CREDIT."""
    return _X_CREDIT.pack(count)


def read_x_credit(body: bytes) -> int:
    """How many more bytes a client's connection may send; 0 where that is not said."""
    return int(_X_CREDIT.unpack(body)[0]) if len(body) == _X_CREDIT.size else 0


def exit_body(code: int) -> bytes:
    """The body of EXIT: an exit code as a shell reports it (128 + signal)."""
    return _EXIT.pack(code)


def is_for_task(frame: Frame) -> bool:
    """Whether the frame goes to the task rather than to the client that requested it."""
    if frame.kind == DATA:
        return frame.body[:1] == b"\0"
    if frame.kind == CREDIT:
        return frame.body[:1] != b"\0"
    return frame.kind in (START, SIGNAL, ABANDON)


class FrameReader:
    """Splits a byte stream into frames and keeps an incomplete frame for the next call."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by ``data``; FrameError when the stream is malformed."""
        buffer = self._data
        buffer += data
        found: list[Frame] = []
        at = 0
        while len(buffer) - at >= _HEAD.size:
            size, kind, to, origin, number = _HEAD.unpack_from(buffer, at)
            if not _AFTER_LENGTH <= size <= MAX_FRAME:
                raise FrameError(f"a frame of {size} bytes cannot be")
            if len(buffer) - at - 4 < size:
                break
            found.append(Frame(kind, to, origin, number, bytes(buffer[at + _HEAD.size : at + 4 + size])))
            at += 4 + size
        if at:
            del buffer[:at]
        return found
