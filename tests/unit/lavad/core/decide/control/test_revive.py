"""brequeue -e and -d of finished jobs: whose they may be, and what they need of the cluster as it is now."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core.decide.base.bulk import AT_ONCE
from lavad.core.decide.base.room import TOO_MANY
from lavad.core.decide.control.control import resume, stop
from lavad.core.decide.control.revive import FinishedJobs, requeue_all
from lavad.core.job.job import Job
from lavad.core.lang.asks import Caller, Requeue, Resume, Select, Stop
from lavad.core.lang.states import JobState
from tests.support.worlds.bench import ADMIN, ALICE, BOB, Bench


def ended(bench: Bench, *statuses: int) -> list[Job]:
    """Jobs of alice that ended with these wait statuses."""
    keys = [bench.placed() for _ in statuses]
    for key, status in zip(keys, statuses, strict=True):
        bench.ended(key, bench.run(key).parts[0].host, status)
    return [bench.finished(key) for key in keys]


def brequeue(
    bench: Bench, jobs: Sequence[Job], caller: Caller = ALICE, states: Sequence[str] = ("EXIT",), hold: bool = False
) -> list[tuple[str, str]]:
    """What is answered of each."""
    ask = Requeue(jobs=Select(ids=[str(job.key) for job in jobs]), states=list(states), hold=hold)
    finished = FinishedJobs(jobs=jobs, specs=dict(bench.cluster.specs.rows))
    answer = bench.take(requeue_all(bench.cluster, ask, finished, caller, bench.now))
    return [(row["id"], row["why"]) for row in answer["results"]]


@pytest.mark.parametrize(("caller", "why"), [(ALICE, ""), (ADMIN, ""), (BOB, "User permission denied")])
@pytest.mark.parametrize("hold", [False, True])
def test_its_owner_and_administrators_may(bench: Bench, caller: Caller, why: str, hold: bool) -> None:
    [job] = ended(bench, 256)
    assert brequeue(bench, [job], caller, hold=hold) == [("1", why)]
    if why:
        assert 1 not in bench.cluster.jobs.rows
    else:
        assert bench.job(1).state is (JobState.PSUSP if hold else JobState.PEND)


@pytest.mark.parametrize(("holder", "why"), [(ALICE, ""), (ADMIN, "User permission denied")])
def test_who_held_it_last_says_whether_its_owner_may_resume_it(bench: Bench, holder: Caller, why: str) -> None:
    """Not who held it before it ran."""
    key = bench.placed("PEND")
    selected = Select(ids=[str(key)])
    bench.asked(stop, Stop(jobs=selected), ADMIN if holder is ALICE else ALICE)
    bench.asked(resume, Resume(jobs=selected), ADMIN)
    bench.step()
    bench.ended(key, bench.run(key).parts[0].host, 256)
    brequeue(bench, [bench.finished(key)], holder, hold=True)
    assert bench.asked(resume, Resume(jobs=selected), ALICE) == [(str(key), why)]


def test_only_those_in_a_state_that_is_asked_for(bench: Bench) -> None:
    done, failed = ended(bench, 0, 256)
    brequeue(bench, [done, failed], states=["EXIT"])
    assert list(bench.cluster.jobs.rows) == [failed.key]
    brequeue(bench, [done, failed], states=["DONE", "EXIT"])
    assert sorted(bench.cluster.jobs.rows) == [done.key, failed.key], "and the one that waits again stays one job"


def test_what_was_true_of_its_attempts_is_over(bench: Bench) -> None:
    [job] = ended(bench, 256)
    job = replace(job, avoid=("h1",), barred=("h2",), failures=3, failed_why="x", not_before=bench.now + 9, preempted_for=7)
    brequeue(bench, [job])
    again = bench.job(job.key)
    assert (again.avoid, again.barred, again.failures, again.not_before, again.preempted_for) == ((), (), 0, 0.0, 0)
    assert (again.run, again.outcome) == (None, None)
    assert job.key in bench.step()


def test_a_user_with_too_many_records_gets_no_more_of_them_back(bench: Bench) -> None:
    jobs = ended(bench, 256, 256)
    params = bench.cluster.conf.params
    bench.configure(params=replace(params, max_user_records=AT_ONCE - 1))
    assert brequeue(bench, jobs) == [("1", TOO_MANY), ("2", TOO_MANY)]
    bench.configure(params=params)
    assert brequeue(bench, jobs) == [("1", ""), ("2", "")]


def test_a_queue_that_is_no_more(bench: Bench) -> None:
    [job] = ended(bench, 256)
    finished_specs = dict(bench.cluster.specs.rows)
    bench.queues(QueueConfig(name="night"))
    ask = Requeue(jobs=Select(ids=["1"]), states=["EXIT"])
    answer = requeue_all(bench.cluster, ask, FinishedJobs(jobs=[job], specs=finished_specs), ALICE, bench.now).answer
    assert [row["why"] for row in answer["results"]] == ["normal: No such queue"]
