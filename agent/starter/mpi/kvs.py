"""The key-value space of an MPI job: a copy on every host, made equal at each barrier.

Rule: a get never leaves the host; what was put here since the last barrier is what the other hosts still miss.
"""

from __future__ import annotations

from collections.abc import Mapping

MAX_NAME = 256
MAX_KEY = 64
MAX_VALUE = 1024


class Kvs:
    """One space with a name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._values: dict[str, str] = {}
        self._new: dict[str, str] = {}

    def put(self, key: str, value: str) -> str:
        """Store it; "" or why not."""
        if not key or len(key) > MAX_KEY:
            return "bad_key"
        if len(value) > MAX_VALUE:
            return "value_too_long"
        self._values[key] = value
        self._new[key] = value
        return ""

    def get(self, key: str) -> str | None:
        """The value, from here or from another host up to the last barrier."""
        return self._values.get(key)

    def at(self, index: int) -> tuple[str, str] | None:
        """The pair at a place in the order of arrival."""
        if not 0 <= index < len(self._values):
            return None
        return list(self._values.items())[index]

    def set(self, key: str, value: str) -> None:
        """Store what every host knows without being told."""
        self._values[key] = value

    def take_new(self) -> dict[str, str]:
        """What was put here since the last call."""
        new, self._new = self._new, {}
        return new

    def merge(self, values: Mapping[str, str]) -> None:
        """What all hosts put."""
        self._values.update(values)
