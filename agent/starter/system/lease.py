"""The deadline of a part on this host, in CLOCK_BOOTTIME seconds.

Rule: it is looked at again at least every 5 s, since poll() does not count the time that a machine sleeps.
"""

from __future__ import annotations

from agent.starter.system import kernel

LOOK_AGAIN = 5.0


class Lease:
    """A deadline that can be moved, or none."""

    __slots__ = ("deadline",)

    def __init__(self, deadline: float | None) -> None:
        self.deadline = float(deadline) if deadline is not None else None

    def renew(self, deadline: float) -> None:
        """A leased part gets a new deadline; one without a lease stays without."""
        if self.deadline is not None:
            self.deadline = deadline

    def left(self) -> float | None:
        """Seconds until it passes (0 or less: it has); None without a lease."""
        return None if self.deadline is None else self.deadline - kernel.boottime()
