"""bjobs -l and -x of jobs with exceptions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.job.job import End
from tests.support.worlds.query_cluster import QueryCluster, at


@pytest.fixture
def world() -> QueryCluster:
    """Jobs long (idle, over its estimate), short and plain, at 11:40."""
    c = QueryCluster(detect_idle_job_after=60)
    queues = tuple(
        replace(queue, job_overrun=600, job_underrun=60, job_idle=0.5) if queue.name == "normal" else queue
        for queue in c.cluster.conf.queues
    )
    c.feed(ev.Configured(at=at("11:00:00"), conf=replace(c.cluster.conf, queues=queues)))
    c.submit(1, name="long", estimate=300)
    c.start(1, "11:20:00")
    c.submit(2, name="short")
    c.start(2, "11:39:50")
    c.finish(2, "11:39:51")
    c.submit(3, name="plain", queue="night", estimate=6000)
    c.start(3, "11:20:00")
    return c


@pytest.mark.parametrize(
    ("job", "wanted"),
    [("1", ["EXCEPTION STATUS:  overrun idle runtime_est_exceeded"]), ("2", ["EXCEPTION STATUS:  underrun"]), ("3", [])],
)
def test_the_exceptions_of_a_job(world: QueryCluster, job: str, wanted: list[str]) -> None:
    lines = [line.strip() for line in world.ask("bjobs", job, l=True)[0].splitlines()]
    assert [line for line in lines if line.startswith("EXCEPTION")] == wanted


def test_jobs_with_exceptions(world: QueryCluster) -> None:
    assert world.ask("bjobs", x=True, a=True, noheader=True, o="job_name")[0].split() == ["long", "short"]
    table = world.ask("bqueues", "normal", l=True)[0]
    assert [line.split() for line in table.splitlines() if line.startswith(" Jobs")] == [["Jobs", "1", "0", "1"]]


def test_a_job_whose_start_was_told_with_its_end(world: QueryCluster) -> None:
    job = replace(world.cluster.jobs.rows[3], spec=world.cluster.jobs.rows[1].spec)
    assert job.run is not None
    ended = End(at=at("11:20:01"), started=at("11:20:00"))
    run = replace(job.run, started=0.0, parts=(replace(job.run.parts[0], end=ended),))
    world.cluster.jobs.put(3, replace(job, run=run))
    assert "plain" in world.ask("bjobs", x=True, noheader=True, o="job_name")[0].split()
