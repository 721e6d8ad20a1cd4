"""Connections to a user's server that send nonsense, too much, too slowly or half of it: others are served, nothing is left."""

from __future__ import annotations

import os
import random
import socket
import time
from array import array
from contextlib import suppress
from pathlib import Path
from struct import pack

import pytest

from tests.support.wait import wait_until
from tests.unit.cli.caller import Caller
from tests.unit.cli.native.installed import Installed
from tests.unit.cli.native.test_faults import sockets

CONNECTIONS = 40
ENVIRON = b"PATH=/bin:/usr/bin"


def request(chance: random.Random) -> bytes:
    """A request, or what might be taken for one."""
    body = b"\0".join([b"bsub", b"-V", ENVIRON, b""])
    size, umask, words, variables = 16 + len(body), 0o22, 1, 1
    match chance.randrange(7):
        case 0:
            size = chance.choice([0, 15, size - 1, size + 1, 1 << 31, (1 << 32) - 1])
        case 1:
            umask = chance.choice([1 << 31, (1 << 32) - 1])
        case 2:
            words, variables = chance.choice([(0, 0), (99, 0), ((1 << 32) - 1, (1 << 32) - 1)])
        case 3:
            body = chance.choice([b"no-such\0-V\0", b"\0\0\0\0", b"bsub", b"bsub\0-V\0=x\0=\0A\0", b""])
        case 4:
            body = chance.randbytes(chance.randrange(200_000))
        case 5:
            return chance.randbytes(chance.randrange(40))
    return pack("4I", size, umask, words, variables) + body


def speak(path: Path, chance: random.Random) -> socket.socket | None:
    """One caller; the connection where it stays open."""
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(5.0)
    link.connect(str(path))
    with suppress(OSError):
        if chance.random() < 0.8:
            link.recv(1)
        nothing = os.open(chance.choice(["/dev/null", "/", "/etc/passwd"]), os.O_RDONLY)
        files = array("i", [nothing] * chance.choice([0, 1, 3, 4, 4, 4, 4, 5, 16, 60]))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)] if files else []
        try:
            said = request(chance)
            cut = chance.choice([len(said), len(said), 7, len(said) // 2])
            link.setblocking(False)
            link.sendmsg([said[:cut] or b"x"], rights)
            link.send(said[cut:])
        finally:
            os.close(nothing)
    if chance.random() < 0.2:
        return link
    link.close()
    return None


@pytest.mark.parametrize("seed", range(3))
def test_whatever_one_connection_says_others_are_served(installed: Installed, caller: Caller, seed: int) -> None:
    chance = random.Random(seed)
    installed.start(caller.environ)
    (path,) = sockets(installed)
    (server,) = installed.servers()
    kept = [link for _ in range(CONNECTIONS) if (link := speak(path, chance)) is not None]
    try:
        ran = installed.served("bsub", "-V", environ=caller.environ)
        assert (ran.status, installed.servers()) == (0, [server])
    finally:
        for link in kept:
            link.close()
    wait_until(lambda: len(installed.workers()) <= 3, 30, lambda: f"workers go: {installed.processes()}")
    peak = [line for line in Path(f"/proc/{server}/status").read_text().splitlines() if line.startswith("VmHWM")]
    assert int(peak[0].split()[1]) < 60_000, peak


def test_a_request_that_says_that_it_is_endless_takes_no_memory(installed: Installed, caller: Caller) -> None:
    installed.start(caller.environ)
    (path,) = sockets(installed)
    with socket.socket(socket.AF_UNIX) as link, open("/dev/null") as nothing:
        link.connect(str(path))
        assert link.recv(1) == b"R"
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [nothing.fileno()] * 4))]
        link.sendmsg([pack("4I", (1 << 32) - 1, 0o22, 1, 1)], rights)
        link.settimeout(10.0)
        sent, until = 0, time.monotonic() + 10
        with suppress(OSError):
            while sent < 64 << 20 and time.monotonic() < until:
                sent += link.send(b"x" * 65536)
        assert sent < 1 << 20
