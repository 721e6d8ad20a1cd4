"""Which lava this is: the only place that says so. pyproject.toml reads VERSION from here."""

VERSION = "0.1.0"
RELEASED = "Nov 20 2026"
PRODUCT = f"lava {VERSION}, {RELEASED}"
"""What ``-V`` and lsid say."""

PROTOCOL = 2
"""Counts the changes of what daemons and commands say to each other. Raised with each release that changes any of it."""
OLDEST = 1
"""The oldest one that this lava works with: that of the release before. Those that name none are 1."""


def why_not_protocol(who: str, theirs: int, me: str, oldest: int = OLDEST) -> str:
    """Why ``who`` cannot be worked with, in one line that names both; "" if it can. ``theirs`` is 0 where none was named."""
    theirs = theirs or 1
    if theirs < oldest:
        return f"{who} speaks protocol {theirs}, {me} of lava {VERSION} speaks {oldest} to {PROTOCOL}: upgrade {who}"
    return ""
