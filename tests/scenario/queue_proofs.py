"""The table of proofs: a parameter of lsb.queues, lines of a queue with it, and a story that it makes come out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.scenario.queue_site import QueueSite

Story = Callable[[QueueSite], None]


class Proof(NamedTuple):
    parameters: tuple[str, ...]
    lines: str
    others: str
    story: Story


class Proofs(dict[str, Proof]):
    """Proofs by the name of their story."""

    def of(self, parameters: str, lines: str, others: str = "") -> Callable[[Story], Story]:
        """Add a story as the proof of these parameters."""

        def add(story: Story) -> Story:
            self[story.__name__] = Proof(tuple(parameters.split()), lines, others, story)
            return story

        return add

    def play(self, name: str, folder: Path) -> None:
        """The story of one proof, on a site of its own."""
        proof = self[name]
        site = QueueSite(folder, proof.lines, proof.others)
        assert site.problems == []
        proof.story(site)


def other(name: str, lines: str = "") -> str:
    """One more queue."""
    return f"Begin Queue\nQUEUE_NAME = {name}\n{lines}\nEnd Queue\n"
