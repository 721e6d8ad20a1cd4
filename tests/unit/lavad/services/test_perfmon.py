"""badmin perfmon: what is counted in which period, and what monitors read of it."""

from __future__ import annotations

import json

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.lang import asks
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from lavad.services.perfmon import NOT_STARTED, Perfmon


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def sampled() -> tuple[Perfmon, Clock]:
    clock = Clock()
    perfmon = Perfmon(Cluster(), clock)
    perfmon.start(10)
    return perfmon, clock


def records(perfmon: Perfmon) -> dict[str, dict[str, object]]:
    return {record["name"]: record for record in json.loads(perfmon.view(True))["record"]}


def commit(*events: ev.Event) -> Committed:
    return Committed(version=1, events=events, changed=(), finished=())


def test_nothing_is_counted_before_it_is_started_nor_after_it_was_stopped() -> None:
    perfmon = Perfmon(Cluster(), Clock())
    perfmon.asked(asks.Query(command="bjobs"))
    assert perfmon.view(True) == NOT_STARTED == perfmon.stop() == perfmon.set_period(5)
    perfmon.start(0)
    assert records(perfmon)["Job information queries"]["total"] == 0
    perfmon.stop()
    assert perfmon.view(False) == NOT_STARTED


def test_queries_and_jobs_are_counted_by_period() -> None:
    perfmon, clock = sampled()
    for command in ("bjobs", "bjobs", "bhosts", "bqueues", "lsid"):
        perfmon.asked(asks.Query(command=command))
    perfmon.committed(
        commit(
            ev.JobSubmitted(at=1, key=1, spec=1, name="a", indices=Ranges.parse("1-5")),
            ev.JobSubmitted(at=1, key=2, spec=1, name="b"),
            ev.JobDispatched(at=1, key=2, attempt=1, uid="u", parts=()),
            ev.JobFinished(at=1, key=2, state=JobState.DONE),
        )
    )
    clock.now += 10
    perfmon.asked(asks.Query(command="bjobs"))
    clock.now += 10
    found = records(perfmon)
    jobs = found["Job information queries"]
    assert [jobs[name] for name in ("current", "max", "min", "avg", "total")] == [1, 2, 1, 2, 3]
    assert found["Processed requests: mbatchd"]["total"] == 6
    assert [found[name]["max"] for name in ("Host information queries", "Queue information queries")] == [1, 1]
    assert [found[f"Jobs {what}"]["total"] for what in ("submitted", "dispatched", "completed")] == [6, 1, 1]


def test_the_page_has_what_monitors_look_for() -> None:
    perfmon, clock = sampled()
    perfmon.planned(Plan(version=1))
    clock.now += 3
    perfmon.planned(Plan(version=2))
    page = json.loads(perfmon.view(True))
    assert (page["num"], page["period"], page["start"]) == (16, 10, 1000)
    assert page["num"] == len(page["record"])
    assert set(page["fd"]) == {"name", "free", "used", "total"}
    assert records(perfmon)["Scheduling interval in second(s)"]["current"] == 3
    lines = perfmon.view(False).splitlines()
    assert lines[2] == "Sample period :                  10 Seconds"
    assert lines[4].split() == ["Metrics", "Last", "Max", "Min", "Avg", "Total"]
