"""Values of columns in PostgreSQL's binary form, those of many rows as an array, so that one statement writes them all. Pure.

The form is what array_recv reads (PostgreSQL, src/backend/utils/adt/arrayfuncs.c): the number of dimensions, whether an element
is NULL, the type of the elements; how many there are, the index of the first; of each its length, or -1 for NULL, and its bytes.
"""

from __future__ import annotations

import struct
from itertools import chain, repeat
from typing import Any

import msgspec
import sqlalchemy as sa

_HEAD = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)
Row = tuple[Any, ...]
"""The values of a row, or of a column."""


class Kind(msgspec.Struct, frozen=True):
    """A type of columns: its name in SQL, its number (pg_type.oid), its code for ``struct``; "": bytes of any length."""

    name: str
    oid: int
    code: str = ""

    def one(self, value: object) -> bytes | None:
        """A value. Raises as ``pack``."""
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, str) and not self.code:
            return value.encode()
        try:
            return struct.pack(f">{self.code}", value)
        except struct.error as error:
            raise OverflowError(f"{self.name}: {error}") from error

    def pack(self, values: Row) -> bytes:
        """The array of these. Raises OverflowError, UnicodeEncodeError: the database cannot hold one of them."""
        count = len(values)
        nulls = values.count(None)
        # many columns have one value in all rows of a batch: the user, the queue, the state
        alike = values.count(values[0]) == count
        some = values[:1] if alike else values
        try:
            body = _NULL if nulls == count else self._fixed(some, nulls) if self.code else self._free(some, nulls)
        except struct.error as error:
            raise OverflowError(f"{self.name}: {error}") from error
        return _HEAD.pack(1, nulls > 0, self.oid, count, 1) + (body * count if alike else body)

    def _fixed(self, values: Row, nulls: int) -> bytes:
        one = struct.Struct(f">i{self.code}")
        size = one.size - _LENGTH.size
        if nulls:
            return b"".join([_NULL if value is None else one.pack(size, value) for value in values])
        return struct.pack(f">{f'i{self.code}' * len(values)}", *chain.from_iterable(zip(repeat(size), values, strict=False)))

    def _free(self, values: Row, nulls: int) -> bytes:
        pack = _LENGTH.pack
        if self is _TEXT:
            values = tuple([value if value is None else value.encode() for value in values])
        if nulls:
            return b"".join([_NULL if value is None else pack(len(value)) + value for value in values])
        return b"".join([pack(len(value)) + value for value in values])


_TEXT = Kind("text", 25)
_KINDS: dict[type, Kind] = {
    sa.BigInteger: Kind("bigint", 20, "q"),
    sa.Integer: Kind("integer", 23, "i"),
    sa.Double: Kind("double precision", 701, "d"),
    sa.Boolean: Kind("boolean", 16, "?"),
    sa.Text: _TEXT,
    sa.LargeBinary: Kind("bytea", 17),
}


def kind_of(column: sa.Column[object]) -> Kind:
    """That of a column of the store."""
    return _KINDS[type(column.type)]
