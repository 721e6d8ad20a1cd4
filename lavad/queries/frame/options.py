"""The options of a query, checked against its command's row in ``proto/commands.py``.

Rule: an option that is not known is refused by its name. Flags may be glued (``-wa``, ``-aJ NAME``).
"""

from __future__ import annotations

from collections.abc import Mapping

from lavad.core.lang.asks import OptionValue, Refused
from proto.commands import Command


class Options:
    """A query's options. Raises Refused for one that the command has not, and for a value that is missing."""

    def __init__(self, row: Command, given: Mapping[str, OptionValue]) -> None:
        self.command = row.name
        flags, valued = row.options_sent()
        self._flags = frozenset(flags)
        self._valued = frozenset(valued)
        self._loose = frozenset(row.loose.split())
        self._values: dict[str, OptionValue] = {}
        for name, value in given.items():
            self._take(name, value)

    def _take(self, name: str, value: OptionValue) -> None:
        if value is False:
            return
        if name in self._flags or name in self._loose:
            self._values[name] = value
        elif name in self._valued:
            if value is True:
                raise Refused(f"{self.command}: option requires an argument -- '{name}'")
            self._values[name] = value
        elif len(name) > 1 and self._glued(name, value is True):
            for letter in name[:-1]:
                self._values[letter] = True
            self._take(name[-1], value)
        else:
            raise Refused(f"{self.command}: option -{name} is not supported by lava")

    def _glued(self, name: str, alone: bool) -> bool:
        known = self._flags | self._loose
        last = known if alone else self._valued | self._loose
        return all(letter in known for letter in name[:-1]) and name[-1] in last

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def any(self, *names: str) -> bool:
        """Whether one of these is given."""
        return any(name in self._values for name in names)

    def find(self, name: str) -> str | None:
        """An option's argument, the last one where it is repeated; None if it is not given or has none."""
        value = self._values.get(name)
        if isinstance(value, list):
            value = value[-1] if value else None
        return value if isinstance(value, str) else None

    def text(self, name: str) -> str:
        """An option's argument, "" if it is not given."""
        return self.find(name) or ""

    def words(self, name: str) -> list[str]:
        """An option's argument as words."""
        return self.text(name).split()
