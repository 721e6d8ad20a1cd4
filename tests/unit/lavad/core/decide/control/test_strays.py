"""A restored store and the attempts that it does not know."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.decide.control.strays import Stray, tell_strays
from lavad.core.lang.states import JobState
from tests.support.worlds.bench import Bench


def restored(bench: Bench) -> Bench:
    bench.apply(ev.StoreRestored(at=bench.now, incarnation="new", former={"old": 5.0}, next_job=500))
    return bench


def told(bench: Bench, key: int, attempt: int = 1, *, runs: bool = True) -> list[str]:
    return [
        type(event).__name__ for event in bench.take(tell_strays(bench.cluster, "h1", [Stray(key, attempt, runs)], bench.now))
    ]


def test_a_restored_store_gives_higher_ids_and_goes_on_for_the_old_one(bench: Bench) -> None:
    restored(bench)
    assert (bench.cluster.incarnation, bench.cluster.former) == ("new", {"old": 5.0})
    assert bench.submit() == 500
    bench.cluster.forget_changes()
    bench.apply(ev.StoreRestored(at=bench.now, incarnation="newer", former={"old": 5.0, "new": 6.0}, next_job=7))
    assert bench.cluster.next_job == 501
    bench.cluster.undo_changes()
    assert (bench.cluster.incarnation, bench.cluster.former) == ("new", {"old": 5.0})


@pytest.mark.parametrize(
    ("options", "state"), [({}, JobState.PSUSP), ({"rerunnable": True}, JobState.PEND)], ids=["once", "rerunnable"]
)
def test_a_job_that_waits_here_and_has_run_is_held_unless_it_may_run_again(
    bench: Bench, options: dict[str, Any], state: JobState
) -> None:
    key = bench.submit(**options)
    restored(bench)
    assert told(bench, key)[0] == "MessagePosted"
    assert bench.job(key).state is state
    (message,) = bench.job(key).messages
    assert "ran on host <h1> and was ended there" in message.text
    assert told(bench, key, runs=False) == ["MessagePosted"]
    assert "has ended there" in bench.job(key).messages[0].text


def test_nothing_is_told_of_what_runs_is_over_or_is_older(bench: Bench) -> None:
    running = bench.placed("RUN")
    waiting = bench.submit()
    assert told(bench, waiting) == []  # this store was never restored
    restored(bench)
    assert told(bench, running, 2) == []
    assert told(bench, 77) == []
    assert told(bench, waiting, 0) == []


def test_an_element_that_has_run_is_held_alone(bench: Bench) -> None:
    array = bench.submit(name="a", array="1-3")
    restored(bench)
    assert told(bench, 2 << 32 | array) == ["MessagePosted", "JobHeld"]
    assert bench.job(2 << 32 | array).state is JobState.PSUSP
    assert list(bench.cluster.arrays.rows[array].pending) == [1, 3]
    assert told(bench, 9 << 32 | array) == []
