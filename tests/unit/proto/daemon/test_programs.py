"""The programs of a daemon."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from proto.daemon import programs


@pytest.fixture
def own_policy() -> Iterator[None]:
    former = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
    yield
    asyncio.set_event_loop_policy(former)


@pytest.mark.usefixtures("own_policy")
def test_one_runs_where_no_thread_can_be_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def status() -> int:
        process = await asyncio.create_subprocess_exec("sh", "-c", "exit 7")
        return await process.wait()

    monkeypatch.setattr(threading.Thread, "start", none_left)
    programs.wait_by_files()
    assert asyncio.run(status()) == 7
