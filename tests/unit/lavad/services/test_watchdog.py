"""lavad's beats for systemd stop when what it is there for stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path

from lavad.services.watchdog import Watchdog


def test_it_beats_only_while_what_it_is_there_for_answers(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30", "WATCHDOG_PID": str(os.getpid())}
        watchdog = Watchdog(environ)
        assert not environ
        watchdog.tell("READY=1")
        assert manager.recv(99) == b"READY=1"

        async def stuck_after_three() -> int:
            beats = 0
            held = asyncio.Event()

            async def lives() -> None:
                nonlocal beats
                beats += 1
                if beats > 3:
                    held.set()
                    await asyncio.Event().wait()

            running = asyncio.ensure_future(watchdog.run(lives))
            await held.wait()
            await asyncio.sleep(0)
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            return beats

        assert asyncio.run(stuck_after_three()) == 4
        assert [manager.recv(99) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        try:
            raise AssertionError(manager.recv(99))
        except BlockingIOError:
            pass


def test_without_systemd_it_says_nothing() -> None:
    assert Watchdog({}).every == 0.0
    Watchdog({}).tell("READY=1")
