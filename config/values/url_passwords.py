"""Passwords in the URLs of databases, which nobody is shown."""

from __future__ import annotations

import re

_OF_USER = re.compile(r"(://[^:/@\s]*):[^@\s]+@")
_OPTION = re.compile(r"([?&]password=)[^&\s]+", re.IGNORECASE)


def without_password(url: str) -> str:
    """A URL with ``***`` for its password, before the host or among its options; any other text as it is."""
    return _OPTION.sub(r"\1***", _OF_USER.sub(r"\1:***@", url))
