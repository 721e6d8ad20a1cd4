"""Orders to the starter, gathered over a turn: starts together, in order with the others.

Rule: the starter's sequence only grows; it is the master's, with room below it for parts that the agent itself adds. A part that
cannot be encoded, or is too large for a frame, is returned by ``failed`` and holds up nothing else.
"""

from __future__ import annotations

import logging
from typing import cast

import msgspec

from agent.starter.protocol.codec import Json
from agent.starter.protocol.orders import Forget, Order, Start
from agent.starter.protocol.part import PartSpec, write_part
from agent.starter_client.older import for_protocol_1
from agent.starter_client.starterlink import StarterLink, encode
from agent.starter_client.starts import SEQUENCE_BITS
from agent.starter_client.templates import Templates

FULL_FRAME = 4 << 20
"""Bytes of parts and templates from which a frame takes no more."""
LARGEST_PART = 16 << 20
"""Bytes of a part without its template."""
MOST_KEPT = 10_000
"""Orders kept while no starter is connected."""
log = logging.getLogger("lava-agent")


class Outgoing:
    """Queues orders; those made while no starter is connected go to the next one, which knows its parts from disk."""

    def __init__(self) -> None:
        self.sequence = 0
        self._link: StarterLink | None = None
        self._starts: list[tuple[int, PartSpec, PartSpec]] = []
        """The master's sequence, the template, the part."""
        self._kept: list[Order] = []
        self._forgotten: list[str] = []
        self._failed: list[tuple[str, str]] = []
        self._templates = Templates()
        self.protocol = 1
        """The starter's. To one of 1 each order brings its own templates, and scripts stand in the parts."""

    def up(self, link: StarterLink, sequence: int, protocol: int) -> None:
        """A starter greeted with its high-water mark and its protocol."""
        self._link = link
        self.protocol = protocol
        self._templates.forget()
        self.sequence = max(self.sequence, sequence)
        self._pack()  # what was ordered for a part since is of no use before its start
        kept, self._kept = self._kept, []
        for order in kept:
            self.put(order)

    def down(self) -> None:
        """The connection is gone."""
        self._link = None

    def put(self, order: Order) -> None:
        """An order, behind the starts so far."""
        self._pack()
        if self._link is None:
            if len(self._kept) < MOST_KEPT:
                self._kept.append(order)
            return
        try:
            self._link.put(order)
        except ValueError as e:
            log.error("%s is not sent to the starter: %s", type(order).__name__, e)

    def forget(self, uid: str) -> None:
        """The starter need not know this part any more; sent at the end of the turn."""
        self._forgotten.append(uid)

    def waiting(self) -> set[str]:
        """The uids of parts that no starter was told of yet."""
        return {part.uid for *_, part in self._starts}

    def start(self, sequence: int, template: PartSpec, part: PartSpec) -> None:
        """A part and the template that it was made of; ``sequence`` is the master's, 0 for an own part."""
        self._starts.append((sequence, template, part))

    def failed(self) -> list[tuple[str, str]]:
        """Parts that could not be sent since the last call: uid and why."""
        found, self._failed = self._failed, []
        return found

    def flush(self) -> None:
        """The end of a turn."""
        if self._forgotten:
            forgotten, self._forgotten = self._forgotten, []
            self.put(Forget(tuple(forgotten)))
        self._pack()
        if self._link is not None:
            self._link.flush()

    def _pack(self) -> None:
        if not self._starts or self._link is None:
            return
        batch, self._starts = self._starts, []
        highest, size, bodies = 0, 0, list[bytes]()
        for sequence, template, part in batch:
            highest = max(highest, sequence)
            try:
                body = self._encoded(template, part)
            except Exception as e:
                # one part must not prevent others from starting; a plain ValueError says what is wrong with this one
                if type(e) is not ValueError:
                    log.exception("part %s cannot be sent to the starter", part.uid)
                self._failed.append((part.uid, str(e) if type(e) is ValueError else repr(e)))
                continue
            bodies.append(body)
            size += len(body)
            if size + self._templates.size > FULL_FRAME:
                self._send(self._link, highest, bodies)
                size, bodies = 0, []
        if bodies:
            self._send(self._link, highest, bodies)

    def _encoded(self, template: PartSpec, part: PartSpec) -> bytes:
        older = self.protocol < 2
        if older and part.jobfile is not None:
            part = part._replace(jobfile=part.jobfile._replace(text=part.script))
        written = write_part(part, template, self._templates.name_of(template))
        body = encode(for_protocol_1(written) if older else written)
        if len(body) > LARGEST_PART:
            raise ValueError(f"its description has {len(body)} bytes, at most {LARGEST_PART}")
        return body

    def _send(self, link: StarterLink, highest: int, bodies: list[bytes]) -> None:
        self.sequence = max(self.sequence + 1, highest << SEQUENCE_BITS)
        # what is encoded already stands for the objects that it was made of
        templates = {name: cast(Json, msgspec.Raw(body)) for name, body in self._templates.added.items()}
        parts = tuple(cast(Json, msgspec.Raw(body)) for body in bodies)
        link.put(Start(self.sequence, parts, templates, tuple(self._templates.dropped)))
        self._templates.sent()
        if self.protocol < 2:
            self._templates.forget()
