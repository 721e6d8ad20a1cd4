"""A job that waits again avoids the host of the rank that failed first, or that hung."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import FairShare, RequeueExit
from lavad.core import events as ev
from lavad.core.decide.control import control
from lavad.core.decide.report import ending
from lavad.core.job.job import Attempt, End, Part, Suspect
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Kill, Migrate, Requeue, Select
from lavad.core.lang.states import HangState, JobState, TermReason
from lavad.core.rules.effects import KillPart, effects_due
from tests.support.worlds.bench import Bench


def run_of(rank: int, status: int = 256, slots: tuple[int, ...] = (2, 4, 2)) -> Attempt:
    parts = tuple(Part(host=f"h{number}", slots=count) for number, count in enumerate(slots, 1))
    return Attempt(number=1, uid="u", dispatched=1.0, parts=parts, verdict=End(status=status, first_rank=rank))


@pytest.mark.parametrize(
    ("rank", "launch", "host"),
    [
        (0, "mpi", "h1"),
        (1, "mpi", "h1"),
        (2, "mpi", "h2"),
        (5, "pytorch(gpu)", "h2"),
        (7, "mpi", "h3"),
        (1, "torchrun", "h2"),
        (-1, "mpi", ""),
        (9, "mpi", ""),
    ],
)
def test_the_host_of_a_rank(rank: int, launch: str, host: str) -> None:
    spec = Spec(user="u", queue="normal", slots=8, launch=launch)
    assert ending.first_failed_host(run_of(rank), spec) == ((host,) if host else ())
    assert ending.first_failed_host(run_of(rank, 0), spec) == ()
    assert ending.first_failed_host(run_of(0, slots=(8,)), spec) == ()


def test_the_host_of_a_torchrun_whose_job_has_lost_a_host_before_it() -> None:
    """It keeps its number, whatever its place among the hosts has become."""
    parts = tuple(Part(host=f"h{number}", slots=1, node_index=number) for number in (0, 2, 3))
    run = replace(run_of(2), parts=parts, elastic=True)
    assert ending.first_failed_host(run, Spec(user="u", queue="normal", slots=2, launch="torchrun(nproc=1)")) == ("h2",)


def test_an_exit_value_that_requeues_avoids_the_host_that_failed_first(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", requeue_exit_values=RequeueExit(values=(3,))))
    key = bench.placed(slots=8, launch="mpi", resreq="span[ptile=4]")
    hosts = [part.host for part in bench.run(key).parts]
    for host in hosts:
        bench.ended(key, host, 3 << 8, first_rank=6, first_reason="rank 6")
    assert bench.job(key).avoid == (hosts[1],)


@pytest.mark.parametrize(
    ("launch", "times"),
    [("torchrun(nproc=2,requeues=1)", 1), ("torchrun(requeues=0)", 0), ("torchrun", 2), ("torchrun(requeues=9)", 2)],
)
def test_a_torchrun_job_says_itself_how_often_it_is_requeued(bench: Bench, launch: str, times: int) -> None:
    """No more often than MAX_JOB_REQUEUE of its queue."""
    bench.queues(QueueConfig(name="normal", max_job_requeue=2))
    key = bench.placed(launch=launch, requeue="all")
    for _ in range(times):
        told = bench.hear("ended", key, bench.uid(key), bench.run(key).parts[0].host, End(status=9, at=bench.now), True)
        assert [one.why for one in told if isinstance(one, ev.JobRequeued)] == [
            "Requeued job is waiting for rescheduling;(exit code 137)"
        ]
        bench.now += 600
        bench.step()
        bench.start(key, bench.run(key).parts[0].host)
    bench.ended(key, bench.run(key).parts[0].host, 1 << 8)
    assert bench.finished(key).state is JobState.EXIT
    assert bench.outcome(key).why == ("it was requeued as often as it may be" if times else "")


def test_a_job_that_is_killed_and_then_lost_was_killed(bench: Bench) -> None:
    """As one whose shepherd hangs in a file, and is killed with its part."""
    lost, killed = bench.placed(), bench.placed()
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(killed)])))
    for key in (lost, killed):
        bench.ended(key, bench.run(key).parts[0].host, 0, lost="the shepherd was killed by signal 9")
    assert [bench.outcome(key).reason for key in (lost, killed)] == [TermReason.TERM_UNKNOWN, TermReason.TERM_OWNER]
    assert "the shepherd was killed by signal 9" in bench.outcome(killed).why


def test_a_requeue_of_a_job_that_hangs_avoids_the_host_of_the_rank(bench: Bench) -> None:
    key = bench.placed()
    host = bench.run(key).parts[0].host
    suspects = (Suspect(3, "h9", 7, HangState.IDLE), Suspect(0, host, 1, HangState.ALL))
    bench.apply(ev.RanksSuspected(at=bench.now, key=key, attempt=1, suspects=suspects))
    bench.asked(control.requeue, Requeue(jobs=Select(ids=[str(key)])))
    bench.ended(key, host, 9)
    assert bench.job(key).avoid == ("h9",)


@pytest.mark.parametrize("status", [0, 256])
def test_the_note_of_an_end_is_told(bench: Bench, status: int) -> None:
    key = bench.placed()
    bench.ended(key, bench.run(key).parts[0].host, status, note="its report was not written: /o: Is a directory")
    assert bench.outcome(key).why == "its report was not written: /o: Is a directory"


UNREACHED = "the job's first host cannot be reached at 10.0.0.1: Network is unreachable"


def test_a_first_host_that_others_cannot_reach_is_named(bench: Bench) -> None:
    """Its own part hears nothing of it, and is only ended."""
    key = bench.placed(slots=8, launch="mpi", resreq="span[ptile=4]")
    first, other = (part.host for part in bench.run(key).parts)
    bench.ended(key, other, 255 << 8, first_rank=-1, first_reason=UNREACHED)
    (kill,) = effects_due(bench.job(key))
    assert isinstance(kill, KillPart)
    assert (kill.host, kill.why, kill.status) == (first, f"host {other}: {UNREACHED}", 255 << 8)
    bench.ended(key, first, 9, first_rank=-1)
    outcome = bench.outcome(key)
    assert (outcome.status, outcome.why) == (255 << 8, f"host {other}: {UNREACHED}")


def test_the_first_host_is_told_how_the_job_ends_whose_other_host_lost_it(bench: Bench) -> None:
    """Its report to the user and bjobs say the same."""
    key = bench.placed(slots=8, resreq="span[ptile=4]")
    first, other = (part.host for part in bench.run(key).parts)
    bench.ended(key, other, 0, lost="the starter was restarted")
    (kill,) = effects_due(bench.job(key))
    assert isinstance(kill, KillPart)
    assert (kill.host, kill.why, kill.status) == (first, "the starter was restarted", 255 << 8)
    bench.ended(key, first, 9)
    assert bench.outcome(key).status == 255 << 8


def test_a_link_that_the_first_host_loses_is_told(bench: Bench) -> None:
    key = bench.placed(slots=8, launch="mpi", resreq="span[ptile=4]")
    first, other = (part.host for part in bench.run(key).parts)
    bench.ended(key, first, 255 << 8, first_rank=-1, first_reason="link to h2 lost: timed out")
    bench.ended(key, other, 9, first_rank=-1, first_reason="the part on h1 was killed")
    assert (bench.outcome(key).status, bench.outcome(key).why) == (255 << 8, "link to h2 lost: timed out")


def test_a_job_that_its_user_killed_was_not_unreachable(bench: Bench) -> None:
    key = bench.placed(slots=8, launch="mpi", resreq="span[ptile=4]")
    first, other = (part.host for part in bench.run(key).parts)
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)])))
    bench.ended(key, other, 255 << 8, first_rank=-1, first_reason="link to h1 lost: closed by the other side")
    bench.ended(key, first, 9, first_rank=-1)
    assert (bench.outcome(key).status, bench.outcome(key).reason) == (9, TermReason.TERM_OWNER)


@pytest.mark.parametrize(
    ("first_rank", "status", "reason"),
    [
        (6, 9, TermReason.TERM_MEMLIMIT),
        (1, 9, TermReason.NONE),  # a rank of the first host: that the other one reached its limit meanwhile is not the cause
        (-1, 137 << 8, TermReason.TERM_MEMLIMIT),  # without ranks: a task of blaunch
        (-1, 0, TermReason.TERM_MEMLIMIT),  # it took the signal as an end
    ],
)
def test_a_limit_that_is_reached_on_another_host_is_the_reason(
    bench: Bench, first_rank: int, status: int, reason: TermReason
) -> None:
    """The verdict is that of the first host, which knows nothing of it."""
    key = bench.placed(slots=8, launch="mpi", resreq="span[ptile=4]")
    first, other = (part.host for part in bench.run(key).parts)
    bench.ended(key, other, 9, limit=TermReason.TERM_MEMLIMIT)
    bench.ended(key, first, status, first_rank=first_rank)
    outcome = bench.outcome(key)
    assert (outcome.reason, outcome.status) == (reason, status)


def test_a_limit_on_another_host_is_not_the_reason_of_a_job_that_is_killed(bench: Bench) -> None:
    key = bench.placed(slots=8, launch="mpi", resreq="span[ptile=4]")
    first, other = (part.host for part in bench.run(key).parts)
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)])))
    bench.ended(key, other, 9, limit=TermReason.TERM_CPULIMIT)
    bench.ended(key, first, 9)
    assert bench.outcome(key).reason is TermReason.TERM_OWNER


@pytest.mark.parametrize("end", ["done", "bkill", "bkill -d", "brequeue", "bmig", "exit value", "crash", "run limit", "lost"])
def test_the_usage_of_an_attempt_is_charged_whatever_ends_it(bench: Bench, end: str) -> None:
    """The end of an only part has no event of its own."""
    bench.queues(
        QueueConfig(name="normal", requeue_exit_values=RequeueExit(values=(3,)), share=FairShare(shares=(("default", 1),)))
    )
    key = bench.started(r=True, **({"k": "/ckpt runlimit=requeue"} if end in ("crash", "run limit") else {}))
    bench.said("checkpointed", key, "h1", 1)
    jobs = Select(ids=[str(key)])
    if end.startswith("bkill"):
        bench.asked(control.kill, Kill(jobs=jobs, done=end == "bkill -d"))
    elif end == "brequeue":
        bench.asked(control.requeue, Requeue(jobs=jobs))
    elif end == "bmig":
        bench.asked(control.migrate, Migrate(jobs=jobs))
    status = {"done": 0, "exit value": 3 << 8, "crash": 11}.get(end, 9)
    limit = TermReason.TERM_RUNLIMIT if end == "run limit" else TermReason.NONE
    told: dict[str, Any] = {"lost": "gone with its host"} if end == "lost" else {}
    (ended,) = bench.ended(key, "h1", status, limit=limit, utime=5.0, stime=2.0, **told)
    assert (ended == "JobRequeued") == (end in ("brequeue", "bmig", "exit value", "crash", "run limit", "lost"))
    assert [row.cpu for row in bench.cluster.charges.rows.values()] == [pytest.approx(7.0)]


@pytest.mark.parametrize("rank", [0, 5])
def test_the_rank_that_failed_first_is_told(bench: Bench, rank: int) -> None:
    key = bench.placed(slots=8, launch="mpi", resreq="span[ptile=4]")
    for part in bench.run(key).parts:
        bench.ended(key, part.host, 3 << 8, first_rank=rank, first_reason="exit code 3")
    assert bench.outcome(key).why == f"rank {rank} failed first: exit code 3"
