"""Tables of fields that lsload and lshosts share with bhosts: rows of text from a table of named readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from lavad.core.lang.asks import Refused
from lavad.queries.frame import columns
from lavad.queries.frame.options import Options
from lavad.queries.frame.request import Shown, out

Row = TypeVar("Row")


class RowField(msgspec.Struct, Generic[Row], frozen=True):
    """A field; ``value`` gets the row and the unit asked for."""

    name: str
    width: int
    value: Callable[[Row, str], object]
    header: str


def fields(table: Iterable[tuple[str, int, Callable[[Row, str], object]]]) -> dict[str, RowField[Row]]:
    """Names and aliases to fields; the first name of each is its own, and as it is written the title: ``HOST_NAME``, ``r15s``."""
    found: dict[str, RowField[Row]] = {}
    for names, width, value in table:
        title, *aliases = names.split()
        for alias in (title.lower(), *aliases):
            found[alias] = RowField(title.lower(), width, value, title)
    return found


def show(
    command: str, counted: str, known: Mapping[str, RowField[Row]], given: str, options: Options, rows: Iterable[Row]
) -> Iterator[Shown]:
    """The table of -o, or JSON; raises Refused."""
    if "json" in options and "noheader" in options:
        raise Refused(f"{command}: -json and -noheader cannot be used together")
    custom = columns.parse(command, given, known)
    lines = [[str(known[column.name].value(row, column.unit)) for column in custom.columns] for row in rows]
    pieces = (
        columns.json_pieces(command, counted, [columns.record(custom, line) for line in lines])
        if "json" in options
        else columns.table(custom, lines, "noheader" not in options)
    )
    yield from map(out, pieces)
