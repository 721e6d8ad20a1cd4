"""Values and arrays of PostgreSQL: read again by psycopg as what they were, in statements that are not too large."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.adapt import Transformer
from psycopg.pq import Format

from lavad.store import arrays, schema, statements
from lavad.store.statements import Statements


def kind(of: type[sa.types.TypeEngine[Any]]) -> arrays.Kind:
    return arrays.kind_of(sa.Column("one", of))


@pytest.mark.parametrize(
    ("of", "values"),
    [
        (sa.BigInteger, [1, -(1 << 63), None]),
        (sa.Integer, [7, -1]),
        (sa.Double, [0.1, None, 1e300]),
        (sa.Boolean, [True, False]),
        (sa.Text, ["", '{a,"b\\', None, "ü"]),
        (sa.LargeBinary, [b"", b"\0\xff"]),
        (sa.Text, [None, None]),
    ],
)
def test_values_are_read_as_what_was_packed(of: type[sa.types.TypeEngine[Any]], values: list[Any]) -> None:
    info = psycopg.postgres.types.get(kind(of).oid)
    assert info is not None
    one = Transformer().get_loader(info.oid, Format.BINARY)
    packed = [kind(of).one(value) for value in values]
    assert [value if value is None else one.load(value) for value in packed] == values
    assert Transformer().get_loader(info.array_oid, Format.BINARY).load(kind(of).pack(tuple(values))) == values


@pytest.mark.parametrize(("of", "value"), [(sa.BigInteger, 1 << 63), (sa.Integer, 1 << 31), (sa.Integer, "1")])
def test_what_a_column_cannot_hold_is_an_overflow(of: type[sa.types.TypeEngine[Any]], value: object) -> None:
    for values in ([value], [None, value]):
        with pytest.raises(OverflowError):
            kind(of).pack(tuple(values))
    with pytest.raises(OverflowError):
        kind(of).one(value)


def texts() -> statements.Write:
    url = "postgresql+psycopg://h/d"
    return Statements(sa.create_engine(url).dialect).env


def test_few_rows_go_one_by_one_and_many_in_a_few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    write = texts()
    rows = [(str(at), b"x" * 100) for at in range(300)]
    assert list(write.calls(rows[:2])) == [(write.text, [name.encode(), data]) for name, data in rows[:2]]
    assert [text for text, _ in write.calls(rows)] == [write.many] * 3
    monkeypatch.setattr(statements, "_BYTES", 8_000)
    assert [text for text, _ in write.calls(rows)] == [write.many] * 5


def test_of_rows_of_a_key_the_last_is_sent() -> None:
    write = Statements(sa.create_engine("postgresql+psycopg://h/d").dialect).attached
    rows = [(1, 1, b"a"), (1, 2, b"b"), (1, 1, b"c"), (2, 1, b"d")]
    ((_, packed),) = write.calls(rows)
    wanted = zip((1, 1, 2), (1, 2, 1), (b"c", b"b", b"d"), strict=True)
    kinds = [arrays.kind_of(column) for column in schema.attachments.columns]
    assert list(packed) == [one.pack(tuple(values)) for one, values in zip(kinds, zip(*wanted, strict=True), strict=True)]
