"""Jobs with roles: the order of starts, kills and suspensions, hosts that are lost or refuse."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.decide.control.control import kill
from lavad.core.decide.report import parts
from lavad.core.job.job import PendingSignal
from lavad.core.lang.asks import Kill, Select
from lavad.core.lang.states import JobState, PartState, SignalKind, TermReason
from lavad.core.rules.effects import FinishPart, KillPart, StartTask
from tests.support.worlds.bench import Bench
from tests.support.worlds.roles import TERM, Roles, code, role

MPI = (role("launcher", kind="launcher"), role("worker", command="", kind="hold", count=4))


def test_the_launcher_starts_when_the_others_run(bench: Bench) -> None:
    """Reserved, prepared, released on every host, all others running: then the launcher is started."""
    job = Roles(bench, MPI[0], role("worker", count=8))
    bench.now += 1
    bench.step()
    hosts = [part.host for part in job.attempt.parts]
    assert len(hosts) == 3
    for host in hosts:
        assert not job.due(StartTask)
        bench.said("prepared", job.key, host, f"{host}:1")
    for host in hosts:
        assert not job.due(StartTask)
        bench.start(job.key, host)
    assert [one.rank for one in job.due(StartTask) if isinstance(one, StartTask)] == [0]
    job.started(0)
    assert not job.due(StartTask)
    assert job.ended(0) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.DONE


def test_a_launcher_may_start_at_once(bench: Bench) -> None:
    """``launcher_start`` at_once: with its part, as all others."""
    job = Roles(bench, MPI[0], role("worker", count=8), launcher_start="at_once").run()
    assert not job.due(StartTask)
    assert set(job.states()) == {"RUNNING"}


def test_roles_start_one_after_the_other(bench: Bench) -> None:
    """A role once all tasks of those it names have been started, a launcher once all others have; what has ended was started."""
    job = Roles(
        bench, role("go", kind="launcher"), role("b", after=["a"]), role("a", count=2, after=["first"]), role("first")
    ).run()

    def due() -> list[int]:
        return [one.rank for one in job.due(StartTask) if isinstance(one, StartTask)]

    assert (job.names(), due()) == (["go[0]", "b[0]", "a[0]", "a[1]", "first[0]"], [2, 3])
    job.started(2)
    assert due() == [3]
    job.started(3)
    assert due() == [1]
    assert job.ended(2) == ["TaskEnded"]
    job.started(1)
    assert due() == [0]


def test_a_task_that_starts_again_waits_for_those_before_it(bench: Bench) -> None:
    job = Roles(bench, role("a", restart="OnFailure"), role("b", after=["a"], restart="OnFailure")).run()
    job.started(1)
    for rank in (0, 1):
        assert job.ended(rank, code(1)) == ["TaskEnded", "TaskRetried"]
    assert [one.rank for one in job.due(StartTask) if isinstance(one, StartTask)] == [0]
    job.started(0)
    assert [one.rank for one in job.due(StartTask) if isinstance(one, StartTask)] == [1]


def test_the_launcher_decides_and_workers_only_hold_slots(bench: Bench) -> None:
    """Success is the launcher's; its failure is the job's."""
    job = Roles(bench, *MPI).run()
    job.started(0)
    assert job.ended(0, code(42)) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT
    outcome = bench.outcome(job.key)
    assert outcome is not None
    assert outcome.status == code(42)


# -- losses and signals -----------------------------------------------------------------------------------------------------


def test_nothing_starts_again_in_a_job_that_is_killed(bench: Bench) -> None:
    """``bkill`` ends a job whose tasks always restart."""
    job = Roles(bench, role(count=2, restart="Always")).run()
    pending = PendingSignal(kind=SignalKind.KILL, at=bench.now, by="alice", reason=TermReason.TERM_OWNER)
    bench.apply(ev.SignalRequested(at=bench.now, key=job.key, pending=pending))
    assert job.ended(0, TERM) == ["TaskEnded"]
    assert job.ended(1, TERM) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT
    outcome = bench.outcome(job.key)
    assert outcome is not None
    assert outcome.reason is TermReason.TERM_OWNER


def test_a_suspended_job_starts_no_task(bench: Bench) -> None:
    job = Roles(bench, role(count=2, restart="OnFailure")).run()
    bench.apply(ev.JobSuspended(at=bench.now, key=job.key, state=JobState.USUSP))
    job.ended(0, code(1))
    assert not job.due(StartTask)
    bench.apply(ev.JobResumed(at=bench.now, key=job.key))
    assert len(job.due(StartTask)) == 1


@pytest.mark.parametrize("rerunnable", [False, True])
def test_a_lost_host_takes_the_whole_job(bench: Bench, rerunnable: bool) -> None:
    """Bad input: a host lost under a job with roles: all of it ends, or waits again, with that reason; nothing restarts."""
    options: dict[str, Any] = {"r": True} if rerunnable else {}
    job = Roles(bench, role(count=8, restart="Always"), options=options).run()
    first, lost = (part.host for part in job.attempt.parts)
    bench.take(parts.fenced(bench.cluster, job.key, lost, bench.now))
    assert [part.state for part in job.attempt.parts] == [PartState.RUNNING, PartState.FENCED]
    assert job.ended(0, 9) == []
    assert job.due(KillPart)
    assert not job.due(StartTask, FinishPart)
    bench.ended(job.key, first, 9)
    if rerunnable:
        assert bench.job(job.key).state is JobState.PEND
        return
    outcome = bench.outcome(job.key)
    assert outcome is not None
    assert f"host {lost} was lost" in outcome.why


def test_a_host_that_refuses_sends_the_whole_job_back(bench: Bench) -> None:
    """Bad input: ports taken, or a host that cannot start its part: no part starts, the job waits again."""
    job = Roles(bench, role(count=8))
    bench.step()
    first, second = (part.host for part in job.attempt.parts)
    bench.said("prepared", job.key, first, f"{first}:1")
    bench.said("refused", job.key, second, "ports", "2 free ports are needed between 20000 and 31999")
    assert [one.host for one in job.due(KillPart)] == [first]
    bench.said("gone", job.key, first)
    assert bench.job(job.key).state is JobState.PEND


def test_a_task_that_was_to_start_again_does_not_once_the_job_is_killed(bench: Bench) -> None:
    """Nor does the end of the job wait for it."""
    job = Roles(bench, role(count=2, restart="OnFailure")).run()
    job.ended(0, code(1))
    assert len(job.due(StartTask)) == 1
    bench.asked(kill, Kill(jobs=Select(ids=[str(job.key)])))
    assert not job.due(StartTask)
    assert job.ended(1, TERM) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT


def test_a_job_that_is_requeued_for_its_exit_code_avoids_the_host_of_the_task_that_failed(bench: Bench) -> None:
    """Ranks are numbered by role, whatever hosts their tasks are on."""
    roles = (role("a", count=3, spread=True), role("b", count=3, spread=True))
    for rank in range(6):
        job = Roles(bench, *roles, options={"Q": "7"}).run()
        failed = job.host(rank)
        job.ended(rank, code(7))
        assert job.finish() is JobState.PEND
        assert bench.job(job.key).avoid == (failed,)
        bench.asked(kill, Kill(jobs=Select(ids=[str(job.key)])))
