"""Until when leased parts of this host may run: what a master's answers to greetings and heartbeats grant.

Rule: a lease counts from the moment when the answered message was sent, never from when the answer came.
"""

from __future__ import annotations

import msgspec


class Granted(msgspec.Struct, frozen=True, gc=False):
    """Times in seconds of CLOCK_BOOTTIME."""

    sent: float
    """When the newest message that a master answered was sent."""
    until: float = 0.0
    """No lease ends before then (badmin lease extend)."""

    def greeted(self, sent: float) -> Granted:
        """A master has welcomed the greeting sent at that time."""
        return Granted(sent, self.until)

    def answered(self, sent: float, extended: float) -> Granted:
        """A heartbeat was answered; no lease ends within ``extended`` seconds from when it was sent."""
        return Granted(max(self.sent, sent), max(self.until, sent + extended))

    def deadline(self, lease: float) -> float | None:
        """When a part with a lease of so many seconds is ended; None: it has none."""
        return max(self.sent + lease, self.until) if lease > 0 else None
