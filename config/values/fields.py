"""From a row of cells to the fields of a record, by a table of parameter name -> parser.

Rule: the field's name is the parameter's in lower case (`JL/U` -> `jl_u`), so a table needs no second name.
"""

from collections.abc import Collection, Mapping
from typing import Any

from config.model.problems import Problems
from config.text.sections import Cell, Row
from config.values import values as v
from config.values import without_effect

Table = Mapping[str, v.Parser]
Fields = dict[str, Any]
"""Fields of a record by name, as their parsers gave them; the record says of which type each is."""

OTHER_NAMES = {
    "PROCLIMIT": "TASKLIMIT",
    "SWPLIMIT": "SWAPLIMIT",
    "QUEUE_DESCRIPTION": "DESCRIPTION",
    "JOBS_PER_SCHED": "JOBS_PER_SCHED_CYCLE",
    "RESOURCE_RESERVE_PER_SLOT": "RESOURCE_RESERVE_PER_TASK",
}
"""Older spellings that LSF still reads."""


def fill(row: Row, table: Table, scope: v.Scope, problems: Problems, owner: str, others: Collection[str] = ()) -> Fields:
    """The row's known parameters as fields. `others` are names (upper case) that the caller reads itself."""
    fields: Fields = {}
    for key, cell in row.cells.items():
        key = OTHER_NAMES.get(key, key)
        if key in others:
            continue
        parser = table.get(key)
        if parser is None:
            report_unknown(cell, owner, problems)
        elif cell.value not in ("", "-"):
            value = find_value(cell, key, parser, scope, problems, owner)
            if value is not None:
                fields[field_of(key)] = value
    return fields


def find_value(cell: Cell, key: str, parser: v.Parser, scope: v.Scope, problems: Problems, owner: str) -> object | None:
    """The value of the parameter ``key``; None where it cannot be read, which leaves the default.

    That is an error, but for a parameter that changes nothing here: LSF takes more values of it than lava needs to know.
    """
    report_without_effect(cell, key, owner, problems)
    try:
        return parser(cell.value, scope)
    except ValueError as wrong:
        if not without_effect.is_listed(cell.place.kind, key):
            problems.error(cell.place, f"{owner}: {cell.name}: {shortened(str(wrong))}")
        return None


def field_of(parameter: str) -> str:
    """The field of a parameter: `JL/U` -> `jl_u`."""
    return parameter.lower().replace("/", "_")


def report_without_effect(cell: Cell, key: str, owner: str, problems: Problems) -> None:
    """A parameter that is read and changes nothing here: a note where nothing is missing without it, else a warning."""
    file, why = cell.place.kind, without_effect.BECAUSE.get(key, "")
    if key in without_effect.NEEDLESS.get(file, ()):
        problems.note(cell.place, f"{owner}: {cell.name} is not needed by lava and has no effect{why and ': ' + why}")
    elif key in without_effect.MISSING.get(file, ()):
        problems.warn(cell.place, f"{owner}: {cell.name} is not supported by lava and has no effect{why and ': ' + why}")


def report_unknown(cell: Cell, owner: str, problems: Problems) -> None:
    key = cell.name.upper()
    if key in without_effect.NEEDLESS.get(cell.place.kind, ()):
        report_without_effect(cell, key, owner, problems)
    elif key in without_effect.KNOWN.get(cell.place.kind, ()):
        why = without_effect.BECAUSE.get(key, "")
        problems.warn(cell.place, f"{owner}: {cell.name} is not supported by lava and has no effect{why and ': ' + why}")
    else:
        problems.warn(cell.place, f"{owner}: unknown parameter {shortened(cell.name)}")


def shortened(text: str) -> str:
    """At most 200 characters, and printable: a file may hold anything."""
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= 200 else text[:197] + "..."
