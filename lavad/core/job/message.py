"""A message that was posted to a job."""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A message posted to a job (bpost); as in LSF the newest of each number is kept."""

    number: int
    text: str
    at: float
    by: str = ""
    body: str = ""
    """In records of older versions: the attached data."""
    attached: int = 0
    """The key under which the store holds the data attached to it (``bpost -a``); 0: there is none."""
    size: int = 0
    """Characters of that data."""
