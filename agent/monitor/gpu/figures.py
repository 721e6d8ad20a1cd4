"""Figures of NVML that can be true.

Broken boards and drivers give memory of 0 or 2^64-1 bytes, use of 255 percent, temperatures below zero. The log names each
such figure once; everybody else is told that it is not known.
"""

from __future__ import annotations

import logging

MB = 1 << 20
MOST_MEMORY = 1 << 44
"""Bytes; no GPU has 16 TB."""
MOST_CELSIUS = 150
MOST_WATTS = 5000
log = logging.getLogger("lava-agent")


class Figures:
    """Remembers what the log was told."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def within(self, about: str, what: str, value: int | None, low: int, high: int) -> int | None:
        """The value, None where there is none or it is not from ``low`` to ``high``."""
        if value is None or low <= value <= high:
            return value
        self.tell(about, what, f"{what} of {value}")
        return None

    def tell(self, about: str, key: str, text: str) -> None:
        """Name something of a GPU in the log, once."""
        if (about, key) not in self._told:
            self._told.add((about, key))
            log.warning("GPU %s: %s: this cannot be, and is not used", about, text)

    def percent(self, about: str, what: str, value: int | None) -> int:
        """From 0 to 100, -1: not known."""
        found = self.within(about, what, value, 0, 100)
        return -1 if found is None else found

    def memory(self, about: str, what: str, value: int | None, least: int = 0) -> int:
        """Bytes as MB, -1: not known."""
        found = self.within(about, what, value, least, MOST_MEMORY)
        return -1 if found is None else found // MB
