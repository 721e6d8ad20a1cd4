"""What the process that writes lsb.events says, as badmin showstatus has it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading

import pytest

from lavad.replica import protocol as feed
from lavad.services.event_log import EventLog
from tests.support.wait import wait_until


def test_what_keeps_it_from_writing_is_a_notice_until_it_writes() -> None:
    log, (ours, theirs) = EventLog(None), socket.socketpair()
    follower = threading.Thread(target=log.follow, args=(ours, subprocess.Popen(["true"])))
    follower.start()
    why = "lsb.events in /shared is not written: No space left on device"
    for line, told in (("", []), (why, [why]), ("", [])):
        theirs.sendall(f"{line}\n".encode())
        wait_until(lambda told=told: log.notices() == told, 10)  # type: ignore[misc]
    theirs.close()
    follower.join()
    ours.close()


def test_a_master_that_ends_as_the_query_process_first_answers_starts_no_writer() -> None:
    async def ended() -> None:
        queries = asyncio.Event()
        settings = feed.ReplicaSettings(master="h", lsf={}, database="", confdir="", cluster="c")
        running = asyncio.ensure_future(EventLog(None).run(settings, queries))
        await asyncio.sleep(0)
        queries.set()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(5):
                await running
        assert running.cancelled()

    asyncio.run(ended())
