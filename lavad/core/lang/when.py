"""LSF's notations of time: limits (-W, -c), points in time (-b, -t) and the intervals of bhist and bacct.

Rule: local times are naive datetimes, and the caller passes the current one; nothing here reads a clock.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime, timedelta

_LIMIT = re.compile(r"(?:(\d{1,9}):)?(\d{1,9})(?:/([^\s/]{1,255}))?", re.ASCII)
_POINT = re.compile(r"\d{1,4}(:\d{1,2}){1,4}", re.ASCII)
_RELATIVE = re.compile(r"(?:(\d{1,4})/)?(\d{1,5})?(?:/?(\d{1,5}):(\d{1,6})?)?", re.ASCII)
_ABSOLUTE = re.compile(
    r"/?(?:(?P<year>\d{4})(?:/|\Z))?(?:(\d{1,4})(?:/|\Z))?(?:(\d{1,4})(?:/|\Z))?(?:(?P<hour>\d{1,2}):(?P<minute>\d{1,2})?)?",
    re.ASCII,
)
"""What has four digits in front is a year."""
_MAX_SECONDS = 2_147_483_647


class WhenError(ValueError):
    """The message is the text that could not be read; the caller says what it was for."""


def parse_limit(text: str) -> tuple[int, str | None]:
    """`[hours:]minutes[/host_or_model]`: (seconds, host or model whose CPU factor scales them). Raises WhenError."""
    match = _LIMIT.fullmatch(text.strip())
    if match is None:
        raise WhenError(text)
    seconds = (int(match[1] or 0) * 60 + int(match[2])) * 60
    if seconds > _MAX_SECONDS:
        raise WhenError(text)
    return seconds, match[3]


def parse_point(text: str, now: datetime) -> datetime:
    """`[[[year:]month:]day:]hour:minute`: the next matching time after now. Raises WhenError."""
    if _POINT.fullmatch(text.strip()) is None:
        raise WhenError(text)
    fields = [int(field) for field in text.strip().split(":")]
    hour, minute = fields[-2:]
    dates = fields[:-2]
    if hour > 23 or minute > 59:
        raise WhenError(text)
    try:
        return _next(dates, now.replace(hour=hour, minute=minute, second=0, microsecond=0), now)
    except (ValueError, OverflowError):
        raise WhenError(text) from None


def _next(dates: list[int], today: datetime, now: datetime) -> datetime:
    if not dates:
        return today if today > now else today + timedelta(days=1)
    if len(dates) == 1:
        candidates = [_shifted(today.replace(day=1), ahead, dates[0]) for ahead in range(3)]
    elif len(dates) == 2:
        candidates = [_date(today, today.year + ahead, *dates) for ahead in range(9)]
    else:
        candidates = [_date(today, *dates)]
    for candidate in candidates:
        if candidate is not None and candidate > now:
            return candidate
    raise ValueError("no such time ahead")


def _date(clock: datetime, year: int, month: int, day: int) -> datetime | None:
    if not 1 <= month <= 12 or not 1 <= year <= 9999 or not 1 <= day <= monthrange(year, month)[1]:
        return None
    return clock.replace(year=year, month=month, day=day)


def _shifted(clock: datetime, months: int, day: int) -> datetime | None:
    count = clock.year * 12 + clock.month - 1 + months
    return _date(clock, count // 12, count % 12 + 1, day)


def parse_interval(text: str, now: datetime) -> tuple[datetime | None, datetime | None]:
    """`t0,t1`, `t0,`, `,t1`, or one time, which stands for the whole day, month … that it names; None: open end."""
    if len(text) > 100 or text.count(",") > 1:
        raise WhenError(text)
    first, comma, last = (piece.strip() for piece in text.partition(","))
    if not first and not last:
        raise WhenError(text)
    try:
        begin = _period(first, now)[0] if first else None
        until = _period(last if comma else first, now)[1] if last or not comma else None
    except (ValueError, OverflowError):
        raise WhenError(text) from None
    if not comma and first.startswith(".-"):
        until = now
    if begin is not None and until is not None and begin > until and last.startswith(".-"):
        begin, until = until, begin  # `.,.-2`: between now and two days ago
    if begin is not None and until is not None and begin > until:
        raise WhenError(text)
    return begin, until


def _period(text: str, now: datetime) -> tuple[datetime, datetime]:
    """First and last second of the period that a single time names."""
    if text == ".":
        return now, now
    if text.startswith(".-"):
        point = _ago(text[2:], now)
        return point, point
    return _absolute(text, now)


def _ago(text: str, now: datetime) -> datetime:
    match = _RELATIVE.fullmatch(text.removeprefix("/"))
    if not text or match is None or not any(match.groups()):
        raise ValueError(text)
    months, days, hours, minutes = (int(group or 0) for group in match.groups())
    count = now.year * 12 + now.month - 1 - months
    if count < 12:
        raise ValueError(text)
    day = min(now.day, monthrange(count // 12, count % 12 + 1)[1])
    point = now.replace(year=count // 12, month=count % 12 + 1, day=day)
    return point - timedelta(days=days, hours=hours, minutes=minutes)


def _absolute(text: str, now: datetime) -> tuple[datetime, datetime]:
    """`[year/][month/][day][/hour:minute]`; `3/` is March, `17` and `/17` the 17th, `9:` nine o'clock."""
    found = _ABSOLUTE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    year = int(found["year"]) if found["year"] else None
    values = [int(number) for number in (found[2], found[3]) if number]
    clock = found["hour"] is not None
    if (clock and year is not None and len(values) != 2) or not (values or clock or year):
        raise ValueError(text)
    if clock:
        return _minute(_day(year, values, now)[0], found["hour"], found["minute"])
    if year is not None and not values:
        return _whole(_midnight(now, year, 1, 1), _midnight(now, year, 12, 31) + timedelta(days=1))
    if len(values) == 1 and (text.endswith("/") or year is not None):
        first = _midnight(now, year or now.year, values[0], 1)
        return _whole(first, first + timedelta(days=monthrange(first.year, first.month)[1]))
    return _day(year, values, now)


def _midnight(now: datetime, year: int, month: int, day: int) -> datetime:
    return now.replace(year=year, month=month, day=day, hour=0, minute=0, second=0, microsecond=0)


def _day(year: int | None, values: list[int], now: datetime) -> tuple[datetime, datetime]:
    month, day = ([now.month, now.day, *values] if not values else [now.month, *values])[-2:]
    first = _midnight(now, year or now.year, month, day)
    return _whole(first, first + timedelta(days=1))


def _minute(day: datetime, hour: str, minute: str | None) -> tuple[datetime, datetime]:
    first = day.replace(hour=int(hour), minute=int(minute or 0))
    return _whole(first, first + (timedelta(minutes=1) if minute else timedelta(hours=1)))


def _whole(first: datetime, after: datetime) -> tuple[datetime, datetime]:
    return first, after - timedelta(seconds=1)
