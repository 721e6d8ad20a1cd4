"""Room for what is on its way: shared, first come first served, and given back by whoever stops waiting."""

from __future__ import annotations

import asyncio

from lavad.hosts.room import Room


def test_who_needs_more_than_there_is_waits_and_nobody_overtakes() -> None:
    async def story() -> None:
        room, order = Room(10), list[str]()

        async def take(name: str, size: int) -> int:
            given = await room.take(size)
            order.append(name)
            return given

        assert await take("a", 6) == 6
        tasks = [asyncio.create_task(take(name, size)) for name, size in (("b", 8), ("c", 2), ("d", 99))]
        await asyncio.sleep(0)
        assert order == ["a"]
        room.give_back(6)
        assert await tasks[0] == 8
        assert await tasks[1] == 2
        assert order == ["a", "b", "c"]
        room.give_back(2)
        room.give_back(8)
        assert await tasks[2] == 10

    asyncio.run(story())


def test_who_stops_waiting_keeps_nobody() -> None:
    async def story() -> None:
        room = Room(10)
        await room.take(10)
        waiting = [asyncio.create_task(room.take(9)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        room.give_back(10)
        waiting[1].cancel()  # which had its room already
        assert await asyncio.wait_for(waiting[2], 5) == 9

    asyncio.run(story())
