"""What a daemon tells systemd (sd_notify(3)): that it is ready, that it is alive, that it stops.

Rule: where nobody asks (no NOTIFY_SOCKET) nothing is sent; nothing that goes wrong here is an error. ``lavad`` has the same in
``services.watchdog``, as it cannot import this.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import MutableMapping


class Notify:
    """The service manager of this process. Its variables are taken out of the environment: they are not for children."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        self._address = environ.pop("NOTIFY_SOCKET", "")
        pid, microseconds = environ.pop("WATCHDOG_PID", ""), environ.pop("WATCHDOG_USEC", "")
        asked = microseconds.isdecimal() and pid in ("", str(os.getpid()))
        self.every = int(microseconds) / 1e6 / 3 if self._address and asked else 0.0
        """Seconds between beats, a third of what the unit allows (WatchdogSec); 0: none are wanted."""
        self._next = 0.0

    def tell(self, state: str) -> None:
        """READY=1, STOPPING=1, WATCHDOG=1 …"""
        if not self._address:
            return
        name = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.sendto(state.encode(), name)

    def beat(self) -> None:
        """To be called in each turn of a loop: says that it lives, when that is due."""
        if self.every and time.monotonic() >= self._next:
            self._next = time.monotonic() + self.every
            self.tell("WATCHDOG=1")
