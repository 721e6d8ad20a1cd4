"""brsvs: what is reserved, what is used of it now, whose jobs, and the slots of a host by week."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.site.reservation import Reservation
from tests.support.worlds.query_cluster import QueryCluster, at

HOUR = 3600.0
ONCE = Reservation(
    name="once", users=("alice",), hosts=(("ol1", 3), ("ol2", 1)), begin=at("11:30:00"), end=at("12:30:00"), creator="root"
)
NIGHT = Reservation(
    name="night", users=("bob",), hosts=(("ol1", 2),), begin=at("22:00:00"), end=at("22:00:00") + 8 * HOUR, window="22:0-6:0"
)


@pytest.fixture
def c() -> QueryCluster:
    found = QueryCluster()
    for row in (NIGHT, ONCE):
        found.feed(ev.AdvanceReservationSet(at=found.now, value=row))
    found.submit(1, reservation="once", slots=2, max_slots=2)
    found.start(1, hosts="ol1:2")
    found.submit(2, reservation="once")
    found.submit(3, reservation="once", name="a", indices="1-3,7")
    found.submit(4)
    return found


def test_slots_that_are_used_of_each_host(c: QueryCluster) -> None:
    """The active one first."""
    assert [line.split() for line in c.ask("brsvs")[0].splitlines()[1:]] == [
        ["once", "user", "alice", "2/4", "ol1:2/3", "11/20/11/30-11/20/12/30"],
        ["ol2:0/1"],
        ["night", "user", "bob", "0/2", "ol1:0/2", "22:0-6:0", "*"],
    ]
    assert c.ask("brsvs", "once", "nosuch")[1:] == ("nosuch: Bad reservation ID\n", 255)
    assert QueryCluster().ask("brsvs") == ("No reservation found\n", "", 0)


def test_a_reservation_at_length_names_its_jobs(c: QueryCluster) -> None:
    once, night = (c.ask("brsvs", name, l=True)[0].splitlines() for name in ("once", "night"))
    assert "Reservation Status: Active" in once
    assert once[-2:] == ["PEND Jobs: 2 3[1-3,7]", "RUN Jobs: 1"]
    assert not any("Jobs:" in line for line in night)
    at = night.index("Next Active Period:")
    assert night[at - 1] == "Reservation Status: Inactive"
    assert night[at + 1] == "    Fri Nov 20 22:00:00 2026 - Sat Nov 21 06:00:00 2026"


def test_slots_of_a_host_by_week(c: QueryCluster) -> None:
    """Nights that began in the week before are in it; -z leaves out when nothing is reserved."""
    lines = c.ask("brsvs", p="ol1")[0].split("\nHOST: ")[1].splitlines()
    assert lines[:2] == ["ol1 (MAX = 4)", "Week: 11/15/2026 - 11/21/2026"]
    rows = {line.split()[0]: list(map(int, line.split()[1:])) for line in lines[4:] if line}
    assert len(rows) == 144
    assert (rows["5:50"], rows["6:0"]) == ([2] * 7, [0] * 7)
    assert (rows["11:20"], rows["11:30"], rows["12:20"]) == ([0] * 7, [0, 0, 0, 0, 0, 3, 0], [0, 0, 0, 0, 0, 3, 0])
    assert (rows["12:30"], rows["22:0"]) == ([0] * 7, [2] * 7)
    assert len(c.ask("brsvs", z="ol1")[0].split("\nHOST: ")[1].splitlines()) == 4 + 48 + 6
    assert "HOST: ol3" not in c.ask("brsvs", p="all")[0]
