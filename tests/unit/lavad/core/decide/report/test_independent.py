"""Which reports of a message are decided together: good ends of different jobs, and nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.report.report import decide_report, decide_reports, independent
from lavad.core.job.job import End, PendingSignal
from lavad.core.job.reports import EndedReport, GpuFault, PartReport, StartedReport
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import SignalKind, TermReason
from tests.support.worlds.world import World

GOOD = End(at=5.0, utime=1.0)
FAULT = (GpuFault(uuid="GPU-1"),)


def _end(key: int, end: End = GOOD, gone: bool = True, faults: tuple[GpuFault, ...] = ()) -> EndedReport:
    return EndedReport(host="h1", key=key, uid=f"u{key}", attempt=1, end=end, gone=gone, gpu_faults=faults)


def test_good_ends_of_different_jobs_that_follow_each_other_are_together() -> None:
    started = StartedReport(host="h1", key=9, uid="u9", attempt=1, pid=1, started=1.0)
    told: list[PartReport] = [_end(1), _end(2), started, _end(3), _end(3), _end(4)]
    assert list(independent(told)) == [told[:2], [started], [told[3]], told[4:]]
    assert not list(independent([]))


@pytest.mark.parametrize(
    "alone",
    [
        _end(2, End(status=256)),
        _end(3, End(lost="gone")),
        _end(4, gone=False),
        _end(5, faults=FAULT),
        _end(6, End(first_reason="lease")),
    ],
)
def test_what_may_say_something_of_other_jobs_is_decided_by_itself(alone: EndedReport) -> None:
    assert list(independent([_end(1), alone, _end(7), _end(8)])) == [[_end(1)], [alone], [_end(7), _end(8)]]


def test_jobs_that_start_again_with_more_memory_stay_those_of_their_users() -> None:
    """Both ended well when they had reached their limit."""
    world = World()
    world.hosts("h1", slots=8)
    keys = {world.submit(user=user, memory_auto=True, limits=Limits(mem=100_000)): user for user in ("ann", "ben", "ann")}
    world.step()
    end = End(at=5.0, limit=TermReason.TERM_MEMLIMIT, max_mem=100_000)
    runs = {key: world.cluster.jobs.rows[key].run for key in keys}
    told = [EndedReport(host="h1", key=key, uid=run.uid, attempt=1, end=end, gone=True) for key, run in runs.items() if run]
    assert list(independent(told)) == [told]
    world.apply(*decide_reports(world.cluster, told, world.now))
    assert {key: (world.cluster.spec_of(key).user, world.cluster.spec_of(key).limits.mem) for key in keys} == {
        key: (user, 200_000) for key, user in keys.items()
    }
    assert world.cluster.next_spec == 5, "two classes before, and two with more memory"


def test_ends_decided_together_are_those_decided_in_turn() -> None:
    together, in_turn = World(), World()
    for world in (together, in_turn):
        world.hosts("h1", slots=8)
        world.submit(array="1-8")
        world.step()
    uids = {key: job.run.uid for key, job in in_turn.cluster.jobs.rows.items() if job.run is not None}
    keys = [key_of(1, index) for index in range(1, 9)]
    told = [EndedReport(host="h1", key=key, uid=uids[key], attempt=1, end=GOOD, gone=True) for key in keys]
    events = decide_reports(together.cluster, told, together.now)
    for report, event in zip(told, events, strict=True):
        assert decide_report(in_turn.cluster, report, in_turn.now) == [event]
        in_turn.apply(event)


ENDS = [
    GOOD,
    End(at=6.0, utime=2.0, max_mem=9),
    End(at=5.0, limit=TermReason.TERM_RUNLIMIT),
    End(at=5.0, note="its output is not there"),
    End(at=5.0, post=256),
    End(at=5.0, output="/spool/out"),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("requeue", ["", "0"])
def test_an_element_ends_as_the_one_before_it_unless_something_became_of_it(end: End, requeue: str) -> None:
    world = World()
    world.hosts("h1", slots=16)
    job = world.submit(array="1-9", requeue=requeue)
    world.step()
    rows = world.cluster.jobs.rows
    told = [
        EndedReport(host="h1", key=key, uid=run.uid, attempt=1, end=GOOD, gone=True) for key in rows if (run := rows[key].run)
    ]
    told[3] = replace(told[3], end=end)
    told[4] = replace(told[4], uid="of an attempt before")
    told[7] = replace(told[7], host="h2")
    kill = PendingSignal(kind=SignalKind.KILL, at=world.now, by="ann", reason=TermReason.TERM_OWNER, done=True)
    world.apply(ev.SignalRequested(at=world.now, key=key_of(job, 2), pending=kill))
    world.apply(ev.PartStarted(at=world.now, key=key_of(job, 6), attempt=1, host="h1", pid=5))
    world.apply(ev.JobSuspended(at=world.now, key=key_of(job, 7)))
    together = decide_reports(world.cluster, told, world.now)
    assert together == [event for report in told for event in decide_report(world.cluster, report, world.now)]
    world.apply(*together)
    check_invariants(world.cluster)
