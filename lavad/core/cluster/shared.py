"""Equal values of many records as one object: what a million jobs have in common is in memory once."""

from __future__ import annotations

from typing import TypeVar

import msgspec

MOST = 200
"""How many values are remembered; then all are forgotten."""
LONGEST = 1000
"""Characters of a string that is remembered."""
T = TypeVar("T", bound=msgspec.Struct)
_set = msgspec.structs.force_setattr


class Shared:
    """The values of records seen lately: strings, whole numbers and times."""

    __slots__ = ("_seen", "_times")

    def __init__(self) -> None:
        self._seen: dict[object, object] = {}
        self._times: dict[object, object] = {}
        """Apart, as 1 and 1.0 are the same key."""

    def share(self, record: T, *fields: str) -> None:
        """Let fields of a new record be the equal objects that others have already."""
        for field in fields:
            value = getattr(record, field)
            seen = self._times if value.__class__ is float else self._seen
            known = seen.get(value)
            if known is None:
                if len(seen) >= MOST:
                    seen.clear()
                if not isinstance(value, str) or len(value) <= LONGEST:
                    seen[value] = value
            elif known is not value:
                _set(record, field, known)
