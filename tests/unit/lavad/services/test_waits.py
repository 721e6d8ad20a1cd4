"""Callers that wait for a job and go away leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from msgspec.structs import replace

from lavad.core.job.job import Job, Outcome
from lavad.core.lang.states import JobState, TermReason
from lavad.services.waits import Waits, answer_for
from tests.support.worlds.world import World


async def gone(waiting: Awaitable[object]) -> None:
    """A caller that has begun to wait and goes away."""
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_who_waited_is_told_how_and_why_it_ended() -> None:
    outcome = Outcome(at=1.0, status=9, reason=TermReason.TERM_OWNER)
    job = Job(key=1, spec=1, name="a", submitted=0.0, state=JobState.EXIT, outcome=outcome)
    assert answer_for(job) == {
        "state": "EXIT",
        "status": 9,
        "host": "",
        "why": "",
        "reason": "TERM_OWNER",
    }
    assert "reason" not in answer_for(replace(job, state=JobState.DONE, outcome=Outcome(at=1.0)))


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
