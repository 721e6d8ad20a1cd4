"""The fields that a message and a record have under one name.

Rule: plain values and lists of plain values only; nested messages and maps are converted by who calls.
Usage and reports come by the thousand: the functions are made from text once for each pair of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

R = TypeVar("R", bound=msgspec.Struct)


def plain_names(record: type[msgspec.Struct], message: Descriptor) -> dict[str, bool]:
    """Each field that both have, in the record's order, and whether it is a list."""
    fields = message.fields_by_name
    both = [name for name in record.__struct_fields__ if name in fields]
    return {name: fields[name].is_repeated for name in both if fields[name].type != FieldDescriptor.TYPE_MESSAGE}


@cache
def _taker(record: type[msgspec.Struct], message: Descriptor) -> Callable[[Any], dict[str, Any]]:
    values = ", ".join(f"{name!r}: record.{name}" for name in plain_names(record, message))
    made: Callable[[Any], dict[str, Any]] = eval(f"lambda record: {{{values}}}")
    return made


def fields_of(record: msgspec.Struct, message: type[Message]) -> dict[str, Any]:
    """What a message takes over from a record."""
    return _taker(type(record), message.DESCRIPTOR)(record)


@cache
def _reader(record: type[msgspec.Struct], message: Descriptor, converted: tuple[str, ...]) -> Callable[..., Any]:
    names = {name: is_list for name, is_list in plain_names(record, message).items() if name not in converted}
    values = "".join(
        f"{name}=tuple(message.{name}), " if is_list else f"{name}=message.{name}, " for name, is_list in names.items()
    )
    rest = "".join(f"{name}=converted[{name!r}], " for name in converted)
    made: Callable[..., Any] = eval(f"lambda message, converted: record({values}{rest})", {"record": record})
    return made


def reader_of(record: type[R], message: type[Message], *converted: str) -> Callable[[Any, dict[str, Any]], R]:
    """What makes the record that a message of this class stands for, of it and of its fields that are ``converted``."""
    made: Callable[[Any, dict[str, Any]], R] = _reader(record, message.DESCRIPTOR, converted)
    return made


def record_of(record: type[R], message: Message, **converted: Any) -> R:
    """The record that a message stands for; ``converted``: its fields that are not taken over as they are."""
    found: R = _reader(record, message.DESCRIPTOR, tuple(converted))(message, converted)
    return found


def records_of(record: type[R], messages: Sequence[Message]) -> tuple[R, ...]:
    """The same of many, none of whose fields are converted."""
    if not messages:
        return ()
    read = _reader(record, messages[0].DESCRIPTOR, ())
    return tuple([read(message, None) for message in messages])
