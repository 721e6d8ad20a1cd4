"""The fields that a message and a record have under one name.

Rule: plain values and lists of plain values only; nested messages and maps are converted by who calls.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

R = TypeVar("R", bound=msgspec.Struct)


@lru_cache(maxsize=256)
def plain_names(record: type[msgspec.Struct], message: Descriptor) -> tuple[tuple[str, bool], ...]:
    """(name, whether it is a list) of each field that both have, in the record's order."""
    fields = message.fields_by_name
    return tuple(
        (name, fields[name].is_repeated)
        for name in record.__struct_fields__
        if name in fields and fields[name].type != FieldDescriptor.TYPE_MESSAGE
    )


def fields_of(record: msgspec.Struct, message: type[Message]) -> dict[str, Any]:
    """What a message takes over from a record."""
    return {name: getattr(record, name) for name, _ in plain_names(type(record), message.DESCRIPTOR)}


def record_of(record: type[R], message: Message, **converted: Any) -> R:
    """The record that a message stands for; ``converted``: its fields that are not taken over as they are."""
    plain = {
        name: tuple(getattr(message, name)) if is_list else getattr(message, name)
        for name, is_list in plain_names(record, message.DESCRIPTOR)
    }
    return record(**plain | converted)
