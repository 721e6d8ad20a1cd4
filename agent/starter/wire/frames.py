"""Frames on starter.sock, to shepherds and between them: 4-byte big-endian length, then a JSON object.

Rule: pure; a peer that breaks the format gets a FrameError and loses its connection, nothing else happens.
"""

from __future__ import annotations

import json
from typing import Any

MAX_FRAME = 64 << 20

_encode = json.JSONEncoder(separators=(",", ":")).encode


class FrameError(ValueError):
    """The peer sent something that is not a frame."""


def text(obj: object) -> bytes:
    """JSON without blanks; ASCII only, so that file names with undecodable bytes (surrogates) survive."""
    return _encode(obj).encode("ascii")


def frame(body: bytes) -> bytes:
    """A frame around JSON that is already encoded."""
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame of {len(body)} bytes is over {MAX_FRAME}")
    return len(body).to_bytes(4, "big") + body


def pack(obj: object) -> bytes:
    """One object as a frame."""
    return frame(_encode(obj).encode("ascii"))


class FrameReader:
    """Cuts a byte stream into objects; a partial frame waits for the rest."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._data = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The objects completed by ``data``; FrameError when the stream cannot be frames."""
        buffer = self._data
        buffer += data
        found: list[dict[str, Any]] = []
        at = 0
        while len(buffer) - at >= 4:
            size = int.from_bytes(buffer[at : at + 4], "big")
            if size > self._limit:
                raise FrameError(f"a frame of {size} bytes is over {self._limit}")
            if len(buffer) - at - 4 < size:
                break
            found.append(_decode(bytes(buffer[at + 4 : at + 4 + size])))
            at += 4 + size
        if at:
            del buffer[:at]
        return found


def _decode(body: bytes) -> dict[str, Any]:
    try:
        obj = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise FrameError(f"a frame is not JSON: {e}") from None
    if not isinstance(obj, dict):
        raise FrameError("a frame is not an object")
    return obj


def same(given: bytes, token: bytes) -> bool:
    """Compared in a time that does not tell where they differ."""
    different = len(given) ^ len(token)
    for one, other in zip(given, token, strict=False):
        different |= one ^ other
    return different == 0
