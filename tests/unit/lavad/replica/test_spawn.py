"""What a process that waits is sent before anybody else speaks to it."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys

import pytest

from lavad.replica import spawn, started
from lavad.replica.spawn import Spawned

LARGE = b"x" * (4 << 20)
"""More than a socket takes at once."""
READS = f"""
import socket, sys
link, left = socket.socket(fileno=0), {len(LARGE)}
while left:
    left -= len(link.recv(1 << 16))
print("read")
"""


def spawned(code: str, seed: bytes | None) -> Spawned:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-I", "-c", code], stdin=theirs.fileno(), stdout=subprocess.PIPE)
    theirs.close()
    return Spawned(process, ours, seed)


def test_a_seed_is_sent_while_its_process_reads() -> None:
    one = spawned(READS, LARGE)
    with one.link:
        assert one.send_seed()
        assert one.process.communicate()[0] == b"read\n"


def test_a_process_that_does_not_take_its_seed_has_none_and_ends() -> None:
    one = spawned("import sys; sys.stdin.read(1)", LARGE)
    with one.link:
        one.link.shutdown(socket.SHUT_WR)
        assert not one.send_seed()
        one.process.communicate()


def test_what_was_sent_is_not_sent_again() -> None:
    """And who has nothing to start from says so."""
    for seed, seeded in ((b"", True), (None, False)):
        one = spawned("import socket; print(len(socket.socket(fileno=0).recv(1)))", seed)
        with one.link:
            assert one.send_seed() is seeded
        assert one.process.communicate()[0] == b"0\n"


def test_a_process_for_which_there_is_no_room_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The master goes on meanwhile: it ended, with all that it serves."""
    begun, tries = spawned("", None), []

    def start(module: str, _: object) -> Spawned:
        tries.append(module)
        if len(tries) < 3:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return begun

    monkeypatch.setattr(spawn, "_start", start)
    monkeypatch.setattr(started, "AGAIN", 0.0)
    with begun.link:
        assert asyncio.run(started.started("lavad.processes.query", None)) is begun
        begun.process.communicate()
    assert len(tries) == 3
