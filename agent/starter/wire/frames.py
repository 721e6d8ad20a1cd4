"""Frames on starter.sock, to shepherds and between them: 4-byte big-endian length, then a JSON object.

Rule: pure; a peer that breaks the format gets a FrameError and loses its connection, nothing else happens.
"""

from __future__ import annotations

from agent.starter.protocol.codec import Json, ProtocolError, parse, text

MAX_FRAME = 64 << 20


class FrameError(ValueError):
    """The peer sent something that is not a frame."""


def frame(body: bytes) -> bytes:
    """A frame around JSON that is already encoded."""
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame of {len(body)} bytes is over {MAX_FRAME}")
    return len(body).to_bytes(4, "big") + body


def pack(obj: object) -> bytes:
    """One object as a frame."""
    return frame(text(obj))


class FrameReader:
    """Cuts a byte stream into objects; a partial frame waits for the rest."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._data = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> list[Json]:
        """The objects completed by ``data``; FrameError when the stream cannot be frames."""
        buffer = self._data
        buffer += data
        found: list[Json] = []
        at = 0
        while len(buffer) - at >= 4:
            size = int.from_bytes(buffer[at : at + 4], "big")
            if size > self._limit:
                raise FrameError(f"a frame of {size} bytes is over {self._limit}")
            if len(buffer) - at - 4 < size:
                break
            found.append(_parsed(bytes(buffer[at + 4 : at + 4 + size])))
            at += 4 + size
        if at:
            del buffer[:at]
        return found


def _parsed(body: bytes) -> Json:
    try:
        return parse(body)
    except ProtocolError as e:
        raise FrameError(f"a frame is {e}") from None


def same(given: bytes, token: bytes) -> bool:
    """Whether they are equal, in a time that does not depend on where they differ."""
    different = len(given) ^ len(token)
    for one, other in zip(given, token, strict=False):
        different |= one ^ other
    return different == 0
