"""The zone of the system, summer time included, and reservations in another zone than the system's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from lavad.core.lang.when import parse_point
from lavad.core.site.reservation import Reservation, next_period, periods
from lavad.local_time import SYSTEM_ZONE, local_time

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
HOUR = 3600.0
SUMMER_ENDS = 1_792_890_000.0
"""2026-10-25 01:00 UTC: three o'clock becomes two."""


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", BERLIN)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_the_hour_that_comes_twice() -> None:
    first, second = local_time(SUMMER_ENDS - HOUR), local_time(SUMMER_ENDS)
    assert (first.hour, second.hour) == (2, 2)
    assert (first.utcoffset(), second.utcoffset()) == (timedelta(hours=2), timedelta(hours=1))
    assert (first.timestamp(), second.timestamp()) == (SUMMER_ENDS - HOUR, SUMMER_ENDS)
    assert (first.tzname(), first.dst()) == ("CEST", timedelta(hours=1))


@pytest.mark.usefixtures("berlin")
def test_the_hour_that_there_is_not() -> None:
    """`bsub -b 2:30` on the day on which two o'clock becomes three: not before half past two."""
    noon = datetime(2027, 3, 27, 12, tzinfo=SYSTEM_ZONE)
    for clock, meant in (("1:59", 1), ("2:30", 3), ("3:01", 3)):
        point = local_time(parse_point(clock, noon).timestamp())
        assert (point.day, point.hour, point.minute) == (28, meant, int(clock[2:])), clock


@pytest.mark.usefixtures("berlin")
def test_a_period_that_is_over_does_not_come_back_in_the_hour_that_comes_twice() -> None:
    """1:00 to 2:30: from the second two o'clock on, the next one is that of the next day."""
    begin, end = next_period("1:00-2:30", local_time(SUMMER_ENDS - HOUR))
    assert (begin, end) == (SUMMER_ENDS - 2 * HOUR, SUMMER_ENDS - HOUR / 2)
    assert next_period("1:00-2:30", local_time(end)) == (begin + 25 * HOUR, end + 25 * HOUR)
    assert next_period("1:00-2:30", local_time(SUMMER_ENDS)) == (begin + 25 * HOUR, end + 25 * HOUR)


@pytest.mark.usefixtures("berlin")
def test_nine_o_clock_stays_nine_o_clock_over_the_change() -> None:
    saturday = datetime(2026, 10, 24, 9, tzinfo=SYSTEM_ZONE)
    sunday = saturday + timedelta(days=1)
    assert sunday.hour == 9
    assert sunday.timestamp() - saturday.timestamp() == 25 * HOUR


@pytest.mark.usefixtures("berlin")
def test_a_reservation_recurs_in_the_zone_that_it_is_asked_in() -> None:
    zone = timezone(timedelta(hours=-7))
    start = datetime(2026, 11, 22, 0, 0, tzinfo=zone)
    row = Reservation(name="r", window="1:09:00-1:10:00 2:09:00-2:10:00")
    found = periods(row, start.timestamp(), start.timestamp() + 7 * 24 * HOUR, start)
    assert [datetime.fromtimestamp(begin, zone).strftime("%a %H:%M") for begin, _ in found] == ["Mon 09:00", "Tue 09:00"]
