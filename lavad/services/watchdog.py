"""What lavad tells systemd (sd_notify(3)): that it is ready, that it lives, that it stops.

Rule: it lives while what it is there for lives: the loop, and on the master in office the engine with its thread for commits.
Where nobody asks (no NOTIFY_SOCKET) nothing is sent, and nothing that goes wrong here is an error. The agent and the starter
have the same in ``starter.system.notify``, which lavad cannot import.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, MutableMapping

LONGEST_PAUSE = 3600.0


class Watchdog:
    """The service manager of this process. Its variables are taken out of the environment: they are not for children."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        self._address = environ.pop("NOTIFY_SOCKET", "")
        pid, microseconds = environ.pop("WATCHDOG_PID", ""), environ.pop("WATCHDOG_USEC", "")
        asked = microseconds.isdecimal() and pid in ("", str(os.getpid()))
        self.every = int(microseconds) / 1e6 / 3 if self._address and asked else 0.0
        """Seconds between beats, a third of what the unit allows (WatchdogSec); 0: none are wanted."""

    def tell(self, state: str) -> None:
        """READY=1, STOPPING=1, WATCHDOG=1 …"""
        if not self._address:
            return
        name = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.sendto(state.encode(), name)

    async def run(self, lives: Callable[[], Awaitable[None]]) -> None:
        """Beat for ever, each time after ``lives`` has returned."""
        while True:
            await lives()
            if self.every:
                self.tell("WATCHDOG=1")
            await asyncio.sleep(self.every or LONGEST_PAUSE)
