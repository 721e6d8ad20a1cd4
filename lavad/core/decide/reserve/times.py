"""Times of a reservation: ``-b`` and ``-e`` (``[[[year:]month:]day:]hour:minute``), or ``-t`` (a recurring window)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from lavad.core.lang import when
from lavad.core.lang.asks import Refused
from lavad.core.lang.windows import WindowError, parse_windows
from lavad.core.site.reservation import joined, next_period

SHORTEST = 600.0
_DATE = re.compile(r"(?:(?:\d{1,4}:)?\d{1,2}:)?\d{1,2}", re.ASCII)


def read_times(begin: str, end: str, window: str, now: float, local: datetime) -> tuple[float, float, str]:
    """(begin, end, recurring window) of the first period; raises Refused."""
    if window:
        if begin or end:
            raise Refused("Options -t and -b, -e cannot be used together")
        return _recurring(window, local)
    if not begin or not end:
        raise Refused("A begin time and an end time, or a time window, are needed")
    if begin.count(":") != end.count(":"):
        raise Refused(f"{end}: The begin time and the end time must have the same syntax")
    first = read_point(begin, local, "begin time")
    last = read_point(end, datetime.fromtimestamp(first, local.tzinfo), "end time")
    return check_period(first, last, now)


def read_point(text: str, local: datetime, what: str) -> float:
    """A time given to the minute; the current minute counts as future. Raises Refused."""
    before = local.replace(second=0, microsecond=0) - timedelta(seconds=1)
    try:
        return when.parse_point(text, before).timestamp()
    except when.WhenError:
        raise Refused(f"{text}: Bad {what}") from None


def check_period(first: float, last: float, now: float) -> tuple[float, float, str]:
    """(begin, end, "") of the period; raises Refused where the times contradict each other."""
    if last <= first:
        raise Refused("The begin time must be earlier than the end time")
    if last <= now:
        raise Refused("The end time must be later than the current time")
    if last - first < SHORTEST:
        raise Refused("An advance reservation must be 10 minutes or more in length")
    return first, last, ""


def _recurring(window: str, local: datetime) -> tuple[float, float, str]:
    try:
        parsed = parse_windows(window)
    except WindowError as error:
        raise Refused(str(error)) from None
    if not parsed.spans:
        raise Refused(f"{window}: Bad time window")
    if any(closes - opens < SHORTEST for opens, closes in joined(parsed)):
        raise Refused("An advance reservation must be 10 minutes or more in length")
    begin, end = next_period(parsed.text, local)
    return begin, end, parsed.text


def read_dates(text: str, local: datetime) -> tuple[float, float]:
    """``-td``: ``[[year:]month:]day-[[year:]month:]day``, whole days; raises Refused."""
    first, dash, last = text.partition("-")
    try:
        begin, end = [_day(word, local) for word in (first, last if dash else first)]
        times = begin.timestamp(), (end + timedelta(days=1)).timestamp()
    except (ValueError, OverflowError):
        raise Refused(f"{text}: Bad date") from None
    if end < begin:
        raise Refused(f"{text}: The begin date must not be later than the end date")
    return times


def _day(text: str, local: datetime) -> datetime:
    """A day; a missing year or month is the current one."""
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    fields = [int(field) for field in text.split(":")]
    year, month, day = [local.year, local.month, local.day][: 3 - len(fields)] + fields
    return local.replace(year=year, month=month, day=day, hour=0, minute=0, second=0, microsecond=0)
