"""Reading fields of job files: each of its kind, or one line that names the field."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from cli.client.context import Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json


_FREE = ("labels", "annotations")
"""Mappings whose fields have names of their writers'."""


class Fields:
    """The fields of one mapping; ``where`` names it in errors."""

    def __init__(self, value: Json, where: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise Fail(f"{where}: this is no mapping of fields")
        self.where = where
        self._value: dict[str, Json] = {str(name): one for name, one in value.items()}
        self._asked: set[str] = set()
        self._parts: dict[str, Fields] = {}
        self._items: dict[str, list[Fields]] = {}

    def __contains__(self, name: str) -> bool:
        return self._value.get(name) is not None

    def fail(self, name: str, why: str) -> Fail:
        """An error about a field."""
        return Fail(f"{self.where}.{name}: {why}")

    def any(self, name: str) -> Json:
        """Whatever it is; None where it is not given."""
        self._asked.add(name)
        return self._value.get(name)

    def text(self, name: str, default: str = "") -> str:
        """A word or a number, as text."""
        value = self.any(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.fail(name, "this is no text")
        return str(value)

    def number(self, name: str, default: int) -> int:
        """A whole number."""
        value = self.any(name)
        if value is None:
            return default
        if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 12:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**31:
            raise self.fail(name, f"{str(value)[:40]} is no whole number")
        return value

    def flag(self, name: str) -> bool:
        """true or false."""
        value = self.any(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        if value in ("true", "false"):
            return value == "true"
        raise self.fail(name, "this is neither true nor false")

    def part(self, name: str) -> Fields:
        """A mapping inside, empty where it is not given; the same each time, so that it knows all that has been asked for."""
        if name not in self._parts:
            self._parts[name] = Fields(self.any(name), f"{self.where}.{name}")
        return self._parts[name]

    def rows(self, name: str) -> list[Json]:
        """A list."""
        value = self.any(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fail(name, "this is no list")
        return value

    def items(self, name: str) -> list[Fields]:
        """A list of mappings; the same each time, as of ``part``."""
        if name not in self._items:
            self._items[name] = [Fields(row, f"{self.where}.{name}[{at}]") for at, row in enumerate(self.rows(name))]
        return self._items[name]

    def words(self, name: str) -> list[str]:
        """A list of words."""
        found = self.rows(name)
        for word in found:
            if isinstance(word, bool | dict | list) or word is None:
                raise self.fail(name, "this is no list of words")
        return [str(word) for word in found]

    def command(self, name: str) -> str:
        """A line for the shell, or a list of words that are run as they are."""
        value = self.any(name)
        return shlex.join(self.words(name)) if isinstance(value, list) else self.text(name)

    def texts(self, name: str) -> dict[str, str]:
        """A mapping of texts."""
        inside = self.part(name)
        found = {}
        for key in inside.names():
            value = inside.any(key)
            found[key] = ("true" if value else "false") if isinstance(value, bool) else inside.text(key)
        return found

    def names(self) -> list[str]:
        """All fields that are given."""
        return list(self._value)

    def others(self, known: Iterable[str] = ()) -> list[str]:
        """The fields that nobody has asked for; who names them has asked."""
        found = [name for name in self._value if name not in self._asked and name not in known]
        self._asked.update(self._value)
        return found

    def skip(self) -> None:
        """It stands for nothing that runs, so that none of its fields has to be named."""
        self._asked.update(self._value)

    def unread(self) -> list[str]:
        """The fields that nobody has asked for, of this mapping and of all that is inside: ``network.subdomain``."""
        found = self.others()
        for name, part in self._parts.items():
            found += [f"{name}.{one}" for one in part.unread()] if name not in _FREE else []
        for name, items in self._items.items():
            found += [f"{name}[{at}].{one}" for at, item in enumerate(items) for one in item.unread()]
        return found

    def refuse_others(self) -> None:
        """An unknown field is a mistake."""
        if others := self.others():
            raise self.fail(others[0][:64], "no such field")
