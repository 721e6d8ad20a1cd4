"""Checkpointable jobs that crash go on from their newest generation, go one back, and end with the story."""

from __future__ import annotations

import signal

import pytest
from msgspec.structs import replace

from lavad.core.decide.control import control
from lavad.core.decide.control.checkpoint import checkpoint
from lavad.core.lang.asks import Checkpoint, Kill, Select
from lavad.core.lang.states import JobState, TermReason
from tests.support.worlds.bench import Bench

SEGV = int(signal.SIGSEGV)


def running(bench: Bench, generations: int = 2) -> int:
    key = bench.started(k="/ckpt")
    for generation in range(1, generations + 1):
        bench.said("checkpointed", key, "h1", generation)
    return key


def crash(bench: Bench, key: int, status: int = SEGV) -> list[str]:
    """It ends, and starts again where it may."""
    names = bench.ended(key, "h1", status)
    if key in bench.cluster.jobs.rows and bench.job(key).run is None:
        bench.now += 1000
        bench.step()
        bench.start(key)
    return names


@pytest.mark.parametrize("status", [SEGV, int(signal.SIGKILL), (128 + SEGV) << 8])
def test_a_crash_starts_it_again_from_its_newest(bench: Bench, status: int) -> None:
    key = running(bench)
    assert crash(bench, key, status) == ["JobRequeued"]
    assert (bench.job(key).attempt, bench.run(key).checkpoint) == (2, 2)


@pytest.mark.parametrize(("generations", "status"), [(0, SEGV), (2, 1 << 8), (2, int(signal.SIGTERM)), (2, 200 << 8)])
def test_other_ends_are_ends(bench: Bench, generations: int, status: int) -> None:
    key = running(bench, generations)
    assert bench.ended(key, "h1", status) == ["JobFinished"]
    assert bench.finished(key).state is JobState.EXIT


@pytest.mark.parametrize(("kill", "event"), [(True, "JobFinished"), (False, "JobRequeued")])
def test_the_end_that_bchkpnt_asked_for_is_no_crash(bench: Bench, kill: bool, event: str) -> None:
    key = running(bench)
    bench.asked(checkpoint, Checkpoint(jobs=Select(ids=[str(key)]), kill=kill))
    number = bench.run(key).pending_signals[0].number
    assert bench.said("granted", key, "h1", number, True, "")[0] == "SignalHandled"
    assert bench.ended(key, "h1", int(signal.SIGKILL)) == [event]
    if kill:
        assert bench.outcome(key).reason is TermReason.TERM_CHKPNT


def test_a_checkpoint_that_failed_ends_nothing(bench: Bench) -> None:
    key = running(bench)
    bench.asked(checkpoint, Checkpoint(jobs=Select(ids=[str(key)]), kill=True))
    number = bench.run(key).pending_signals[0].number
    assert bench.said("granted", key, "h1", number, False, "the disk is full") == ["SignalHandled"]
    assert bench.run(key).pending_signals == ()


def test_a_signal_that_its_owner_sent_is_no_crash(bench: Bench) -> None:
    key = running(bench)
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)]), signal=int(signal.SIGABRT)))
    number = bench.run(key).pending_signals[-1].number
    bench.said("granted", key, "h1", number, True, "")
    assert bench.ended(key, "h1", int(signal.SIGABRT)) == ["JobFinished"]


def test_a_limit_that_it_exceeded_is_no_crash(bench: Bench) -> None:
    key = running(bench)
    assert bench.ended(key, "h1", int(signal.SIGKILL), limit=TermReason.TERM_CPULIMIT) == ["JobFinished"]


def test_it_goes_one_back_and_then_ends_with_the_story(bench: Bench) -> None:
    key = running(bench, 3)
    begun = [bench.run(key).checkpoint for _ in range(6) if crash(bench, key) == ["JobRequeued"]]
    assert begun == [3, 3, 2, 2, 2]
    assert bench.finished(key).state is JobState.EXIT
    assert bench.outcome(key).why == (
        "killed by SIGSEGV: it died 3 times after checkpoint generation 2, after as many from generation 3"
    )


def test_going_back_is_part_of_the_order(bench: Bench) -> None:
    key = running(bench, 3)
    for _ in range(3):
        known = bench.job(key).checkpoints
        assert known is not None
        assert not known.go_back
        crash(bench, key)
    known = bench.job(key).checkpoints
    assert known is not None
    assert (known.go_back, bench.job(key).checkpoint) == (True, 2)
    bench.said("checkpointed", key, "h1", 3)
    known = bench.job(key).checkpoints
    assert known is not None
    assert (known.go_back, known.deaths, known.went_back) == (False, 0, -1), "it got on"


def test_without_an_older_generation_it_ends(bench: Bench) -> None:
    params = replace(bench.cluster.conf.params, lava_chkpnt_tries=2)
    bench.configure(params=params)
    key = running(bench, 1)
    assert crash(bench, key) == ["JobRequeued"]
    assert crash(bench, key) == ["JobFinished"]
    assert bench.outcome(key).why == "killed by SIGSEGV: it died 2 times after checkpoint generation 1"


def test_an_attempt_that_got_on_counts_anew(bench: Bench) -> None:
    key = running(bench, 1)
    for generation in range(2, 9):
        assert crash(bench, key) == ["JobRequeued"]
        bench.said("checkpointed", key, "h1", generation)


def test_a_lost_host_is_no_crash(bench: Bench) -> None:
    key = running(bench, 1)
    for _ in range(5):
        assert bench.ended(key, "h1", 0, lost="gone with its host") == ["JobRequeued"]
        bench.now += 1000
        bench.step()
        bench.start(key)
    assert bench.run(key).checkpoint == 1


def test_each_crash_in_a_row_makes_the_next_start_later(bench: Bench) -> None:
    """Not the first."""
    key, waits = running(bench, 3), []
    for _ in range(4):
        bench.ended(key, "h1", SEGV)
        waits.append(bench.job(key).not_before - bench.now)
        bench.now += 1000
        bench.step()
        bench.start(key)
    assert waits == [0.0, 0.5, 1.0, 0.0], "then from another generation"
