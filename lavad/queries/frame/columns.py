"""``-o`` of all commands: ``field[:[-][width][:unit]] … [delimiter='c']``, its table and its JSON.

Rule: a text is parsed completely or refused; the header of a column is that of its field, also where an alias was given
(``id`` shows as JOBID), as tools look for it. A name with one asterisk is each field that it fits (``gpu_mode*``, ``*``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Generic, Protocol, TypeVar

import msgspec

from lavad.core.lang.asks import Refused
from lavad.queries.frame.request import Options, Request, Shown, out
from proto.numbers import find_number

Row = TypeVar("Row")
MAX_TEXT = 16_384
MAX_WIDTH = 4096
_DELIMITER = re.compile(r"""delimiter\s*=\s*(?:'([^']*)'|"([^"]*)"|(\S+))""", re.IGNORECASE)
_UNIT = re.compile(r"([KMGTPEZ])B?|S", re.ASCII | re.IGNORECASE)


class Field(Protocol):
    """What ``-o`` must know of a field."""

    @property
    def name(self) -> str:
        """In small letters."""

    @property
    def width(self) -> int:
        """The width that ``:`` without a number gives."""

    @property
    def header(self) -> str:
        """Its title, and its key in JSON."""


class Named(msgspec.Struct, frozen=True):
    """A field whose title is its name in capitals."""

    name: str
    width: int

    @property
    def header(self) -> str:
        """Its title: ``JOBID``."""
        return self.name.upper()


class Column(msgspec.Struct, frozen=True):
    """A field as asked for; ``width`` 0: as wide as its widest value."""

    name: str
    header: str
    width: int = 0
    right: bool = False
    unit: str = ""


class Custom(msgspec.Struct, frozen=True):
    """A whole ``-o``; ``delimiter`` "" is the default, a blank with padded columns."""

    columns: tuple[Column, ...]
    delimiter: str = ""

    @property
    def fixed(self) -> bool:
        """Whether a row can be written without knowing the others."""
        return bool(self.delimiter) or all(column.width for column in self.columns)


def parse(command: str, text: str, fields: Mapping[str, Field]) -> Custom:
    """The columns; ``fields`` maps names and aliases. Raises Refused."""
    if len(text) > MAX_TEXT:
        raise Refused(f"{command}: the output format is too long")
    delimiter = ""
    match = _DELIMITER.search(text)
    if match is not None:
        delimiter = next((group for group in match.groups() if group), "")
        if len(delimiter) != 1 or not (delimiter.isprintable() or delimiter == "\t"):
            raise Refused(f"{command}: delimiter must be a single character")
        text = text[: match.start()] + " " + text[match.end() :]
    found: list[Column] = []
    for word in text.split():
        found += _columns(command, word, fields)
    if not found:
        raise Refused(f"{command}: no field in the output format")
    return Custom(tuple(found), delimiter)


def _columns(command: str, word: str, fields: Mapping[str, Field]) -> list[Column]:
    name, colon, rest = word.partition(":")
    given, second, unit = rest.partition(":")
    names = _named(name.lower(), fields)
    if not names:
        raise Refused(f"{command}: <{name[:80]}> is not a valid field name")
    right = given.startswith("-")
    digits = given[1:] if right else given
    if digits and find_number(digits, 1, MAX_WIDTH) is None:
        raise Refused(f"{command}: <{word[:80]}>: bad output width; it is a number from 1 to {MAX_WIDTH}")
    if second and unit and not _UNIT.fullmatch(unit):
        raise Refused(f"{command}: <{word[:80]}>: bad unit; it is one of K M G T P E Z or S")
    columns = []
    for one in names:
        width = int(digits) if digits else fields[one].width if colon and not second else 0
        columns.append(Column(one, fields[one].header, width, right, unit[:1].upper()))
    return columns


def _named(name: str, fields: Mapping[str, Field]) -> list[str]:
    """The fields of a name; an alias is not found by an asterisk."""
    every = list(dict.fromkeys(field.name for field in fields.values()))
    if name == "all":
        return every
    if name.count("*") == 1:
        return [own for own in every if fnmatchcase(own, name)]
    return [name] if name in fields else []


def _cell(column: Column, value: str, width: int) -> str:
    if column.width and len(value) > column.width:
        cut = column.name in ("job_name", "name") and column.width > 1
        value = "*" + value[1 - column.width :] if cut else value[: column.width]
    return value.rjust(width) if column.right else value.ljust(width)


def _title(column: Column, width: int) -> str:
    title = column.header[: column.width or None]
    return title.rjust(width) if column.right else title.ljust(width)


def table(custom: Custom, rows: Iterable[Sequence[str]], header: bool) -> Iterator[str]:
    """The lines of a table; "" as a value shows as ``-``."""
    columns = custom.columns
    titles = [column.header for column in columns]
    widths = [column.width for column in columns]
    if not custom.fixed:
        kept = [[value or "-" for value in row] for row in rows]
        lines = ([titles] if header else []) + kept
        for at, column in enumerate(columns):
            if not column.width:
                widths[at] = max((len(line[at]) for line in lines), default=0)
        if not columns[-1].width and not columns[-1].right:
            widths[-1] = 0
        rows = kept
    joint = custom.delimiter or " "
    if header:
        yield joint.join(map(_title, columns, widths)) + "\n"
    for row in rows:
        cells = [_cell(column, value or "-", width) for column, value, width in zip(columns, row, widths, strict=True)]
        yield joint.join(cells) + "\n"


def json_pieces(command: str, counted: str, count: int, records: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """LSF's JSON of ``count`` records: every value a string, "" where there is none."""
    yield f'{{\n  "COMMAND":{json.dumps(command)},\n  {json.dumps(counted)}:{count},\n  "RECORDS":[\n'
    for at, record in enumerate(records, 1):
        body = ",\n".join(f"      {json.dumps(name)}:{json.dumps(value)}" for name, value in record.items())
        yield f"    {{\n{body}\n    }}{',' if at < count else ''}\n"
    yield "  ]\n}\n"


def record(custom: Custom, row: Sequence[str]) -> dict[str, str]:
    """A row for JSON: header to value, cut to a given width as in the table."""
    return {
        column.header: _cell(column, value, 0) if column.width else value
        for column, value in zip(custom.columns, row, strict=True)
    }


class RowField(msgspec.Struct, Generic[Row], frozen=True):
    """A field of the rows of one command; ``value`` gets a row and the unit asked for."""

    name: str
    width: int
    value: Callable[[Row, str], object]
    header: str


def row_fields(
    table: Iterable[tuple[str, int, Callable[[Row, str], object]]], *, capitals: bool = False
) -> dict[str, RowField[Row]]:
    """Names and aliases to fields, from (names, width, value).

    The first of the names is the field's own, and the title: as it is written (``HOST_NAME``, ``r15s``), or in capitals.
    """
    found: dict[str, RowField[Row]] = {}
    for names, width, value in table:
        title, *aliases = names.split()
        for alias in (title.lower(), *aliases):
            found[alias] = RowField(title.lower(), width, value, title.upper() if capitals else title)
    return found


def find_format(request: Request, options: Options, default: str, *own: str) -> str | None:
    """The format of -o, or of LSB_BHOSTS_FORMAT and its like, which the caller's environment can set.

    None: the options name one of the command's ``own`` formats, or nothing.
    """
    name = f"{'LSF' if options.command.startswith('ls') else 'LSB'}_{options.command.upper()}_FORMAT"
    given = options.find("o") or options.text(name) or getattr(request.view.params, name.lower())
    is_asked = options.any("o", "json") or (given and not options.any(*own))
    return (given or default) if is_asked else None


def refuse_json_with(options: Options, *others: str) -> None:
    """JSON has no header that could be left out, and is of rows of fields alone, as ``others`` are not; raises Refused."""
    for other in ("noheader", *others) if "json" in options else ():
        if other in options:
            raise Refused(f"{options.command}: -json and -{other} cannot be used together")


def show_rows(
    options: Options, counted: str, known: Mapping[str, RowField[Row]], given: str, rows: Iterable[Row]
) -> Iterator[Shown]:
    """The table of a format, or JSON with the number of rows under ``counted``; raises Refused."""
    custom = parse(options.command, given, known)
    lines = [[str(known[column.name].value(row, column.unit)) for column in custom.columns] for row in rows]
    if "json" in options:
        pieces = json_pieces(options.command, counted, len(lines), (record(custom, line) for line in lines))
    else:
        pieces = table(custom, lines, "noheader" not in options)
    yield from map(out, pieces)
