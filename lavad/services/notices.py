"""What administrators should know, and ``badmin showstatus`` says: the lines of all who have any, published when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from lavad.core.plan.volatile import SoftUpdate

PAUSE = 2.0
"""Seconds between two looks."""


class Notices:
    """``sources``: each returns its lines of now."""

    def __init__(self, publish: Callable[[SoftUpdate], None], sources: Iterable[Callable[[], Iterable[str]]]) -> None:
        self._publish = publish
        self._sources = tuple(sources)
        self._said: tuple[str, ...] = ()

    async def run(self) -> None:
        """Look every few seconds."""
        while True:
            self.look()
            await asyncio.sleep(PAUSE)

    def look(self) -> None:
        """Publish the lines where they are others than those last published."""
        said = tuple(line for source in self._sources for line in source())
        if said != self._said:
            self._said = said
            self._publish(SoftUpdate(notices=said))
