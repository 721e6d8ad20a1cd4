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
from functools import cache
from typing import Any, NoReturn, TypeVar, get_args, get_origin

Json = dict[str, object]
R = TypeVar("R", bound=tuple[object, ...])
"""A NamedTuple."""
T = TypeVar("T")
Read = Callable[[Any], object]
Write = Callable[[Any, Any], Json]


class ProtocolError(ValueError):
    """The peer sent something that is no record of the protocol."""


class _Required:
    """A field that must be there."""


_REQUIRED = _Required()


class _Fields:
    """What is known of the fields of one class of records."""

    def __init__(self, kind: Any) -> None:
        fields = kind.__annotations__
        # ``from_`` is "from" on the wire.
        self.keys = [name.rstrip("_") for name in fields]
        defaults = kind._field_defaults
        self.missing = [defaults[name] if name in defaults else _when_missing(of) for name, of in fields.items()]
        """What a field is that is not there."""
        self.exact = [_as_it_is(of) for of in fields.values()]
        """The type of values that need no reading, None where all do."""
        self.readers = [_reader(of) for of in fields.values()]
        self.left_out = [defaults.get(name, _REQUIRED) for name in fields]
        """The value that is not written."""
        self.writers = [_writer(of) for of in fields.values()]
        rows = enumerate(zip(self.keys, self.exact, self.readers, self.missing, strict=True))
        self.by_key = {key: (at, exact, read, missing) for at, (key, exact, read, missing) in rows}


@cache
def _fields(kind: type) -> _Fields:
    return _Fields(kind)


# Reading and writing are on the way of every part and every report: like the methods of a NamedTuple, the functions are made from
# text once for each class, so that no call looks at a table of fields.


@cache
def _read_function(kind: type) -> Callable[[object], Any]:
    """read(obj) of one class."""
    fields = _fields(kind)
    space: dict[str, Any] = {"_kind": kind, "_missing": _missing, "_new": tuple.__new__, "_no_object": _no_object}
    space["_value"] = _value
    lines = ["def read(obj):", " if not isinstance(obj, dict): _no_object(_kind)", " get = obj.get"]
    rows = zip(fields.keys, fields.exact, fields.readers, fields.missing, strict=True)
    for at, (key, exact, reader, missing) in enumerate(rows):
        space |= {f"r{at}": reader, f"d{at}": missing, f"t{at}": exact}
        none = f"_missing(_kind, {key!r})" if missing is _REQUIRED else f"d{at}"
        otherwise = f"v{at} = {none} if v{at} is None else _value(_kind, {key!r}, r{at}, v{at})"
        lines.append(f" v{at} = get({key!r})")
        lines.append(f" {otherwise}" if exact is None else f" if type(v{at}) is not t{at}: {otherwise}")
    values = "".join(f"v{at}," for at in range(len(fields.keys)))
    exec("\n".join([*lines, f" return _new(_kind, ({values}))"]), space)
    made: Callable[[object], Any] = space["read"]
    return made


@cache
def _write_function(kind: type) -> Write:
    """write(record, found) of one class: adds the fields to ``found``."""
    fields = _fields(kind)
    space: dict[str, Any] = {}
    values = "".join(f"v{at}, " for at in range(len(fields.keys)))
    lines = ["def write(record, found):", f" [{values}] = record"]
    for at, (key, left_out, writer) in enumerate(zip(fields.keys, fields.left_out, fields.writers, strict=True)):
        space |= {f"w{at}": writer, f"d{at}": left_out}
        when = "" if left_out is _REQUIRED else f"if v{at} is not None: " if left_out is None else f"if v{at} != d{at}: "
        written = f"v{at}" if writer is None else f"None if v{at} is None else w{at}(v{at})"
        lines.append(f" {when}found[{key!r}] = {written}")
    exec("\n".join([*lines, " return found"]), space)
    made: Write = space["write"]
    return made


def prepare(*kinds: type) -> None:
    """Make the functions of these classes now: what is forked afterwards has them."""
    for kind in kinds:
        _read_function(kind)
        _write_function(kind)


# -- from JSON -----------------------------------------------------------------------------------------------------------


def read(kind: type[R], obj: object) -> R:
    """The record that an object is; ProtocolError when it is none."""
    found: R = _read_function(kind)(obj)
    return found


def _no_object(kind: type) -> NoReturn:
    raise ProtocolError(f"{kind.__name__} is not an object")


def _missing(kind: type, key: str) -> NoReturn:
    raise ProtocolError(f"{kind.__name__} has no {key}")


def read_over(base: R, obj: Json) -> R:
    """A record with the fields that an object has, and those of ``base`` where it has none; null is the field's default."""
    kind, values = type(base), list[object](base)
    by_key = _fields(kind).by_key
    for key, value in obj.items():
        if (field := by_key.get(key)) is None:
            continue
        at, exact, reader, missing = field
        if type(value) is exact:
            values[at] = value
        else:
            values[at] = missing if value is None else _value(kind, key, reader, value)
    return tuple.__new__(kind, values)


def _as_it_is(kind: Any) -> type | None:
    """The type whose values are values of a field already, None where each is read."""
    of = [one for one in get_args(kind) if one is not types.NoneType] if get_origin(kind) is types.UnionType else [kind]
    return _AS_THEY_ARE.get(of[0]) if len(of) == 1 else None


def _value(kind: type, key: str, reader: Read, value: object) -> object:
    try:
        return reader(value)
    except (TypeError, ValueError, LookupError, OverflowError) as e:  # the last of an integer that no float holds
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
        return _list_reader(_reader(args[0]), _AS_THEY_ARE.get(args[0]), types.NoneType in get_args(args[0]))
    if origin is not None:
        return _mapping_reader(_reader(args[1]), _AS_THEY_ARE.get(args[1]))
    if issubclass(kind, Enum):
        return lambda value: kind(value)
    if hasattr(kind, "from_json"):
        from_json: Read = kind.from_json
        return from_json
    return lambda value: _read_function(kind)(value)


def _list_reader(item: Read, exact: type | None, nulls: bool) -> Read:
    def read_list(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise TypeError("not a list")
        if exact is not None and {exact}.issuperset(map(type, value)):
            return tuple(value)
        return tuple([None if one is None and nulls else item(one) for one in value])

    return read_list


def _mapping_reader(item: Read, exact: type | None) -> Read:
    def read_mapping(value: object) -> Mapping[str, object]:
        found = _object(value)
        if exact is not None and {exact}.issuperset(map(type, found.values())):
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


_AS_THEY_ARE: dict[object, type] = {int: int, float: float, str: str, bool: bool, Json: dict}
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
    return _write_function(type(record))(record, {})


def write_over(base: R, record: R) -> Json:
    """The fields of a record in which it differs from ``base``: ``read_over`` gives the record again."""
    return _write_over_function(type(record))(base, record)


@cache
def _write_over_function(kind: type) -> Write:
    """write_over(base, record) of one class."""
    fields = _fields(kind)
    space: dict[str, Any] = {}
    numbers = range(len(fields.keys))
    lines = ["def write_over(base, record):", f" [{''.join(f'b{at}, ' for at in numbers)}] = base"]
    lines += [f" [{''.join(f'v{at}, ' for at in numbers)}] = record", " found = {}"]
    for at, (key, writer) in enumerate(zip(fields.keys, fields.writers, strict=True)):
        space[f"w{at}"] = writer
        written = f"v{at}" if writer is None else f"None if v{at} is None else w{at}(v{at})"
        lines.append(f" if v{at} is not b{at} and v{at} != b{at}: found[{key!r}] = {written}")
    exec("\n".join([*lines, " return found"]), space)
    made: Write = space["write_over"]
    return made


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
        obj = _decode(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as e:
        raise ProtocolError(f"not JSON: {e}") from None
    if not isinstance(obj, dict):
        raise ProtocolError("not an object")
    return obj


def _encoder() -> Callable[[object], str]:
    """As ``encode`` of JSONEncoder, which makes a new encoder in C for each object: most take less time than that."""
    plain = json.JSONEncoder(separators=(",", ":"), check_circular=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    try:
        made = make and make(None, plain.default, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
    except TypeError:  # of another version of Python
        made = None
    return (lambda obj: "".join(made(obj, 0))) if made else plain.encode


_decode = json.JSONDecoder().decode
_encode = _encoder()


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
        kind = type(record)
        return _write_function(kind)(record, {self._key: self._names[kind]})


_kinds_of: dict[object, Kinds] = {}
