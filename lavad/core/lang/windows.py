"""Time windows: `20:00-8:30 5:18:00-mon:8:30`, the language of RUN_WINDOW and DISPATCH_WINDOW.

Rule: a window is a set of seconds in a week that begins on Sunday 0:00 local time; the caller brings the local time.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

DAY = 86_400
WEEK = 7 * DAY
_TIME = re.compile(r"\d{1,2}(:\d{1,2}){0,2}", re.ASCII)
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

Local = tuple[int, int]


def local_of(at: datetime) -> Local:
    """A local time as weekday (0 is Sunday) and second of the day."""
    return (at.weekday() + 1) % 7, at.hour * 3600 + at.minute * 60 + at.second


class WindowError(ValueError):
    """The message is one line that names the window."""


class Windows(msgspec.Struct, frozen=True):
    """Ascending, disjoint (open, close) in seconds of the week. No spans: always open."""

    text: str = ""
    spans: tuple[tuple[int, int], ...] = ()


def parse_windows(text: str) -> Windows:
    if len(text) > 8192:
        raise WindowError("time window: too long")
    pieces = [piece for word in text.split() for piece in _window(word)]
    return Windows(" ".join(text.split()), _merged(pieces))


def is_open(windows: Windows, local: Local) -> bool:
    """`local` is (weekday with Sunday 0, seconds since midnight)."""
    second = _second(local)
    return not windows.spans or any(opens <= second < closes for opens, closes in windows.spans)


def next_change(windows: Windows, local: Local) -> int | None:
    """Seconds until the windows open or close next; None if they never do."""
    if not windows.spans or windows.spans == ((0, WEEK),):
        return None
    second = _second(local)
    edges = {edge % WEEK for span in windows.spans for edge in span}
    if windows.spans[0][0] == 0 and windows.spans[-1][1] == WEEK:
        edges.discard(0)
    return min((edge - second - 1) % WEEK + 1 for edge in edges)


def _second(local: Local) -> int:
    return (local[0] % 7 * DAY + local[1]) % WEEK


def _window(word: str) -> list[tuple[int, int]]:
    begin, dash, end = word.partition("-")
    begin, end = _numbered(begin), _numbered(end)
    if not dash or not _TIME.fullmatch(begin) or not _TIME.fullmatch(end):
        raise WindowError(f"{word}: Bad time window")
    first, last = _fields(begin), _fields(end)
    if (len(first) == 3) != (len(last) == 3):
        raise WindowError(f"{word}: Bad time window, name the day in both times or in neither")
    if len(first) == 3:
        return _wrapped(_in_week(first, word), _in_week(last, word))
    opens, closes = _in_day(first, word), _in_day(last, word)
    return [piece for day in range(7) for piece in _wrapped(day * DAY + opens, day * DAY + closes, DAY)]


def _wrapped(opens: int, closes: int, period: int = WEEK) -> list[tuple[int, int]]:
    """A window that ends before it starts extends into the next day or week; equal times mean the whole period."""
    if closes <= opens:
        closes += period
    if closes <= WEEK:
        return [(opens, closes)]
    return [(opens, WEEK), (0, closes - WEEK)]


def _numbered(time: str) -> str:
    """With the number of the day in place of its name."""
    day, colon, rest = time.partition(":")
    return f"{_DAY_NAMES.index(day.lower())}:{rest}" if colon and day.lower() in _DAY_NAMES else time


def _fields(text: str) -> list[int]:
    return [int(field) for field in text.split(":")]


def _in_day(fields: list[int], word: str) -> int:
    hour, minute = fields[0], fields[1] if len(fields) > 1 else 0
    if hour * 60 + minute > 24 * 60 or minute > 59:
        raise WindowError(f"{word}: Bad time window, hours are 0-24 and minutes 0-59")
    return hour * 3600 + minute * 60


def _in_week(fields: list[int], word: str) -> int:
    if fields[0] > 7:
        raise WindowError(f"{word}: Bad time window, days are 0-7 (0 and 7 are Sunday)")
    return (fields[0] % 7 * DAY + _in_day(fields[1:], word)) % WEEK


def _merged(pieces: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for opens, closes in sorted(pieces):
        if opens == closes:
            continue
        if merged and opens <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], closes))
        else:
            merged.append((opens, closes))
    return tuple(merged)
