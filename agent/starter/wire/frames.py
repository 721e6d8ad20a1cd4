"""Frames on starter.sock and between starter and shepherds: 4-byte big-endian length, then a JSON object.

Rule: pure; malformed data raises FrameError, after which the caller closes the connection.
"""

from __future__ import annotations

from agent.starter.protocol.codec import Json, ProtocolError, parse, text

MAX_FRAME = 64 << 20


class FrameError(ValueError):
    """The peer sent malformed data."""


def frame(body: bytes) -> bytes:
    """A frame with JSON that is already encoded; FrameError when it is over MAX_FRAME bytes."""
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame of {len(body)} bytes is over {MAX_FRAME}")
    return len(body).to_bytes(4, "big") + body


def pack(obj: object) -> bytes:
    """One object as a frame."""
    return frame(text(obj))


class FrameReader:
    """Splits a byte stream into objects and keeps an incomplete frame for the next call. ``limit``: bytes of a frame."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._data = bytearray()
        self._limit = limit

    @property
    def is_between_frames(self) -> bool:
        """Whether nothing of a frame is kept."""
        return not self._data

    def feed(self, data: bytes) -> list[Json]:
        """The objects completed by ``data``; FrameError when the stream is malformed."""
        return [parsed(body) for body in self.bodies(data)]

    def bodies(self, data: bytes) -> list[bytes]:
        """The same as they are written; FrameError when one is too long."""
        kept = self._data
        kept_none = not kept
        if not kept_none:
            kept += data
        source = data if kept_none else kept
        found: list[bytes] = []
        at, end = 0, len(source)
        while end - at >= 4:
            size = int.from_bytes(source[at : at + 4], "big")
            if size > self._limit:
                raise FrameError(f"a frame of {size} bytes is over {self._limit}")
            if end - at - 4 < size:
                break
            found.append(bytes(source[at + 4 : at + 4 + size]))
            at += 4 + size
        if kept_none:
            kept += data[at:]
        elif at:
            del kept[:at]
        return found


def parsed(body: bytes) -> Json:
    """The object that the body of a frame is; FrameError when it is none."""
    try:
        return parse(body)
    except ProtocolError as e:
        raise FrameError(f"a frame is {e}") from None


def same(given: bytes, token: bytes) -> bool:
    """Whether the two are equal, in a time that does not depend on where they differ."""
    different = len(given) ^ len(token)
    for one, other in zip(given, token, strict=False):
        different |= one ^ other
    return different == 0
