"""What is kept of callers who send more than is asked for, or not all of it, or take no answers: little of each."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tracemalloc
from pathlib import Path

import pytest

from proto.daemon import callers
from proto.daemon.callers import LARGE, MOST_MIDDLE, SMALL, CallerReader, Callers, pack

MANY = 200
MOST = 8 << 20
"""Bytes; they were 50 MB of the first kind, 13 of the second and third."""
QUIET = 20
"""Rounds in which nothing more can be sent."""


KINDS = {"too much": pack(b"ask") + bytes(1 << 20), "too little": pack(bytes(LARGE))[:-1], "no answer taken": pack(b"") * 9999}


@pytest.mark.parametrize("sent", KINDS.values(), ids=KINDS)
def test_little_is_kept_of_each_caller(tmp_path: Path, sent: bytes) -> None:
    async def story() -> int:
        limits = Callers()

        async def serve(reader: CallerReader, writer: asyncio.StreamWriter) -> None:
            async for body in limits.frames(reader, 1):
                with reader.answering():
                    if body:
                        await asyncio.Event().wait()
                    writer.write(bytes(100))
                    await writer.drain()

        path = str(tmp_path / "s")
        server = await callers.listen(path, serve, MANY)
        with contextlib.ExitStack() as stack:
            links = {stack.enter_context(socket.socket(socket.AF_UNIX)): memoryview(sent) for _ in range(MANY)}
            for link in links:
                link.setblocking(False)
                link.connect(path)
            tracemalloc.start()
            stack.callback(tracemalloc.stop)
            quiet = 0
            while quiet < QUIET:
                quiet += 1
                for link, left in links.items():
                    with contextlib.suppress(BlockingIOError):
                        if left:
                            links[link] = left[link.send(left) :]
                            quiet = 0
                await asyncio.sleep(0)
            kept, _ = tracemalloc.get_traced_memory()
        server.close()
        return kept

    assert asyncio.run(story()) < MOST


def test_those_that_come_slowly_hold_up_their_own_users_larger_ones_only() -> None:
    async def read() -> None:
        known = Callers()
        frame = pack(bytes(SMALL + 1))

        def begun(uid: int, data: bytes) -> tuple[CallerReader, asyncio.Future[bytes | None]]:
            reader = CallerReader()
            reader.feed_data(data)
            return reader, asyncio.ensure_future(anext(known.frames(reader, uid)))

        slow = [begun(1, frame[:-1]) for _ in range(MOST_MIDDLE)]
        await asyncio.sleep(0)
        _, waits = begun(1, frame)
        for uid, data in ((1, pack(bytes(SMALL))), (2, frame)):
            assert await begun(uid, data)[1] == data[4:]
        assert not waits.done()
        slow[0][0].feed_data(b"\0")
        assert await slow[0][1] == await waits == bytes(SMALL + 1)
        for _, one in slow[1:]:
            one.cancel()

    asyncio.run(read())
