"""The page's way to the master: one that has stopped, but holds its socket, is left for another, or said to be away."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.full_socket import FullSocket
from tests.support.wait import SLOW
from web import master
from web.master import Master
from web.problems import Problem

LONG = 20 * SLOW


class Lavad:
    """A socket of this name; one that ``answers`` says yes to everything."""

    def __init__(self, folder: Path, name: str, answers: bool) -> None:
        self._place = folder / f"{name}.sock"
        self._answers = answers
        self.asked = 0

    async def start(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._serve, self._place)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while size := await reader.read(4):
            await reader.readexactly(int.from_bytes(size, "big"))
            self.asked += 1
            frame = json.dumps({"ok": {"job": 7}, "exit": 0}).encode()
            if self._answers:
                writer.write(len(frame).to_bytes(4, "big") + frame)
        writer.close()


def test_a_master_that_has_stopped_is_left_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master, "PATIENCE", 0.2)
    stopped, other = Lavad(tmp_path, "lavad", False), Lavad(tmp_path, "lavad-2", True)

    async def asked() -> None:
        async with await stopped.start(), await other.start():
            page = Master(str(tmp_path))
            for _ in range(3):
                assert await page.ask({"ask": "kill"}) == {"job": 7}
            assert await page.is_there()

    asyncio.run(asyncio.wait_for(asked(), LONG))
    assert (stopped.asked, other.asked) == (1, 4)


def test_a_master_that_has_stopped_is_said_to_be_away_after_one_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master, "PATIENCE", 0.2)
    stopped = Lavad(tmp_path, "lavad", False)

    async def asked() -> int:
        async with await stopped.start():
            with pytest.raises(Problem, match="The master does not answer now") as raised:
                await Master(str(tmp_path)).ask({"ask": "kill"})
        return raised.value.status

    assert asyncio.run(asyncio.wait_for(asked(), LONG)) == 503
    assert stopped.asked == 1


def test_whether_the_master_is_there_is_known_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master, "HEALTHY", 0.2)

    async def asked() -> bool:
        async with await Lavad(tmp_path, "lavad", False).start():
            return await Master(str(tmp_path)).is_there()

    assert not asyncio.run(asyncio.wait_for(asked(), LONG))


def test_the_page_waits_for_its_turn_where_many_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue that others have filled sends nobody away."""
    monkeypatch.setattr(master, "TRIES", 1)
    frame = json.dumps({"ok": {"job": 7}, "exit": 0}).encode()

    def serve(full: FullSocket) -> None:
        with full.next() as link:
            link.recv(1 << 16)
            link.sendall(len(frame).to_bytes(4, "big") + frame)

    async def asked() -> None:
        with FullSocket(tmp_path / "lavad.sock") as full:
            answer = asyncio.create_task(Master(str(tmp_path)).ask({"ask": "kill"}))
            await asyncio.sleep(0)
            await asyncio.to_thread(serve, full)
            assert await answer == {"job": 7}

    asyncio.run(asyncio.wait_for(asked(), LONG))
