"""Records to JSON objects and back: the fields of a NamedTuple are the keys of an object.

Rule: unknown keys are ignored; a key that is missing or null takes the field's default. A field without a default is always
written, and must be there unless it may be None (then that) or holds many (then none). Whatever is no record is a ProtocolError.

Classes of records must not postpone the evaluation of their annotations: these are what is read here.
"""

from __future__ import annotations

import base64
import json
import types
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin

Json = dict[str, object]
R = TypeVar("R", bound=tuple[object, ...])
"""A NamedTuple."""
T = TypeVar("T")
Read = Callable[[Any], object]


class ProtocolError(ValueError):
    """The peer sent something that is no record of the protocol."""


class _Required:
    """A field that must be there."""


_REQUIRED = _Required()


class _Codec:
    """What is known of one class of records, made once: this is on the way of every part and every report."""

    def __init__(self, kind: Any) -> None:
        fields = kind.__annotations__
        # ``from_`` is "from" on the wire.
        keys = [name.rstrip("_") for name in fields]
        defaults = kind._field_defaults
        missing = [defaults[name] if name in defaults else _when_missing(of) for name, of in fields.items()]
        exact = [of if of in (int, str, float) else None for of in fields.values()]
        readers = [_reader(of) for of in fields.values()]
        self.read: list[tuple[str, object, Read, object]] = list(zip(keys, exact, readers, missing, strict=True))
        """Key, the type of a value that needs no reading, how else it is read, what it is when it is not there."""
        self.read_by_key = {key: (at, exact, read, missing) for at, (key, exact, read, missing) in enumerate(self.read)}
        written = [defaults.get(name, _REQUIRED) for name in fields]
        self.write = list(zip(keys, written, [_writer(of) for of in fields.values()], strict=True))
        """Key, the value that is left out, how others are written."""


_codecs: dict[object, _Codec] = {}


def _codec(kind: object) -> _Codec:
    found = _codecs.get(kind)
    if found is None:
        found = _codecs[kind] = _Codec(kind)
    return found


# -- from JSON -----------------------------------------------------------------------------------------------------------


def read(kind: type[R], obj: object) -> R:
    """The record that an object is; ProtocolError when it is none."""
    if not isinstance(obj, dict):
        raise ProtocolError(f"{kind.__name__} is not an object")
    values: list[object] = []
    for key, exact, reader, missing in _codec(kind).read:
        value = obj.get(key)
        if type(value) is exact:
            values.append(value)
        elif value is not None:
            values.append(_value(kind, key, reader, value))
        elif missing is _REQUIRED:
            raise ProtocolError(f"{kind.__name__} has no {key}")
        else:
            values.append(missing)
    return tuple.__new__(kind, values)


def read_over(base: R, obj: Json) -> R:
    """A record with the fields that an object has, and those of ``base`` where it has none; null is the field's default."""
    kind, values = type(base), list[object](base)
    by_key = _codec(kind).read_by_key
    for key, value in obj.items():
        if (field := by_key.get(key)) is None:
            continue
        at, exact, reader, missing = field
        if type(value) is exact:
            values[at] = value
        else:
            values[at] = missing if value is None else _value(kind, key, reader, value)
    return tuple.__new__(kind, values)


def _value(kind: type, key: str, reader: Read, value: object) -> object:
    try:
        return reader(value)
    except (TypeError, ValueError, LookupError) as e:
        raise ProtocolError(f"{key} of {kind.__name__}: {e}") from None


def _reader(kind: Any) -> Read:
    if kind in _SCALARS:
        return _SCALARS[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        records = [one for one in args if one is not types.NoneType]
        if len(records) > 1:
            return _kinds_of[records[0]].get
        return _reader(records[0])
    if origin is tuple:
        return _list_reader(_reader(args[0]), _SCALARS_AS_THEY_ARE.get(args[0]), types.NoneType in get_args(args[0]))
    if origin is not None:
        return _mapping_reader(_reader(args[1]), _SCALARS_AS_THEY_ARE.get(args[1]))
    if issubclass(kind, Enum):
        return lambda value: kind(value)
    if hasattr(kind, "from_json"):
        from_json: Read = kind.from_json
        return from_json
    return lambda value: read(kind, value)


def _list_reader(item: Read, exact: set[type] | None, nulls: bool) -> Read:
    def read_list(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise TypeError("not a list")
        if exact is not None and exact.issuperset(map(type, value)):
            return tuple(value)
        return tuple([None if one is None and nulls else item(one) for one in value])

    return read_list


def _mapping_reader(item: Read, exact: set[type] | None) -> Read:
    def read_mapping(value: object) -> Mapping[str, object]:
        found = _object(value)
        if exact is not None and exact.issuperset(map(type, found.values())):
            return found
        return {name: item(one) for name, one in found.items()}

    return read_mapping


def _int(value: object) -> int:
    if type(value) is int:
        return value
    raise TypeError(f"{value!r} is no integer")


def _float(value: object) -> float:
    if type(value) is float or type(value) is int:
        return float(value)
    raise TypeError(f"{value!r} is no number")


def _str(value: object) -> str:
    if type(value) is str:
        return value
    raise TypeError(f"{value!r} is no text")


def _bytes(value: object) -> bytes:
    return base64.b64decode(_str(value))


def _object(value: object) -> Json:
    if isinstance(value, dict):
        return value
    raise TypeError("not an object")


_SCALARS: dict[object, Read] = {int: _int, float: _float, str: _str, bool: bool, bytes: _bytes, Json: _object}


_SCALARS_AS_THEY_ARE: dict[object, set[type]] = {int: {int}, str: {str}}
"""Values of JSON that need no reading."""


def _when_missing(kind: Any) -> object:
    if types.NoneType in get_args(kind):
        return None
    origin = get_origin(kind)
    if origin is tuple:
        return ()
    return {} if origin is not None and origin is not types.UnionType else _REQUIRED


# -- to JSON -------------------------------------------------------------------------------------------------------------


def write(record: tuple[object, ...]) -> Json:
    """A record as an object, without the fields that have their defaults."""
    found: Json = {}
    for (key, default, writer), value in zip(_codec(type(record)).write, record, strict=True):
        if value != default:
            found[key] = value if writer is None or value is None else writer(value)
    return found


def write_over(base: R, record: R) -> Json:
    """The fields of a record in which it differs from ``base``: ``read_over`` gives the record again."""
    found: Json = {}
    for (key, _, writer), was, value in zip(_codec(type(record)).write, base, record, strict=True):
        if value is not was and value != was:
            found[key] = value if writer is None or value is None else writer(value)
    return found


def _writer(kind: Any) -> Callable[[Any], object] | None:
    """How a value becomes JSON; None where it is JSON already."""
    if kind in _SCALARS:
        return _write_bytes if kind is bytes else None
    origin, args = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        records = [one for one in args if one is not types.NoneType]
        return _writer(records[0]) if len(records) == 1 else _kinds_of[records[0]].write
    if origin is not None:
        item = _writer(args[0] if origin is tuple else args[1])
        if item is None:
            return None
        return (lambda value: [item(one) for one in value]) if origin is tuple else _mapping_writer(item)
    if issubclass(kind, Enum):
        return lambda value: value.value
    if hasattr(kind, "to_json"):
        to_json: Callable[[Any], object] = kind.to_json
        return to_json
    return write


def _mapping_writer(item: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda value: {name: item(one) for name, one in value.items()}


def _write_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def parse(body: bytes) -> Json:
    """The object that JSON is; ProtocolError when it is none."""
    try:
        obj = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise ProtocolError(f"not JSON: {e}") from None
    if not isinstance(obj, dict):
        raise ProtocolError("not an object")
    return obj


_encode = json.JSONEncoder(separators=(",", ":")).encode


def text(obj: object) -> bytes:
    """JSON without blanks; ASCII only, so that file names with undecodable bytes (surrogates) survive."""
    return _encode(obj).encode("ascii")


# -- kinds ---------------------------------------------------------------------------------------------------------------


class Kinds:
    """Records told apart by one key of the object. As a decorator it adds a class under a name."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._by_name: dict[object, type] = {}
        self._names: dict[type, str] = {}

    def __call__(self, name: str) -> Callable[[type[T]], type[T]]:
        """The decorator of the class that this name stands for."""

        def add(kind: type[T]) -> type[T]:
            self._by_name[name] = kind
            self._names[kind] = name
            _kinds_of[kind] = self
            return kind

        return add

    def find(self, obj: Json) -> Any:
        """The record that an object is, None when its kind is not known; ProtocolError when it is no record of its kind."""
        name = obj.get(self._key)
        kind = self._by_name.get(name) if isinstance(name, str) else None
        return None if kind is None else read(kind, obj)

    def get(self, obj: object) -> Any:
        """The same where the kind must be known."""
        found = self.find(_object(obj))
        if found is None:
            raise ProtocolError(f"{self._key!r} is {_object(obj).get(self._key)!r}, which is not known")
        return found

    def write(self, record: tuple[object, ...]) -> Json:
        """A record as an object, with its kind."""
        return {self._key: self._names[type(record)], **write(record)}


_kinds_of: dict[object, Kinds] = {}
