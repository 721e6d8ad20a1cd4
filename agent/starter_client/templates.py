"""The templates that the starter has: each is sent once on a connection, and dropped when others need the room."""

from __future__ import annotations

from typing import NamedTuple

from agent.starter.protocol.codec import write_over
from agent.starter.protocol.part import NOTHING, PartSpec
from agent.starter_client.starterlink import encode

KEPT = 256
KEPT_BYTES = 32 << 20
LARGEST = 40 << 20
"""Bytes of one template; with a full frame and a part below what a frame may have."""


class _Sent(NamedTuple):
    template: PartSpec
    name: str
    size: int


class Templates:
    """Templates by name, the least recently used first. Rule: one is the same only while it is the same object."""

    def __init__(self) -> None:
        self._sent: dict[int, _Sent] = {}
        self._bytes = 0
        self._last = 0
        self.added: dict[str, bytes] = {}
        """Those that the next order must bring, encoded."""
        self.dropped: list[str] = []
        """Those that no order after it has."""

    def name_of(self, template: PartSpec) -> str:
        """The name for parts of the next order. ValueError when the template cannot be encoded, or is too large."""
        sent = self._sent.pop(id(template), None)
        if sent is None:
            body = encode(write_over(NOTHING, template))
            if len(body) > LARGEST:
                raise ValueError(f"what all parts of the job share has {len(body)} bytes, at most {LARGEST}")
            self._last += 1
            sent = _Sent(template, str(self._last), len(body))
            self.added[sent.name] = body
            self._bytes += sent.size
        self._sent[id(template)] = sent
        while len(self._sent) > 1 and (len(self._sent) > KEPT or self._bytes > KEPT_BYTES):
            oldest = self._sent.pop(next(iter(self._sent)))
            self._bytes -= oldest.size
            self.dropped.append(oldest.name)
        return sent.name

    @property
    def size(self) -> int:
        """Bytes that the next order brings."""
        return sum(map(len, self.added.values()))

    def sent(self) -> None:
        """An order with ``added`` and ``dropped`` went out."""
        self.added = {}
        self.dropped = []

    def forget(self) -> None:
        """The starter has none."""
        self.sent()
        self._sent.clear()
        self._bytes = 0
