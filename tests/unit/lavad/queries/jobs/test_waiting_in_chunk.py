"""What listings say of a job that waits at its host behind others of its chunk."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig
from lavad.core import events as ev
from lavad.core.job.job import End, Placed
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import JobState
from tests.support.worlds.query_cluster import QueryCluster, at

FIRST, LAST = key_of(7, 1), key_of(7, 2)


@pytest.fixture
def c() -> QueryCluster:
    """A chunk of two elements on ol1, the first of which runs, and two that are pending."""
    cluster = QueryCluster()
    cluster.submit(7, name="a", indices="1-4")
    now = at("11:34:00")
    parts = (Placed(host="ol1", slots=0),), (Placed(host="ol1", slots=1),)
    cluster.feed(
        ev.JobDispatched(at=now, key=FIRST, attempt=1, uid="u1", parts=parts[0], chunk="u1"),
        ev.JobDispatched(at=now, key=LAST, attempt=1, uid="u2", parts=parts[1], chunk="u1", waits=True, ahead=(FIRST,)),
        ev.PartStarted(at=now + 1, key=FIRST, attempt=1, host="ol1", pid=5, started=now + 1),
    )
    return cluster


def words(c: QueryCluster, command: str, *arguments: str, **options: Any) -> list[str]:
    return c.ask(command, *arguments, **options)[0].split()


def test_counts_are_those_of_lsf(c: QueryCluster) -> None:
    assert words(c, "bqueues", "normal", o="njobs pend run", noheader=True) == ["4", "3", "1"]
    assert words(c, "bhosts", "ol1", o="njobs run", noheader=True) == ["1", "1"]
    assert c.ask("busers", "alice")[0].splitlines()[-1].split()[3:6] == ["4", "3", "1"]
    assert words(c, "bjobs", "7", A=True, noheader=True)[3:7] == ["4", "3", "0", "1"]
    assert words(c, "bjobs", sum=True, noheader=True)[0] == "1"


@pytest.mark.parametrize("state", [JobState.USUSP, JobState.SSUSP])
def test_while_the_one_that_runs_is_suspended_so_is_the_slot(c: QueryCluster, state: JobState) -> None:
    shown = f"njobs run {state.name.lower()}"
    c.feed(ev.JobSuspended(at=at("11:34:05"), key=FIRST, state=state))
    assert words(c, "bqueues", "normal", o="njobs pend run susp", noheader=True) == ["4", "3", "0", "1"]
    assert words(c, "bhosts", "ol1", o=shown, noheader=True) == ["1", "0", "1"]
    assert c.ask("busers", "alice")[0].splitlines()[-1].split()[3:6] == ["4", "3", "0"]
    c.feed(ev.JobResumed(at=at("11:34:09"), key=FIRST))
    assert words(c, "bqueues", "normal", o="njobs pend run susp", noheader=True) == ["4", "3", "1", "0"]
    assert words(c, "bhosts", "ol1", o=shown, noheader=True) == ["1", "1", "0"]


def test_bjobs_shows_its_state_and_its_host(c: QueryCluster) -> None:
    assert words(c, "bjobs", "7[2]", o="stat exec_host nalloc_slot", noheader=True) == ["WAIT", "ol1", "1"]
    assert words(c, "bjobs", "7[1]", o="stat exec_host nalloc_slot", noheader=True) == ["RUN", "ol1", "1"]
    shown = " ".join(words(c, "bjobs", "7[2]", l=True))
    assert "[2] dispatched on <ol1>, Waiting behind other jobs of its chunk;" in shown
    assert "started" not in shown
    assert c.ask("why", "7[2]")[0].startswith("Job <7[2]>, User <alice>, Queue <normal>: it waits at its host behind others")


def test_the_time_that_it_waits_there_is_pending(c: QueryCluster) -> None:
    end = End(at=at("11:34:20"), started=at("11:34:15"))
    c.feed(ev.JobFinished(at=at("11:34:20"), key=LAST, state=JobState.DONE, end=end))
    assert "Waiting behind other jobs of its chunk;" in c.ask("bhist", "7[2]", l=True)[0]
    pend, _, run = words(c, "bhist", "7[2]")[-7:][:3]
    assert run == "5"
    assert int(pend) > 14


def test_an_application_profile_counts_it_as_pending() -> None:
    cluster = QueryCluster()
    conf = cluster.cluster.conf
    cluster.feed(ev.Configured(at=at("11:00:00"), conf=replace(conf, apps=(ApplicationConfig(name="short", chunk_job_size=4),))))
    cluster.submit(7, name="a", indices="1-4", app="short")
    now = at("11:34:00")
    parts = (Placed(host="ol1", slots=0),), (Placed(host="ol1", slots=1),)
    cluster.feed(
        ev.JobDispatched(at=now, key=FIRST, attempt=1, uid="u1", parts=parts[0], chunk="u1"),
        ev.JobDispatched(at=now, key=LAST, attempt=1, uid="u2", parts=parts[1], chunk="u1", waits=True, ahead=(FIRST,)),
    )
    assert words(cluster, "bapp", "short", noheader=True) == ["short", "4", "3", "1", "0"]
    assert "CHUNK_JOB_SIZE:  4" in cluster.ask("bapp", "short", l=True)[0]
