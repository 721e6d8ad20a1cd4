"""The query ``api``: what of whose jobs its records say, counts, arrays and the chart."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lavad.core import events as ev
from lavad.core.lang.asks import Caller
from lavad.core.lang.cpus import Binding
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import GpuState, PartUsage
from lavad.core.site.pend_reason import PendReason
from tests.support.worlds.query_cluster import ADMIN, ALICE, BOB, QueryCluster, at, element


def ask(world: QueryCluster, *words: str, caller: Caller = ALICE, **options: Any) -> Any:
    out, err, status = world.ask("api", *words, caller=caller, **options)
    assert (err, status) == ("", 0), err
    return msgspec.json.decode(out)


def refused(world: QueryCluster, *words: str, caller: Caller = ALICE, **options: Any) -> str:
    _, err, status = world.ask("api", *words, caller=caller, **options)
    assert status == 255
    return err.strip()


def full(level: int) -> QueryCluster:
    """A job of bob's that runs, one that waits, an array and one that has ended."""
    world = QueryCluster(secure_job_info_level=level)
    world.submit(1, user="bob")
    world.start(1)
    world.submit(2, user="bob")
    world.submit(3, name="many", indices="1-9", user="bob")
    world.submit(4, user="bob")
    world.start(4)
    world.finish(4)
    return world


def test_nobody_sees_more_of_others_jobs_than_the_site_lets_them() -> None:
    world = full(4)
    for caller, seen in ((BOB, ["4", "3", "2", "1"]), (ADMIN, ["4", "3", "2", "1"]), (ALICE, [])):
        assert [row["id"] for row in ask(world, "jobs", caller=caller)["jobs"]] == seen
        assert [row["id"] for row in ask(world, "jobs", caller=caller, sort="slots")["jobs"]] == sorted(set(seen) - {"4"})
        assert [row["id"] for row in ask(world, "host", "ol2", caller=caller)["jobs"]] == (["1"] if seen else [])
        chart = ask(world, "chart", caller=caller, **{"from": str(at("11:30:00"))})
        assert sorted(block["id"] for block in chart["blocks"]) == (["1", "4"] if seen else [])
    for words in (("job", "1"), ("job", "4"), ("why", "2"), ("array", "3")):
        assert "is not found" in refused(world, *words)
        ask(world, *words, caller=BOB)


def test_an_array_is_no_job_and_its_elements_are() -> None:
    world = full(4)
    told = "Job <3> is an array: name one of its elements, as 3[1]"
    assert [refused(world, what, "3", caller=BOB) for what in ("job", "why")] == [told, told]
    ask(world, "job", "3[1]", caller=BOB)


def test_a_summary_is_no_detail() -> None:
    world = full(5)
    assert len(ask(world, "jobs")["jobs"]) == 4
    assert refused(world, "job", "1") == "Job <1>: User permission denied"


def test_the_overview_counts_jobs_and_elements_with_their_reasons() -> None:
    world = full(0)
    world.submit(5, held=True)
    world.submit(6, dependency="done(5)", parents=(5,))
    found = ask(world, "overview")
    counts = {name: count for name, count in found["counts"].items() if count}
    assert counts == {"run": 1, "pend": 11, "psusp": 1}
    assert sum(reason["jobs"] for reason in found["reasons"]) == 12
    assert (found["used"], found["host_count"]) == (1, 3)


def test_the_overview_tells_why_the_elements_of_an_array_wait() -> None:
    world = full(0)
    world.soft.why_job[3] = PendReason.JOB_ARRAY_LIMIT
    found = {reason["text"]: reason["jobs"] for reason in ask(world, "overview")["reasons"]}
    assert found == {"The job array has reached its job slot limit": 9, "New job is waiting for scheduling": 1}


def test_a_host_says_whose_which_cores_are_and_what_its_gpus_draw() -> None:
    world = QueryCluster(with_gpus=True)
    world.submit(1)
    world.start(1, binds=(Binding(cpus=(0, 1)), Binding(cpus=(2, 3))))
    assert ask(world, "host", "ol2")["bound"] == [{"job": "1", "cpus": "0,1 2,3"}]
    assert ask(world, "host", "ol2")["row"]["power"] is None
    world.soft.gpus["ol2"] = {"GPU-a": GpuState("GPU-a", power=310.0), "GPU-b": GpuState("GPU-b")}
    assert ask(world, "host", "ol2")["row"]["power"] == 310.0
    assert ask(world, "host", "ol3")["bound"] == []


def test_an_array_is_told_in_runs_of_equal_elements() -> None:
    world = full(0)
    world.start(element(3, 4))
    world.start(element(3, 5))
    world.finish(element(3, 5), status=256)
    found = ask(world, "array", "3")
    assert found["runs"] == [[1, 3, "PEND"], [4, 4, "RUN"], [5, 5, "EXIT"], [6, 9, "PEND"]]
    assert ask(world, "jobs", array="3", sort="id", limit="2")["jobs"][1]["id"] == "3[2]"
    (row,) = ask(world, "jobs", search="many")["jobs"]
    assert (row["state"], row["elements"]["exit"]) == ("RUN", 1)


@pytest.mark.parametrize(
    ("state", "ids"), [("live", "3 2 1"), ("running", "1"), ("waiting", "3 2"), ("finished", "4"), ("DONE,RUN", "4 1")]
)
def test_states_choose_jobs(state: str, ids: str) -> None:
    assert [row["id"] for row in ask(full(0), "jobs", state=state)["jobs"]] == ids.split()


def test_cursors_are_of_their_order_and_of_nobody_elses_making() -> None:
    world = full(0)
    cursor = ask(world, "jobs", limit="1")["next"]
    assert "another order" in refused(world, "jobs", sort="id", cursor=cursor)
    assert "not one that lava gave" in refused(world, "jobs", cursor="AAAA")


def test_use_says_from_when_on_jobs_are_kept_and_what_each_wasted(monkeypatch: pytest.MonkeyPatch) -> None:
    world = QueryCluster()
    for job, hosts, cpu in ((1, "ol2:2", 0.0), (2, "ol2:1", 4000.0)):
        world.submit(job)
        world.start(job, "11:00:00", hosts=hosts)
        world.finish(job, "11:30:00", utime=cpu, stime=0.0)
    page = ask(world, "use", caller=ALICE, **{"from": str(at("11:00:00"))})
    [row] = page["rows"]
    # the second used more than its slot: that is no use of the first one's
    assert (row["slot_hours"], row["slot_waste_hours"], page["kept_since"]) == (1.5, 1.0, None)
    monkeypatch.setattr(world.store, "kept_since", lambda: at("11:10:00"))
    assert ask(world, "use", caller=ALICE, **{"from": str(at("11:00:00"))})["kept_since"] == at("11:10:00")
    parts = ask(world, "use", caller=ALICE, **{"from": str(at("11:00:00")), "steps": "7"})
    assert [step["begin"] for step in parts["steps"][1:]] == [step["end"] for step in parts["steps"][:-1]]
    assert (len(parts["steps"]), parts["steps"][0]["begin"], parts["steps"][-1]["end"]) == (7, parts["begin"], parts["end"])
    of_steps = [row for step in parts["steps"] for row in step["rows"]]
    assert sum(row["jobs"] for row in of_steps) == sum(row["jobs"] for row in parts["rows"]) > 0
    assert "a number from 0 to 62" in refused(world, "use", steps="63")
    assert ask(world, "use", caller=ALICE, **{"from": str(at("11:20:00"))})["kept_since"] is None


def test_the_story_of_a_job_has_its_end_when_it_ended() -> None:
    """As bhist and its row have it, where the master heard of it late."""
    world = QueryCluster()
    world.submit(1)
    world.start(1, "11:34:00")
    world.feed(ev.JobFinished(at=at("11:55:00"), key=1, state=JobState.DONE, ended=at("11:36:00")))
    found = ask(world, "job", "1")
    assert found["story"][-1]["at"] == found["row"]["ended"] == at("11:36:00")


def test_what_an_earlier_attempt_used_on_a_host_is_not_shown_as_use_of_this_one() -> None:
    world = QueryCluster()
    world.submit(1)
    world.start(1)
    for attempt, cpu in ((0, 0.0), (1, 7.0)):
        world.soft.usage[1] = {"ol2": PartUsage(key=1, attempt=attempt, at=at("11:35:00"), cpu=7.0)}
        found = ask(world, "job", "1")
        assert (found["cpu_time"], found["parts"][0]["cpu"]) == (cpu, cpu)
