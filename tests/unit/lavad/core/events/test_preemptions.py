"""How often a job was preempted, which MAX_JOB_PREEMPT bounds: each time counts, however it made room."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.job.job import PendingSignal
from lavad.core.lang.states import JobState, SignalKind
from tests.support.worlds.bench import Bench


@pytest.mark.parametrize("kind", [SignalKind.REQUEUE, SignalKind.MIGRATE])
def test_a_job_that_is_requeued_or_suspended_for_another_counts_one_more_each_time(bench: Bench, kind: SignalKind) -> None:
    key, other = bench.placed(rerunnable=True), bench.submit(slots=99)
    pending = PendingSignal(kind=kind, at=bench.now)
    bench.apply(ev.SignalRequested(at=bench.now, key=key, pending=pending, beneficiary=other))
    assert bench.job(key).preempted == 1
    bench.ended(key, bench.run(key).parts[0].host, 9)
    bench.step()
    bench.start(key, bench.run(key).parts[0].host)
    bench.apply(ev.JobSuspended(at=bench.now, key=key, state=JobState.SSUSP, beneficiary=other))
    assert bench.job(key).preempted == 2
    bench.apply(ev.JobResumed(at=bench.now, key=key))
    bench.apply(ev.JobSuspended(at=bench.now, key=key, state=JobState.USUSP, by="alice"))
    assert bench.job(key).preempted == 2, "its owner has stopped it"
