"""Callers that wait for a job and go away leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from lavad.services.waits import Waits
from tests.support.worlds.world import World


async def gone(waiting: Awaitable[object]) -> None:
    """A caller that has begun to wait and goes away."""
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_who_no_longer_waits_is_forgotten() -> None:
    async def story() -> None:
        world = World()
        job, array = world.submit(), world.submit(array="1-3")
        waits = Waits(world.cluster)
        stays = asyncio.ensure_future(waits.wait(job, "finished"))
        for _ in range(5):
            await gone(waits.wait(job, "finished"))
            await gone(waits.wait(job, "started"))
            await gone(waits.array_over(array))
        assert [len(kept) for kept in waits._waiting.values()] == [1]
        assert not waits._arrays
        stays.cancel()
        await asyncio.gather(stays, return_exceptions=True)
        assert not waits._waiting

    asyncio.run(story())
