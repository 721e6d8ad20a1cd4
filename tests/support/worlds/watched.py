"""A bench whose changes go through an engine, and tests that run beside that engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from lavad.engine import Engine
from lavad.store.batch import Batch
from lavad.store.errors import StoreFull
from lavad.store.writer import Store
from tests.support.worlds.bench import Bench


class _Kept:
    """A store that keeps everything, unless it is ``full``."""

    def __init__(self) -> None:
        self.full = False
        self.refused = 0

    def commit(self, batch: Batch) -> tuple[()]:
        if self.full:
            self.refused += 1
            raise StoreFull("store: no room")
        return ()


class Watched:
    """A bench with its engine; a test adds the service that watches."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.store = _Kept()
        self.engine = Engine(self.bench.cluster, cast(Store, self.store), lambda: self.bench.now, {})
        self.said: list[str] = []
        """What the watch has decided."""

    def disk(self, full: bool) -> None:
        """Whether the store refuses from here on; what it was told before is safe."""
        self.bench.cluster.forget_changes()
        self.store.full = full


W = TypeVar("W", bound=Watched)
Story = Callable[[W], Awaitable[None]]


def told_to(world: Callable[[], W]) -> Callable[[Story[W]], Callable[[], None]]:
    """Makes a test of a story about a new world, beside which its engine runs."""

    def told(story: Story[W]) -> Callable[[], None]:
        def run() -> None:
            async def work() -> None:
                watched = world()
                running = asyncio.create_task(watched.engine.run())
                async with asyncio.timeout(60):
                    await story(watched)
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

            asyncio.run(work())

        return run

    return told
