"""The agent's end of starter.sock: frames out in one write a turn, frames in as they come.

Rule: started by ``spawn`` in a session of its own, so that it outlives the agent. Nothing heavy is imported here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator

from agent.starter.protocol.codec import Json, ProtocolError, text
from agent.starter.protocol.orders import Greet, Order, write_order
from agent.starter.protocol.reports import Report, find_report
from agent.starter.protocol.version import PROTOCOL
from agent.starter.wire.frames import FrameError, FrameReader, frame, parsed
from proto.unixpath import connect as connect_socket
from proto.unixpath import reachable

CONNECT_WAIT = 10.0
ANSWER_WAIT = 2
"""Seconds."""
_ENTRY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "starter", "__main__.py")


def answers(path: str) -> bool:
    """Whether a starter listens there; one whose queue stays full, as it hangs, is as none."""
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            connect_socket(sock, path, ANSWER_WAIT)
        except OSError:
            return False
    return True


_spawned: list[subprocess.Popen[bytes]] = []
"""Starters that this process has started and not reaped yet."""


def spawn(host: str, folder: str, path: str, run_dir: str, log: str) -> subprocess.Popen[bytes]:
    """Start a starter, detached from this process. What keeps it from starting is in its log, else in this process's."""
    pidfile = os.path.join(run_dir, f"starter-{host}.pid")
    argv = [sys.executable, "-I", "-S", _ENTRY, "--host", host, "--dir", folder, "--socket", path, "--pidfile", pidfile]
    null = subprocess.DEVNULL
    with contextlib.ExitStack() as stack:
        said: int | None = null
        if log:
            argv += ["--log", log]
            try:
                said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
                stack.callback(os.close, said)
            except OSError:
                said = None  # where this process writes
        process = subprocess.Popen(argv, stdin=null, stdout=null, stderr=said, start_new_session=True, cwd="/")
    _spawned.append(process)
    return process


def reap() -> None:
    """Reap the starters that this process has started and that have ended."""
    _spawned[:] = [process for process in _spawned if process.poll() is None]


def encode(order: Json) -> bytes:
    """As ``codec.text``, several times faster; that one encodes what is not valid Unicode (names of files)."""
    import msgspec

    try:
        return msgspec.json.encode(order)
    except UnicodeEncodeError:
        return text(order)


def decode(body: bytes) -> Json:
    """As ``frames.parsed``, several times faster; that one reads what is not valid Unicode, and raises FrameError."""
    import msgspec

    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return parsed(body)
    return found if isinstance(found, dict) else parsed(body)


class StarterLink:
    """A connection to the starter."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader()
        self._out: list[bytes] = []

    def put(self, order: Order) -> None:
        """An order, sent at the next flush. ValueError when it cannot be encoded, or is too large for a frame."""
        self._out.append(frame(encode(write_order(order))))

    def flush(self) -> None:
        """Send the orders of this turn."""
        if self._out:
            self._writer.write(b"".join(self._out))
            self._out.clear()

    async def reports(self) -> AsyncIterator[Report]:
        """What the starter says, until its end of the connection is gone."""
        while True:
            try:
                data = await self._reader.read(1 << 18)
                found = [report for body in self._frames.bodies(data) if (report := find_report(decode(body))) is not None]
            except (OSError, FrameError, ProtocolError):
                return
            if not data:
                return
            for one in found:
                yield one

    def close(self) -> None:
        """Close the connection; the starter and its parts go on."""
        self._writer.close()


async def connect(path: str) -> StarterLink:
    """Connect and greet; OSError when nobody listens within CONNECT_WAIT seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CONNECT_WAIT
    while True:
        try:
            with reachable(path) as short:
                link = StarterLink(*await asyncio.open_unix_connection(short, limit=1 << 20))
            break
        except OSError:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(0.02)
    link.put(Greet(PROTOCOL))
    link.flush()
    return link
