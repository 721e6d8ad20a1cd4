"""What all hosts of a large job are told alike, compressed once: each of N hosts is told the names of all N."""

from __future__ import annotations

import zlib
from functools import lru_cache

LARGE = 1024
"""Bytes from which it is packed."""


@lru_cache(maxsize=8)
def packed(alike: bytes) -> bytes:
    """What ``Order.packed`` is for an Order that says this alone; b"" where that is not worth it."""
    return zlib.compress(alike) if len(alike) >= LARGE else b""
