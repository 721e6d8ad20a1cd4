"""When what waits for the master is sent, and when a new stream is tried."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable

import pytest

from agent.master.pacing import CHUNK_PAUSE, FIRST_PAUSE, LONGEST_PAUSE, SEND_PAUSE, STEADY, Pacing, pause_after

Story = Callable[[Pacing], Awaitable[None]]
_Ready = list[tuple[selectors.SelectorKey, int]]


class NoWaiting(selectors.DefaultSelector):
    """Where a loop would wait, its time passes at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> _Ready:
        self.now += timeout or 0.0
        return super().select(0)


def sent_in(story: Story) -> list[float]:
    """Seconds after the first message at which the further ones are sent."""

    async def main() -> list[float]:
        pacing, at = Pacing(), list[float]()
        loop = asyncio.get_running_loop()

        async def send() -> None:
            while True:
                await pacing.wait()
                at.append(loop.time())

        sending = asyncio.create_task(send())
        pacing.want()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await story(pacing)
        await asyncio.sleep(1)
        sending.cancel()
        return [one - at[0] for one in at[1:]]

    selector = NoWaiting()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def test_what_comes_soon_after_a_message_goes_together():
    async def story(pacing: Pacing) -> None:
        pacing.want()
        await asyncio.sleep(SEND_PAUSE / 2)
        pacing.want()

    assert sent_in(story) == [pytest.approx(SEND_PAUSE)]


def test_what_comes_later_goes_at_once():
    async def story(pacing: Pacing) -> None:
        await asyncio.sleep(10 * SEND_PAUSE)
        pacing.want()

    assert sent_in(story) == [pytest.approx(10 * SEND_PAUSE)]


def test_what_may_wait_waits_longer():
    async def story(pacing: Pacing) -> None:
        pacing.want(may_wait=True)
        await asyncio.sleep(2 * SEND_PAUSE)
        pacing.want(may_wait=True)

    assert sent_in(story) == [pytest.approx(CHUNK_PAUSE)]


def test_what_may_not_wait_any_more_does_not():
    async def story(pacing: Pacing) -> None:
        pacing.want(may_wait=True)
        await asyncio.sleep(3 * SEND_PAUSE)
        pacing.want()
        await asyncio.sleep(SEND_PAUSE / 2)
        pacing.want(may_wait=True)

    assert sent_in(story) == [pytest.approx(3 * SEND_PAUSE), pytest.approx(3 * SEND_PAUSE + CHUNK_PAUSE)]


def test_streams_that_end_at_once_are_tried_less_and_less_often() -> None:
    """A master that cannot serve a host is not asked again ten times a second; one that has served for a while is."""
    pauses = [0.0]
    for _ in range(8):
        pauses.append(pause_after(pauses[-1], 0.01))
    assert pauses[1] == FIRST_PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    assert pause_after(LONGEST_PAUSE, STEADY) == FIRST_PAUSE
