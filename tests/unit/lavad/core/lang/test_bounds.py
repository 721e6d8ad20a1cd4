"""No field of an ask is without a bound: the type of each is walked, with those of the records inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
import pytest
from msgspec import inspect as types

from lavad.core.lang import asks, bounds

KINDS = sorted(asks.Ask.__subclasses__(), key=lambda kind: kind.__name__)


def has_bound(kind: types.Type) -> bool:
    """Whether a type itself says how large its values are at most."""
    if isinstance(kind, types.StrType | types.BytesType | types.ListType | types.DictType):
        return kind.max_length is not None
    if isinstance(kind, types.IntType | types.FloatType):
        return None not in (kind.ge, kind.le)
    return isinstance(kind, types.BoolType | types.NoneType | types.TupleType | types.UnionType | types.StructType)


def parts_of(kind: types.Type) -> Iterator[tuple[str, types.Type]]:
    """The types inside."""
    match kind:
        case types.ListType(item_type=item):
            yield "[]", item
        case types.DictType(key_type=key, value_type=value):
            yield from (("{}", key), ("{}", value))
        case types.TupleType(item_types=items):
            yield from ((f"[{at}]", item) for at, item in enumerate(items))
        case types.UnionType(types=some):
            yield from (("", one) for one in some)
        case types.StructType(fields=fields):
            yield from ((f".{field.name}", field.type) for field in fields)


def unbounded(kind: types.Type, where: str) -> Iterator[str]:
    """Where a text, list, table or number in a type has no bound, or a type is not known here."""
    if not has_bound(kind):
        yield where
    for name, part in parts_of(kind):
        yield from unbounded(part, where + name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_bound(kind: type[asks.Ask]) -> None:
    assert list(unbounded(types.type_info(kind), kind.__name__)) == []


class Loose(msgspec.Struct):
    """What the walk has to find."""

    text: str
    few: Annotated[list[int], msgspec.Meta(max_length=3)]
    table: dict[bounds.Word, bounds.Word]
    pair: tuple[bounds.Word, bytes]
    half: Annotated[int, msgspec.Meta(ge=0)] | None = None


def test_the_walk_finds_what_has_none() -> None:
    found = list(unbounded(types.type_info(Loose), "Loose"))
    assert found == ["Loose.text", "Loose.few[]", "Loose.table", "Loose.pair[1]", "Loose.half"]
