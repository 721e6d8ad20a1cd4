"""What a daemon saved for itself as JSON. Rule: a file that a disk has damaged keeps no daemon from starting."""

from __future__ import annotations

from typing import TypeVar

import msgspec

DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError)
"""What msgspec raises for bytes that are not what was written."""
Kind = TypeVar("Kind")


def read_saved(path: str, kind: type[Kind]) -> Kind | None:
    """What was saved there; None where there is nothing, or it cannot be read."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=kind)
    except (OSError, *DAMAGED):
        return None
