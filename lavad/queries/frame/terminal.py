"""What of a text may go to a terminal."""

from __future__ import annotations

import re

_CONTROL_BYTES = bytes({*range(32), 127} - {9, 10})
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\udc80-\udc9f]")
"""Control characters, also as bytes that are no UTF-8; separators of lines, and what turns the direction of the text around."""


def shown(text: str) -> str:
    """Text without what a terminal obeys: names and commands of one user are listed on the terminals of others."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data.translate(None, _CONTROL_BYTES)) == len(data) and (len(data) == len(text) or not _OBEYED.search(text)):
        return text
    return _OBEYED.sub("?", text)
