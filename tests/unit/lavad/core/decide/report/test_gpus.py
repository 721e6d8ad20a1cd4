"""A GPU that breaks is closed with the reason, in the commit that frees it; the job on it starts again where it may."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.control.control import kill
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.decide.report import gpus
from lavad.core.decide.report.gpus import Cause, close_gpu, open_gpu
from lavad.core.job.job import End, Placed
from lavad.core.job.reports import GpuFault
from lavad.core.lang.asks import Kill, Select
from lavad.core.lang.states import JobState, TermReason
from lavad.core.plan.plan import Placement, Plan
from tests.support.worlds.bench import Bench

ONE = "num=1:j_exclusive=yes"
G0, G1 = "GPU-g1-0", "GPU-g1-1"
LOST = "GPU 0 of host g1 was lost (Xid 79)"


def bench(cards: int = 2) -> Bench:
    found = Bench()
    found.hosts("g1", slots=8, gpus=cards)
    return found


def closes(b: Bench, gpu: str = G0, cause: Cause = Cause.LOST, why: str = "lost (Xid 79)") -> list[str]:
    events: Any = b.take(close_gpu(b.cluster, "g1", gpu, cause, why, b.now))
    return [type(event).__name__ for event in events]


def closed(b: Bench) -> dict[str, str]:
    return {gpu.uuid: gpu.cause for gpu in b.cluster.hosts.rows["g1"].closed_gpus}


def on(b: Bench, key: int) -> tuple[str, ...]:
    return b.run(key).parts[0].gpus


def test_no_new_job_gets_it_and_what_runs_goes_on():
    b = bench()
    key = b.placed(gpu=ONE)
    assert on(b, key) == (G0,)
    assert closes(b, G1, Cause.HEALTH, "too hot") == ["GpuSwitched"]
    waits = b.submit(gpu=ONE)
    assert b.step() == {}
    assert ("GPU_BUSY", ("g1",)) in b.why_names(waits)
    b.ended(key, "g1")
    assert b.step() == {waits: {"g1": 1}}
    assert on(b, waits) == (G0,)
    b.take(open_gpu(b.cluster, "g1", G1, "well", b.now))
    last = b.submit(gpu=ONE)
    b.step()
    assert on(b, last) == (G1,)


def test_the_master_looks_again_when_a_plan_comes():
    b = bench()
    key = b.submit(gpu=ONE)
    closes(b, cause=Cause.HEALTH)
    for gpu, events in ((G0, 0), (G1, 1)):
        plan = Plan(version=b.cluster.version, placements=(Placement(key, (Placed(host="g1", slots=1, gpus=(gpu,)),)),))
        assert len(accept_plan(b.cluster, plan, b.now, "u")) == events


def test_an_instance_is_closed_with_its_gpu():
    b = bench(1)
    row = b.cluster.hosts.rows["g1"]
    whole = replace(row.facts.gpus[0], split=True)
    part = replace(whole, uuid="MIG-1", split=False, parent=G0, profile="1g.10gb")
    b.apply(ev.HostJoined(at=b.now, host="g1", facts=replace(row.facts, gpus=(whole, part))))
    closes(b, cause=Cause.FAULT)
    assert b.cluster.hosts.rows["g1"].closed_devices() == {G0, "MIG-1"}


@pytest.mark.parametrize("fields", [{"rerunnable": True}])
@pytest.mark.parametrize("state", ["RUN", "SSUSP", "USUSP"])
def test_a_job_that_may_run_again_gives_it_back_and_keeps_its_place(fields: dict[str, Any], state: str):
    b = bench()
    key = b.placed(state, gpu=ONE, **fields)
    other = b.submit(gpu=ONE)
    submitted = b.job(key).submitted
    assert closes(b) == ["GpuSwitched", "SignalRequested"]
    assert closes(b) == []  # it ends already
    assert b.ended(key, "g1", status=9) == ["JobRequeued"]
    job = b.job(key)
    assert (job.state, job.submitted, job.avoid) == (JobState.PSUSP if state == "USUSP" else JobState.PEND, submitted, ())
    b.step()
    assert on(b, other if state == "USUSP" else key) == (G1,)


def test_bhist_says_why_it_starts_again():
    b = bench()
    key = b.placed(gpu=ONE, rerunnable=True)
    closes(b)
    [event] = b.hear("ended", key, b.uid(key), "g1", End(status=9, at=b.now), True)
    assert isinstance(event, ev.JobRequeued)
    assert event.why == LOST


@pytest.mark.parametrize(
    ("cause", "again"), [(Cause.LOST, True), (Cause.FAULT, True), (Cause.HEALTH, False), (Cause.HELD, False)]
)
def test_only_what_is_broken_takes_a_job_away(cause: Cause, again: bool):
    b = bench()
    b.placed(gpu=ONE, rerunnable=True)
    assert ("SignalRequested" in closes(b, cause=cause)) is again


def test_another_job_goes_on_and_its_end_says_what_happened():
    b = bench()
    key = b.placed(gpu=ONE)
    assert closes(b) == ["GpuSwitched"]
    assert b.ended(key, "g1", status=1 << 8) == ["JobFinished"]
    outcome = b.outcome(key)
    assert (outcome.status, outcome.reason, outcome.why) == (1 << 8, TermReason.TERM_OTHER, LOST)


def test_a_job_that_ends_well_is_done():
    b = bench()
    key = b.placed(gpu=ONE)
    closes(b)
    b.ended(key, "g1")
    assert (b.finished(key).state, b.outcome(key).why) == (JobState.DONE, "")


def test_one_that_was_killed_by_its_owner_says_so():
    b = bench()
    key = b.placed(gpu=ONE, rerunnable=True)
    b.asked(kill, Kill(jobs=Select(ids=[str(key)])))
    closes(b)
    b.ended(key, "g1", status=9)
    assert b.outcome(key).reason is TermReason.TERM_OWNER


@pytest.mark.parametrize("rerunnable", [False, True])
def test_the_end_of_the_job_may_be_the_first_that_is_heard_of_it(rerunnable: bool):
    b = bench()
    key = b.placed(gpu=ONE, rerunnable=rerunnable)
    fault = GpuFault(G0, "lost", "lost (Xid 79)")
    names = b.said("ended", key, "g1", End(status=6, at=b.now), True, (fault,))
    assert names == ["GpuSwitched", "JobRequeued" if rerunnable else "JobFinished"]
    assert closed(b) == {G0: "lost"}
    if rerunnable:
        b.step()
        assert on(b, key) == (G1,)
    else:
        assert b.outcome(key).why == LOST


def test_what_still_holds_it_closes_it_in_the_commit_that_frees_it():
    b = bench(1)
    key = b.placed(gpu=ONE)
    waits = b.submit(gpu=ONE)
    held = GpuFault(G0, "held", "process 4711 of user ann still holds it")
    assert b.said("ended", key, "g1", End(at=b.now), False) == ["PartEnded"]
    assert b.said("gone", key, "g1", 0, (held,)) == ["GpuSwitched", "PartGone", "JobFinished"]
    assert b.step() == {}
    b.take(open_gpu(b.cluster, "g1", G0, "free", b.now))
    assert b.step() == {waits: {"g1": 1}}


def test_graver_faults_prevail_and_administrators_have_the_last_word():
    b = bench()
    assert closes(b, cause=Cause.HELD) == ["GpuSwitched"]
    assert closes(b, cause=Cause.HEALTH) == ["GpuSwitched"]
    assert closes(b, cause=Cause.HELD) == []
    assert closes(b, cause=Cause.FAULT) == ["GpuSwitched"]
    assert closed(b) == {G0: "fault"}
    assert open_gpu(b.cluster, "g1", G0, "well", b.now) == []
    b.apply(ev.GpuSwitched(at=b.now, host="g1", gpu=G1, closed=True, by="boss", comment="mine"))
    assert closes(b, G1, Cause.FAULT) == []
    assert open_gpu(b.cluster, "g1", G1, "well", b.now) == []


def test_what_an_administrator_has_opened_stays_open_with_its_fault_when_a_job_on_it_ends():
    b = bench()
    closes(b, cause=Cause.FAULT)
    b.apply(ev.GpuSwitched(at=b.now, host="g1", gpu=G0, closed=False, by="boss"))
    key, other = b.placed(gpu=ONE), b.placed(gpu=ONE, rerunnable=True)
    assert (on(b, key), on(b, other)) == ((G0,), (G1,))
    same = GpuFault(G0, "fault", "2 uncorrected ECC errors")
    assert b.said("ended", key, "g1", End(at=b.now), True, (same,)) == ["JobFinished"]
    assert closed(b) == {}
    key = b.placed(gpu=ONE)
    lost = GpuFault(G0, "lost", "lost")
    assert b.said("ended", key, "g1", End(at=b.now), True, (lost,)) == ["GpuSwitched", "JobFinished"]
    assert closed(b) == {G0: "lost"}
    b.apply(ev.GpuSwitched(at=b.now, host="g1", gpu=G0, closed=False, by="boss"))
    assert [type(one).__name__ for one in open_gpu(b.cluster, "g1", G0, "well", b.now)] == ["GpuSwitched"]
    b.take(open_gpu(b.cluster, "g1", G0, "well", b.now))
    assert closes(b) == ["GpuSwitched"]


def test_a_process_that_holds_what_an_administrator_has_opened_closes_it_until_it_is_gone():
    b = bench()
    closes(b, cause=Cause.FAULT, why="Xid 48")
    b.apply(ev.GpuSwitched(at=b.now, host="g1", gpu=G0, closed=False, by="root"))
    assert closes(b, cause=Cause.FAULT, why="Xid 48") == []
    assert closes(b, cause=Cause.HELD, why="process 7 still holds it") == ["GpuSwitched"]
    assert closed(b) == {G0: "held"}
    b.take(open_gpu(b.cluster, "g1", G0, "nothing holds it any more", b.now))
    assert closed(b) == {}
    assert closes(b, cause=Cause.FAULT, why="Xid 48") == [], "it was opened with that"


def test_an_unknown_cause_host_or_gpu_does_no_harm():
    b = bench()
    assert gpus.cause_of("new kind") is Cause.HEALTH
    assert close_gpu(b.cluster, "gone", G0, Cause.LOST, "lost", b.now) == []
    assert closes(b, "GPU-elsewhere", Cause.LOST) == ["GpuSwitched"]
    assert gpus.sentence(b.cluster, "g1", G1, "2 uncorrected ECC errors") == "GPU 1 of host g1 failed: 2 uncorrected ECC errors"


def test_a_job_that_waits_for_a_closed_gpu_says_so():
    b = bench(1)
    closes(b, cause=Cause.FAULT, why="Xid 48")
    key = b.submit(gpu=ONE)
    assert b.step() == {}
    assert b.why_names(key) == [("GPU_NONE", ("h1", "h2", "h3")), ("GPU_CLOSED", ("g1",))]
