"""Advance reservations: what brsvadd and brsvmod accept, and that no two hold the same slots."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.reserve.change import change
from lavad.core.decide.reserve.reservations import add
from lavad.core.decide.reserve.times import read_dates, read_times
from lavad.core.lang.asks import AddReservation, Caller, ChangeReservation, Refused
from lavad.core.site.conf import Conf, Params
from lavad.core.site.reservation import Reservation
from lavad.local_time import local_time
from tests.support.worlds.world import World

BOSS = Caller("boss", 1, "h1")
MONDAY = datetime(2026, 11, 23, 12, tzinfo=UTC)
DAY = timedelta(days=1)
EVERY_TUESDAY, TUESDAY = "2:9:00-2:10:00", datetime(2026, 11, 24, 9, tzinfo=UTC)


class Site(World):
    """Hosts h1 and h2 with four slots each, on a Monday at noon."""

    def __init__(self) -> None:
        super().__init__(Conf(admins=("boss",)), now=MONDAY.timestamp())
        self.hosts("h1", "h2")

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    def take(self, decided: Decided) -> list[ev.Event]:
        self.apply(*decided.events)
        return decided.events

    def add(self, name: str, **fields: Any) -> Reservation:
        asked = AddReservation(name=name, users="ann", hosts="h1", slots=4, **fields)
        self.take(add(self.cluster, asked, BOSS, self.now, self.at))
        return self.row(name)

    def change(self, name: str, verb: str = "", **fields: Any) -> Reservation:
        self.take(change(self.cluster, ChangeReservation(name=name, verb=verb, **fields), BOSS, self.now, self.at))
        return self.row(name)

    def row(self, name: str) -> Reservation:
        return self.cluster.reservations.rows[name]

    def begin(self, name: str) -> datetime:
        return datetime.fromtimestamp(self.row(name).begin, UTC)


@pytest.fixture
def site() -> Site:
    return Site()


def test_an_occurrence_is_restored_only_while_its_slots_are_free(site: Site) -> None:
    site.add("weekly", window=EVERY_TUESDAY)
    site.change("weekly", "disable", dates="24")
    assert site.begin("weekly") == TUESDAY + 7 * DAY
    site.add("once", begin="24:9:30", end="24:9:45")
    with pytest.raises(Refused, match="h1: Not enough processors to be reserved at this time"):
        site.change("weekly", "disable")
    assert site.begin("weekly") == TUESDAY + 7 * DAY
    site.change("once", begin="24:10:00", end="24:11:00")
    site.change("weekly", "disable")
    assert site.begin("weekly") == TUESDAY


def test_a_cancelled_occurrence_stays_cancelled_when_the_window_changes(site: Site) -> None:
    site.add("weekly", window=EVERY_TUESDAY)
    site.change("weekly", "disable", dates="24")
    site.change("weekly", window="2:8:00-2:10:00")
    assert site.begin("weekly") == TUESDAY + 7 * DAY - timedelta(hours=1)


@pytest.mark.parametrize("dates", ["9999:12:31", "1:1:1", "1:1:1-24", "0:1:1", "31:31", "1_0", "+5", "", "24-23"])
def test_dates_that_are_none_are_refused(dates: str) -> None:
    with pytest.raises(Refused):
        read_dates(dates, local_time(MONDAY.timestamp()))


def test_dates_are_whole_days() -> None:
    midnight = MONDAY.replace(hour=0)
    assert read_dates("24-25", MONDAY) == ((midnight + DAY).timestamp(), (midnight + 3 * DAY).timestamp())
    assert read_dates("2027:1:2", MONDAY)[0] == datetime(2027, 1, 2, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("window", ["0:0:0-0:0:9", "6:23:51-0:0:0", "6:23:55-0:0:4", "1:0:0-1:0:9", "0:00-0:09"])
def test_a_recurring_window_has_ten_minutes(window: str) -> None:
    with pytest.raises(Refused, match="10 minutes"):
        read_times("", "", window, MONDAY.timestamp(), MONDAY)


@pytest.mark.parametrize("window", ["0:0:0-0:0:10", "6:23:50-0:0:0", "6:23:55-0:0:5", "1:0:0-1:0:10", "0:00-0:10", "0:00-24:00"])
def test_a_recurring_window_of_ten_minutes_is_taken(window: str) -> None:
    assert read_times("", "", window, MONDAY.timestamp(), MONDAY)[2] == window


def test_a_user_has_no_more_reservations_than_the_site_allows(site: Site) -> None:
    site.configure(params=Params(advrsv_user_limit=2))
    days = [{"begin": f"2026:11:{day}:9:0", "end": f"2026:11:{day}:10:0"} for day in (24, 25, 26)]
    for name, day in zip("ab", days, strict=False):
        site.add(name, **day)
    with pytest.raises(Refused, match="No more reservation IDs can be used now"):
        site.add("c", **days[2])
    asked = AddReservation(name="d", users="bob", hosts="h2", slots=4, begin="2026:11:26:9:0", end="2026:11:26:10:0")
    assert site.take(add(site.cluster, asked, BOSS, site.now, site.at))
