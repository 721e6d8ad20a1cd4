"""Orders to the starter, gathered over a turn: starts in one frame, in order with the others.

Rule: the starter's sequence only grows; it is the master's, with room below it for parts that the agent itself adds.
"""

from __future__ import annotations

from agent.starter.protocol.codec import write_over
from agent.starter.protocol.orders import Forget, Order, Start
from agent.starter.protocol.part import NOTHING, PartSpec, write_part
from agent.starter_client.starterlink import StarterLink
from agent.starter_client.starts import SEQUENCE_BITS


class Outgoing:
    """Queues orders; those made while no starter is connected go to the next one, which knows its parts from disk."""

    def __init__(self) -> None:
        self.sequence = 0
        self._link: StarterLink | None = None
        self._starts: list[tuple[int, PartSpec, PartSpec]] = []
        """The master's sequence, the template, the part."""
        self._kept: list[Order] = []
        self._forgotten: list[str] = []

    def up(self, link: StarterLink, sequence: int) -> None:
        """A starter greeted with its high-water mark."""
        self._link = link
        self.sequence = max(self.sequence, sequence)
        self._pack()  # what was ordered for a part since is of no use before its start
        for order in self._kept:
            link.put(order)
        self._kept.clear()

    def down(self) -> None:
        """The connection is gone."""
        self._link = None

    def put(self, order: Order) -> None:
        """An order, behind the starts so far."""
        self._pack()
        if self._link is not None:
            self._link.put(order)
        else:
            self._kept.append(order)

    def forget(self, uid: str) -> None:
        """The starter need not know this part any more; sent at the end of the turn."""
        self._forgotten.append(uid)

    def waiting(self) -> set[str]:
        """The uids of parts that no starter was told of yet."""
        return {part.uid for *_, part in self._starts}

    def start(self, sequence: int, template: PartSpec, part: PartSpec) -> None:
        """A part and the template that it was made of; ``sequence`` is the master's, 0 for an own part."""
        self._starts.append((sequence, template, part))

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
        self.sequence = max(self.sequence + 1, max(sequence for sequence, *_ in batch) << SEQUENCE_BITS)
        templates = {str(id(template)): template for _, template, _ in batch}
        parts = tuple(write_part(part, template, str(id(template))) for _, template, part in batch)
        written = {name: write_over(NOTHING, template) for name, template in templates.items()}
        self._link.put(Start(self.sequence, parts, written))
