"""Conservative backfill that keeps its promises, and makes no more of them than starts depend on, against planning all again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lavad.replay import conservative
from lavad.replay.backfill import Waiting, in_order
from lavad.replay.conservative import NONE, Conservative, Line, Plan, Short
from lavad.replay.profile import Held, Profile
from lavad.replay.simulate import Simulation
from lavad.replay.swf import TraceJob
from tests.support.examples import examples
from tests.unit.lavad.replay.test_simulate import model_jobs, traces


def planned(line: Sequence[Waiting], running: Sequence[Held], now: float, free: int) -> tuple[list[int], dict[int, float]]:
    """(starts, promises), each job in turn looked for from now on."""
    profile = Profile(now, free, in_order(running, now))
    starts, promises = [], {}
    for job in line:
        time = profile.reserve_earliest(job.amount, job.duration, now)
        if time == now and job.amount <= free:
            free -= job.amount
            starts.append(job.key)
        elif time is not None:
            promises[job.key] = time
    return starts, promises


def check(jobs: list[TraceJob], slots: int) -> int:
    """At each instant the same starts as if all were planned again, and no other promises; how many promises were compared."""
    compared = 0
    simulation = Simulation(jobs, slots, "conservative")
    plan = simulation.conservative
    assert plan is not None
    decide = plan.starts

    def starts(now: float, free: int, running: Sequence[Held]) -> list[int]:
        nonlocal compared
        begun, promises = planned([*simulation.queue.values()], running, now, free)
        assert decide(now, free, running) == begun
        assert plan.promises.items() <= promises.items()
        compared += len(plan.promises)
        return begun

    plan.starts = starts  # type: ignore[method-assign]
    while simulation.step() is not None:
        pass
    assert len(simulation.done) == len(jobs)
    return compared


@settings(max_examples=examples(400))
@given(traces(), st.sampled_from((1, 64)))
def test_like_planning_all_anew(trace: tuple[list[TraceJob], int], chunk: int) -> None:
    """Whatever ends early, late or at once; however few jobs are looked at together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conservative, "CHUNK", chunk)
        check(*trace)


@settings(max_examples=examples(200))
@given(traces(least_run=1, short=0))
def test_like_planning_all_anew_where_nothing_is_overdue(trace: tuple[list[TraceJob], int]) -> None:
    check(*trace)


@pytest.mark.parametrize("least", [1, 2])
def test_a_long_trace_in_which_many_end_early(least: int) -> None:
    """``least``: all ask for so many slots at least, but for one of the first that asks for one and stays long."""
    jobs = model_jobs(400, 64, seed=5)
    jobs = [replace(one, slots=max(least, one.slots), requested=one.run * (1 + 4 * (one.line % 5 == 0))) for one in jobs]
    jobs[3] = replace(jobs[3], slots=1, requested=10_000_000)
    assert check(jobs, 64) > 1_000


def plans(simulation: Simulation) -> list[Plan]:
    """Those that are made until all have ended."""
    assert simulation.conservative is not None
    made: list[Plan] = []
    while simulation.step() is not None:
        plan = simulation.conservative.plan
        if plan is not None and (not made or plan is not made[-1]):
            made.append(plan)
    return made


def test_plans_end_where_nothing_is_free() -> None:
    """While all run for their time one plan holds for all; after early ends plans are short, and go further again later."""
    jobs = model_jobs(700, 256, seed=7)
    simulation = Simulation(jobs, 256, "conservative")
    [plan] = plans(simulation)
    assert any(run.wait for run in simulation.done)
    assert (plan.made, plan.until) == (jobs[0].submit, math.inf)
    jobs = [replace(one, requested=one.run * (1 + 4 * (one.line % 5 == 0 and one.line < 350))) for one in jobs]
    made = plans(Simulation(jobs, 256, "conservative"))
    ends = [plan.until - plan.made for plan in made if plan.until < math.inf]
    assert len(ends) > 20
    assert max(ends) > 100 * min(ends)


def test_what_can_never_be() -> None:
    """More than there is gets no promise, and nothing is held back for it."""
    plan = Conservative()
    plan.add(Waiting(1, 9, 5))
    plan.add(Waiting(2, 2, math.inf))
    assert plan.starts(0, 2, [Held(3, 7, 4)]) == [2]
    assert plan.promises == {}


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), max_size=12), st.integers(1, 6), st.integers(0, 6))
def test_what_there_was_no_room_for(known: list[tuple[int, int]], amount: int, duration: int) -> None:
    short = Short()
    for least, shortest in known:
        if not short.has(least, shortest):
            short.add(least, shortest)
    assert short.has(amount, duration) == any(least <= amount and shortest <= duration for least, shortest in known)
    many = short.among(np.asarray([amount], np.int64), np.asarray([float(duration)]))
    assert many.tolist() == [short.has(amount, duration)]
    assert not Short().has(amount, math.inf)


def test_the_line_keeps_its_order() -> None:
    """However many have left it."""
    line = Line()
    assert line.least(0) == NONE
    for key in range(300):
        line.add(Waiting(key, 300 - key, key))
    for at in range(300):
        if at % 3:
            line.leave(at)
    line.renew()
    assert line.keys[: line.end].tolist() == [key for key in range(300) if not key % 3]
    line.add(Waiting(300, 7, 1))
    assert (line.keys[line.end - 1], line.least(0), line.least(line.end - 1)) == (300, 3, 7)
