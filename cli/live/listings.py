"""What lava top and lava watch ask: listings of the master as rows of fields."""

from __future__ import annotations

import json
import re

from cli.client.client import Client
from cli.client.context import Refused

Row = dict[str, str]
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
WAITING = ("PEND", "PSUSP")
"""States of jobs that have no host."""
Asked = dict[str, object]
"""Options of a listing."""


def rows(client: Client, command: str, fields: str, options: Asked | None = None, words: list[str] | None = None) -> list[Row]:
    """The records of a listing with -json, by the names of their fields; [] where there is nothing to list. Raises Fail."""
    given = {"json": True, "o": fields, **(options or {})}
    try:
        text = client.text_of({"ask": "query", "command": command, "options": given, "words": words or []}, quiet=True)
        found = json.loads(text)["RECORDS"]
    except (Refused, KeyError, ValueError):
        return []
    return [{name: harmless(str(value)) for name, value in row.items()} for row in found if "ERROR" not in row]


def harmless(text: str) -> str:
    """Without what a terminal obeys: names and output of one user are shown on the terminals of others."""
    return _OBEYED.sub("?", text)


def number(text: str) -> float:
    """The number at the beginning of a field: ``12 Mbytes``, ``100%``, ``218 second(s)``; 0.0 for none."""
    digits = ""
    for letter in text.strip():
        if not (letter.isdigit() or letter in ".-"):
            break
        digits += letter
    try:
        return float(digits)
    except ValueError:
        return 0.0


_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}


def megabytes(text: str) -> float:
    """``24105M``, ``1.2 Gbytes``."""
    letters = text.strip().lstrip("0123456789.- ")
    return number(text) * _UNITS.get(letters[:1].upper(), 1.0)


def hms(seconds: float) -> str:
    """``01:02:03``."""
    whole = max(0, int(seconds))
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
