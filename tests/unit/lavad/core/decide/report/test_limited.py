"""A job that asked for it goes on after its run limit, as long as it gets on."""

from __future__ import annotations

import signal

import pytest

from lavad.core.lang.asks import Refused
from lavad.core.lang.states import JobState, TermReason
from tests.support.worlds.bench import Bench

KILLED = int(signal.SIGKILL)


def running(bench: Bench, k: str = "/ckpt runlimit=requeue") -> int:
    return bench.started(k=k)


def test_it_goes_on_as_long_as_it_makes_checkpoints(bench: Bench) -> None:
    key = running(bench)
    for attempt in (1, 2, 3):
        assert bench.job(key).attempt == attempt
        bench.said("checkpointed", key, "h1", attempt)
        assert bench.ended(key, "h1", KILLED, limit=TermReason.TERM_RUNLIMIT) == ["JobRequeued"]
        bench.step()
        bench.start(key)
        assert bench.run(key).checkpoint == attempt
    assert bench.ended(key, "h1", KILLED, limit=TermReason.TERM_RUNLIMIT) == ["JobFinished"], "it did not get on"
    assert bench.outcome(key).reason is TermReason.TERM_RUNLIMIT


@pytest.mark.parametrize(
    ("k", "limit"), [("/ckpt", TermReason.TERM_RUNLIMIT), ("/ckpt runlimit=requeue", TermReason.TERM_CPULIMIT)]
)
def test_others_end(bench: Bench, k: str, limit: TermReason) -> None:
    key = running(bench, k)
    bench.said("checkpointed", key, "h1", 1)
    assert bench.ended(key, "h1", KILLED, limit=limit) == ["JobFinished"]
    assert bench.finished(key).state is JobState.EXIT


def test_one_that_ends_by_itself_is_done(bench: Bench) -> None:
    key = running(bench)
    bench.said("checkpointed", key, "h1", 1)
    assert bench.ended(key, "h1", 0) == ["JobFinished"]
    assert bench.finished(key).state is JobState.DONE


def test_another_action_is_refused(bench: Bench) -> None:
    with pytest.raises(Refused, match="runlimit=kill: Bad action at the run limit"):
        bench.bsub(k="/ckpt runlimit=kill")
