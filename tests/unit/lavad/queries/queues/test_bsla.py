"""bsla of service classes with goals in time: LSF's words, what is active, on time or delayed, and the jobs by state."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.guarantees import Goal, ServiceClass
from lavad.core.events import Configured, JobSuspended
from tests.support.worlds.query_cluster import QueryCluster, at, element

DAY, NIGHT = "9:00-17:00", "17:30-8:30"


def cluster_of(*goals: Goal, clean_period: int = 3600, **fields: object) -> QueryCluster:
    c = QueryCluster(clean_period=clean_period)
    service = ServiceClass(name="tofino", goals=goals, description="day and night", priority=20, **fields)  # type: ignore[arg-type]
    classes = (ServiceClass(name="gold"), service)
    c.feed(Configured(at=c.now, conf=replace(c.cluster.conf, service_classes=classes)))
    return c


def submit(c: QueryCluster, *numbers: int, **fields: object) -> None:
    for number in numbers:
        c.submit(number, service_class="tofino", **fields)  # type: ignore[arg-type]


def shown(c: QueryCluster, slots: bool = False) -> str:
    out, err, status = c.ask("bsla", "tofino", N=slots)
    assert (err, status) == ("", 0)
    return out


def test_goals_by_day_and_by_night() -> None:
    c = cluster_of(Goal("velocity", 30, NIGHT), Goal("velocity", 1, DAY), users=("alice", "ugB"))
    submit(c, 1, 2, 3, 4)
    c.start(1)
    c.start(2)
    c.finish(2)
    c.submit(5)
    assert shown(c) == (
        "SERVICE CLASS NAME:  tofino\n -- day and night\nPRIORITY:  20\nUSER_GROUP:  alice ugB\n\n"
        "GOAL:  VELOCITY 30\nACTIVE WINDOW:  (17:30-8:30)\nSTATUS:  Inactive\nSLA THROUGHPUT:  1.00 JOBS/CLEAN_PERIOD\n\n"
        "GOAL:  VELOCITY 1\nACTIVE WINDOW:  (9:00-17:00)\nSTATUS:  Active:On time\nSLA THROUGHPUT:  1.00 JOBS/CLEAN_PERIOD\n\n"
        " NJOBS   PEND    RUN  SSUSP  USUSP FINISH\n"
        "     4      2      1      0      0      1\n\n"
    )


def test_a_deadline_that_will_be_met() -> None:
    c = cluster_of(Goal("deadline", 0, "11:40-12:10"))
    submit(c, 1, 2, 3, 4, 5, 6, limits={"run": 300})
    out = shown(c)
    assert "PRIORITY:  20\n\nGOAL:  DEADLINE\nACTIVE WINDOW:  (11:40-12:10)\nSTATUS:  Active:On time\n" in out
    assert "ESTIMATED FINISH TIME:  (Fri Nov 20 12:10)\nOPTIMUM NUMBER OF RUNNING JOBS:  1\n" in out
    assert out.endswith("     6      6      0      0      0      0\n\n")


def test_a_deadline_that_will_be_missed_with_what_runs() -> None:
    c = cluster_of(Goal("deadline", 0, "11:40-12:10"))
    submit(c, *range(1, 13), limits={"run": 300})
    c.start(1, clock="11:39:59")
    out = shown(c)
    assert "STATUS:  Active:Delayed\n" in out
    assert "ESTIMATED FINISH TIME:  (Fri Nov 20 12:39)\nOPTIMUM NUMBER OF RUNNING JOBS:  2\n" in out


@pytest.mark.parametrize(("run", "on_time"), [(0, False), (1, False), (5, True)])
def test_a_throughput_that_is_always_pursued(run: int, on_time: bool) -> None:
    c = cluster_of(Goal("throughput", 6))
    submit(c, *range(1, 12), limits={"run": 3000})
    for number in range(1, run + 1):
        c.start(number, clock="11:39:59")
    out = shown(c)
    assert "GOAL:  THROUGHPUT 6\nACTIVE WINDOW:  Always Open\n" in out
    assert f"STATUS:  Active:{'On time' if on_time else 'Delayed'}\n" in out
    assert "OPTIMUM NUMBER OF RUNNING JOBS:  5\n" in out
    assert "ESTIMATED" not in out


def test_a_throughput_is_reached_by_what_has_ended() -> None:
    c = cluster_of(Goal("throughput", 6), clean_period=1800)
    submit(c, *range(1, 12))
    for number in (1, 2, 3):
        c.start(number, clock="11:39:00")
        c.finish(number, clock="11:39:50")
    assert "STATUS:  Active:On time\nSLA THROUGHPUT:  3.00 JOBS/CLEAN_PERIOD\nOPTIMUM NUMBER OF RUNNING JOBS:  1\n" in shown(c)


def test_elements_and_slots_are_counted() -> None:
    c = cluster_of(Goal("velocity", 2))
    submit(c, 1, slots=3)
    submit(c, 2, indices="1-5", name="a")
    c.start(1, hosts="ol1:3")
    c.start(element(2, 1))
    c.finish(element(2, 1))
    c.start(element(2, 2))
    c.feed(JobSuspended(at=at("11:39:00"), key=element(2, 2)))
    assert shown(c).splitlines()[-2].split() == ["6", "3", "1", "0", "1", "1"]
    out = shown(c, slots=True)
    assert "NSLOTS   PEND    RUN  SSUSP  USUSP FINISH\n" in out
    assert out.splitlines()[-2].split() == ["8", "3", "3", "0", "1", "1"]


def test_those_with_guarantees_are_shown_beside_them() -> None:
    out, _, _ = cluster_of(Goal("velocity", 2)).ask("bsla")
    assert out.index("GOAL:  GUARANTEE") < out.index("GOAL:  VELOCITY 2")
    assert out.count("FINISH") == 1


def test_lava_why_tells_of_classes_that_come_first() -> None:
    c = cluster_of(Goal("velocity", 3))
    submit(c, 1, 2, 3, 4)
    c.start(1)
    c.submit(9, resreq="select[bigmem]")
    line = "  2 of service class tofino go before it, as its goals need so many more at once (bsla tofino)\n"
    assert line in c.ask("why", "9")[0]
    assert "of service class" not in c.ask("why", "4")[0]


def test_lava_why_is_silent_of_classes_that_have_what_they_need() -> None:
    c = cluster_of(Goal("velocity", 1, NIGHT), Goal("velocity", 1, DAY))
    submit(c, 1, 2)
    c.start(1)
    c.submit(9)
    assert "of service class" not in c.ask("why", "9")[0]
