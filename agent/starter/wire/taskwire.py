"""Frames between the shepherds of one attempt, and between ``blaunch`` and its host's shepherd.

Rule: pure. A frame is its length, then kind, place it is for, place it was asked at, number there, and a body of bytes;
standard input flows from the asking place to the task, output the other way, and nobody sends more than he was granted.
``cli/terminal/taskframes.py`` speaks the same for the command.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from agent.starter.wire.frames import FrameError

MAX_FRAME = 16 << 20
WINDOW = 128 * 1024
"""Bytes of one stream of one task that may be on the way; what lies in between holds no more than this."""
CHUNK = 32 * 1024

HELLO, START, STARTED, DATA, CREDIT, SIGNAL, EXIT, FAIL, ABANDON, LOST, SIZE, STOPPED = range(1, 13)
RANKS, RANK_OUTPUT = 13, 14
"""Of the job's ranks: a message (JSON), and whole lines of output whose stream stands as the number."""
OF_RANKS = frozenset((RANKS, RANK_OUTPUT))
IN, OUT, ERR = range(3)

_HEAD = struct.Struct("!IBIII")
_AFTER_LENGTH = _HEAD.size - 4
_CREDIT = struct.Struct("!BI")
_EXIT = struct.Struct("!i")


class Frame(NamedTuple):
    """One frame. A stream that has ended is DATA without bytes."""

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
    """The body of CREDIT: so many more bytes of the stream may be sent."""
    return _CREDIT.pack(stream, count)


def read_credit(body: bytes) -> tuple[int, int]:
    """(stream, bytes) of CREDIT; FrameError when it is none."""
    try:
        stream, count = _CREDIT.unpack(body)
    except struct.error:
        raise FrameError("a credit is not one") from None
    return int(stream), int(count)


def exit_body(code: int) -> bytes:
    """The body of EXIT: an exit code as a shell has it."""
    return _EXIT.pack(code)


def is_for_task(frame: Frame) -> bool:
    """Whether the frame goes to the task, rather than to the one who asked for it."""
    if frame.kind == DATA:
        return frame.body[:1] == b"\0"
    if frame.kind == CREDIT:
        return frame.body[:1] != b"\0"
    return frame.kind in (START, SIGNAL, ABANDON)


class FrameReader:
    """Cuts a byte stream into frames; a partial frame waits for the rest."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by ``data``; FrameError when the stream cannot be frames."""
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
