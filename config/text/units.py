"""Times, sizes and time windows as LSF's files write them.

Rule: every function takes the text of a value and raises ValueError with words for the user. Times
come out in seconds, sizes in KB.
"""

import re
from typing import NamedTuple

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*([KMGTPEZ]?)B?", re.IGNORECASE)
_MINUTES = re.compile(r"(?:([0-9]{1,7}):)?([0-9]{1,9}(?:\.[0-9]{1,6})?)")
_MOMENT = re.compile(r"(?:(?:([0-9]):)?([0-9]{1,2}):([0-9]{1,2})|([0-9]{1,2}))")
_POWERS = {"K": 0, "M": 1, "G": 2, "T": 3, "P": 4, "E": 5, "Z": 6}
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
LARGEST_KB = 2**53 - 1
"""In bytes it still is a 64-bit number, as limits of processes are."""
LONGEST = 2**31 - 1
"""Seconds."""
WEEK = 7 * 1440
"""Minutes."""


class Moment(NamedTuple):
    """A time of the week: `day` 0 is Sunday, None is every day; `minute` counts from midnight."""

    day: int | None
    minute: int


class Window(NamedTuple):
    begin: Moment
    end: Moment


def duration_s(text: str) -> int:
    """`[hours:]minutes`, also `90m`, `2h`, `30s`, `1d` -> seconds."""
    text = text.strip()
    match = _MINUTES.fullmatch(text)
    if match:
        hours, minutes = match.groups()
        return _checked(text, round((int(hours or 0) * 60 + float(minutes)) * 60))
    scale = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:].lower())
    if scale and re.fullmatch(r"[0-9]{1,9}", text[:-1]):
        return _checked(text, int(text[:-1]) * scale)
    raise ValueError(f"'{text}' is not a time: write [hours:]minutes")


def _checked(text: str, number: int) -> int:
    if number > LONGEST:
        raise ValueError(f"'{text}' is too long")
    return number


def seconds(text: str) -> int:
    """A number of seconds, also with a unit: `600`, `10m`, `2h`."""
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    if re.fullmatch(r"[0-9]{1,9}[smhdSMHD]", text):
        return duration_s(text)
    raise ValueError(f"'{text}' is not a number of seconds")


def unit_letter(text: str) -> str:
    """LSF_UNIT_FOR_LIMITS (KB, MB, GB, TB, PB, EB, ZB) -> its first letter."""
    if re.fullmatch(r"[KMGTPEZ]B?", text, re.IGNORECASE):
        return text[0].upper()
    raise ValueError(f"'{text}' is not a unit: write KB, MB, GB, TB, PB or EB")


def size_kb(text: str, unit: str = "K") -> int:
    """`4`, `4G`, `500MB` -> KB; `unit` is the letter that holds for a bare number."""
    match = _SIZE.fullmatch(text.strip())
    if not match or len(text) > 40:
        raise ValueError(f"'{text}' is not a size: write a number, with K, M, G or T if you like")
    number, letter = match.groups()
    scale: int = 1 << (10 * _POWERS[(letter or unit).upper()])
    kb = round(float(number) * scale) if "." in number else int(number) * scale
    if kb > LARGEST_KB:
        raise ValueError(f"'{text}' is too large")
    return kb


def window(text: str) -> Window:
    """`[day:]hour[:minute]-[day:]hour[:minute]`, day 0 to 7 (0 and 7 are Sunday) or a day's name."""
    begin_text, dash, end_text = text.partition("-")
    if not dash:
        raise ValueError(f"'{text}' is not a time window: write [day:]hour[:minute]-[day:]hour[:minute]")
    begin, end = _moment(begin_text, text), _moment(end_text, text)
    if (begin.day is None) != (end.day is None):
        raise ValueError(f"time window '{text}' names a day on one side only")
    if begin == end:
        raise ValueError(f"time window '{text}' is empty")
    return Window(begin, end)


def windows(text: str) -> tuple[str, ...]:
    """The windows of a RUN_WINDOW or DISPATCH_WINDOW line, checked, as they are written."""
    found = tuple(text.split())
    for one in found:
        window(one)
    return found


def week_spans(texts: tuple[str, ...]) -> list[tuple[int, int]]:
    """The windows as (first, last) minutes of the week, the last not in it."""
    found: list[tuple[int, int]] = []
    for parsed in map(window, texts):
        for day in range(7) if parsed.begin.day is None else (parsed.begin.day % 7,):
            first, last = _span(parsed, day)
            found += [(first, last)] if last <= WEEK else [(first, WEEK), (0, last - WEEK)]
    return found


def overlap(one: str, other: str) -> bool:
    """Whether two lists of windows have minutes of the week in common."""
    theirs = week_spans(tuple(other.split()))
    return any(first < last2 and first2 < last for first, last in week_spans(tuple(one.split())) for first2, last2 in theirs)


def _span(parsed: Window, day: int) -> tuple[int, int]:
    begin, end = parsed.begin, parsed.end
    first = day * 1440 + begin.minute
    last = (day if end.day is None else end.day % 7) * 1440 + end.minute
    if last <= first:
        last += 1440 if end.day is None else WEEK
    return first, last


def _moment(text: str, whole: str) -> Moment:
    for number, name in enumerate(_DAYS):
        if text.lower().startswith(name + ":"):
            text = f"{number}:{text[4:]}"
            break
    if re.fullmatch(r"[0-9]:[0-9]{1,2}", text) and int(text[2:]) > 59:
        raise ValueError(f"time window '{whole}': '{text}' is not a time")
    match = _MOMENT.fullmatch(text)
    if not match:
        raise ValueError(f"time window '{whole}': '{text}' is not a time")
    day, hour, minute, bare_hour = match.groups()
    hours, minutes = int(hour or bare_hour), int(minute or 0)
    if hours > 24 or minutes > 59 or hours * 60 + minutes > 1440 or (day and int(day) > 7):
        raise ValueError(f"time window '{whole}': '{text}' is not a time")
    return Moment(int(day) % 7 if day else None, hours * 60 + minutes)
