"""What the options of the query ``api`` ask for: a page by cursor, numbers, the one thing that is named. Raises Refused."""

from __future__ import annotations

import base64
import binascii
import math

import msgspec

from lavad.core.lang.asks import Refused
from lavad.queries.frame.request import Options, Request
from proto.numbers import find_number

MOST = 1000
USUAL = 50
Mark = tuple[str, int]
"""What a cursor holds: the order that it belongs to, and the place of the last row of its page there."""
_marks = msgspec.json.Decoder(Mark)


def cursor(order: str, place: int) -> str:
    """The cursor behind a place."""
    return base64.urlsafe_b64encode(msgspec.json.encode((order, place))).decode().rstrip("=")


def place(options: Options, order: str) -> int | None:
    """Where the page begins: behind this place; None: at the beginning."""
    text = options.text("cursor")
    if not text:
        return None
    try:
        found = _marks.decode(base64.b64decode((text + "=" * (-len(text) % 4)).encode(), altchars=b"-_", validate=True))
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise Refused("cursor: not one that lava gave") from None
    if found[0] != order:
        raise Refused("cursor: it belongs to another order or other filters")
    number: int = found[1]
    return number


def limit(options: Options, most: int = MOST) -> int:
    """Rows of a page."""
    text = options.text("limit")
    if not text:
        return USUAL
    if (rows := find_number(text, 1, most)) is None:
        raise Refused(f"limit: a number from 1 to {most} is expected")
    return rows


def number(options: Options, name: str, most: int) -> int:
    """A number of things; 0 where none is given."""
    text = options.text(name) or "0"
    if (found := find_number(text, 0, most)) is None:
        raise Refused(f"{name}: a number from 0 to {most} is expected")
    return found


def seconds(options: Options, name: str, default: float) -> float:
    """A time in seconds since the epoch."""
    text = options.text(name)
    try:
        value = float(text) if text else default
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e11:
        raise Refused(f"{name}: seconds since the epoch are expected")
    return value


def name(request: Request) -> str:
    """The second word."""
    if len(request.words) != 2:
        raise Refused(f"api {request.words[0]}: one name is expected")
    return request.words[1]
