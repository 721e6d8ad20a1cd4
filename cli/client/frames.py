"""Frames of the local socket: 4 bytes of length, then a JSON object.

Rule: `_json`, not `json`: the latter imports `re`, which doubles the start-up time of a command.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
    """A value read from JSON or YAML."""
    Frame = dict[str, object]
    """The fields of an ask."""

LARGEST_ASK = 16 * 1024 * 1024
LARGEST_ANSWER = 64 * 1024 * 1024


class _Plain:
    """The settings that `_json.make_scanner` reads: plain JSON."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _parts() -> tuple[Callable[[str], str], Callable[[str, int], tuple[Any, int]]]:
    """(quote a string, read the value at an index): of CPython's `_json`, else of `json`."""
    try:
        import _json

        plain: Any = _Plain
        return _json.encode_basestring_ascii, _json.make_scanner(plain)
    except (ImportError, AttributeError, TypeError):
        import json

        return json.dumps, json.JSONDecoder().raw_decode


_quoted, _read = _parts()


def encode(value: object) -> str:
    """The JSON text of a str, bool, int, float, None, list or dict with str keys."""
    if isinstance(value, str):
        return str(_quoted(value))
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ",".join([f"{_quoted(name)}:{encode(item)}" for name, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([encode(item) for item in value]) + "]"
    return repr(value)


def decode(text: str) -> Any:
    """The value of one JSON text. Raises ValueError."""
    text = text.strip()
    try:
        value, end = _read(text, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


def pack(frame: Mapping[str, object]) -> bytes:
    """One frame: 4 bytes of length, big-endian, then the JSON text."""
    data = encode(frame).encode("ascii")
    return len(data).to_bytes(4, "big") + data
