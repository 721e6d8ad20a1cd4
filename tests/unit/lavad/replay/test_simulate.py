"""Simulated traces against a second simulator, against examples by hand, and against the promises that were made."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.replay.simulate import Simulation, simulate
from lavad.replay.swf import TraceJob
from tests.support.examples import examples
from tests.unit.lavad.replay.naive import naive, promised_once

POLICIES = ("fcfs", "easy", "conservative")


def job(line: int, submit: float, slots: int, run: float, requested: float | None = None) -> TraceJob:
    return TraceJob(line, line, submit, run, slots, run if requested is None else requested, 1)


def starts(jobs: list[TraceJob], slots: int, policy: str) -> dict[int, float]:
    return {run.job.line: run.start for run in simulate(jobs, slots, policy)}


@st.composite
def traces(draw: st.DrawFn, least_run: int = 0, exact: bool = False, short: int = -9) -> tuple[list[TraceJob], int]:
    """Few slots, few instants: so that everything happens at once. ``short``: by how much a job may ask for too little."""
    slots = draw(st.integers(1, 8))
    jobs = []
    for line in range(1, draw(st.integers(1, 25)) + 1):
        run = draw(st.integers(least_run, 15))
        asked = run if exact else run + draw(st.integers(short, 12))
        jobs.append(job(line, draw(st.integers(0, 30)), draw(st.integers(1, slots)), run, asked if asked > 0 else run))
    return sorted(jobs, key=lambda job: (job.submit, job.line)), slots


@pytest.mark.parametrize("policy", POLICIES)
def test_like_the_plain_simulator(policy: str) -> None:
    """Whatever is submitted: zero run times, too little asked for, everything at one instant."""

    @settings(max_examples=examples(300))
    @given(traces())
    def check(trace: tuple[list[TraceJob], int]) -> None:
        jobs, slots = trace
        assert starts(jobs, slots, policy) == naive(jobs, slots, policy)

    check()


@settings(max_examples=examples(200))
@given(traces(least_run=1, exact=True))
def test_two_plain_simulators_agree_where_all_know_their_time(trace: tuple[list[TraceJob], int]) -> None:
    """Without early ends nothing is ever moved forward: one promise at the submit is enough."""
    jobs, slots = trace
    assert naive(jobs, slots, "conservative") == promised_once(jobs, slots) == starts(jobs, slots, "conservative")


def model_jobs(count: int, slots: int, seed: int) -> list[TraceJob]:
    """Bursts of powers of two and long tails, in the manner of the usual workload models; the load is near 1."""
    dice = random.Random(seed)
    jobs = []
    clock = 0.0
    for line in range(1, count + 1):
        clock += int(dice.expovariate(1 / 900))
        size = min(slots, 2 ** dice.randint(0, 6) if dice.random() < 0.75 else dice.randint(1, slots // 2))
        jobs.append(job(line, clock, size, int(math.exp(dice.gauss(7.5, 2)))))
    return jobs


@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_trace_like_the_plain_simulators(policy: str) -> None:
    """A trace of the size of a week."""
    jobs = model_jobs(700, 256, seed=7)
    expected = promised_once(jobs, 256) if policy == "conservative" else naive(jobs, 256, policy)
    found = starts(jobs, 256, policy)
    assert found == expected
    assert any(found[job.line] > job.submit for job in jobs)


def test_easy_by_hand() -> None:
    """Five slots. B is promised 10, with one slot spare then: C takes it; D may not; E is gone by then."""
    jobs = [job(1, 0, 3, 10), job(2, 1, 4, 5), job(3, 2, 1, 20), job(4, 3, 1, 20), job(5, 3, 1, 7)]
    assert starts(jobs, 5, "easy") == {1: 0, 2: 10, 3: 2, 4: 15, 5: 3}
    assert starts(jobs, 5, "fcfs") == {1: 0, 2: 10, 3: 10, 4: 15, 5: 15}


def test_easy_promises_the_head_alone() -> None:
    """C, promised nothing by EASY, is overtaken by D; conservative backfill holds its slots."""
    jobs = [job(1, 0, 2, 10), job(2, 1, 4, 10), job(3, 2, 3, 10), job(4, 3, 2, 7), job(5, 4, 2, 25), job(6, 5, 1, 12)]
    assert starts(jobs, 4, "easy") == naive(jobs, 4, "easy")
    assert starts(jobs, 4, "conservative") == naive(jobs, 4, "conservative")
    assert starts(jobs, 4, "conservative")[3] == 20


def test_spare_at_an_instant_counts_all_that_end_then() -> None:
    """Both A and B end at 10: two slots are spare beside the head, not one."""
    jobs = [job(1, 0, 1, 10), job(2, 0, 2, 10), job(3, 1, 2, 5), job(4, 2, 1, 50)]
    assert starts(jobs, 4, "easy")[4] == 2
    assert starts(jobs, 3, "easy") == {1: 0, 2: 0, 3: 10, 4: 10}


def test_an_early_end_moves_promises_forward() -> None:
    """A asked for 100 and took 10."""
    jobs = [job(1, 0, 4, 10, 100), job(2, 1, 4, 5), job(3, 2, 1, 5)]
    for policy in POLICIES:
        assert starts(jobs, 4, policy) == {1: 0, 2: 10, 3: 15}


def test_a_job_that_outruns_what_it_asked_for_runs_on() -> None:
    """A asked for 5 and takes 10: B waits for it, and what is overdue is expected within a second."""
    jobs = [job(1, 0, 3, 10, 5), job(2, 1, 4, 5), job(3, 7, 1, 3), job(4, 8, 1, 1)]
    for policy in ("easy", "conservative"):
        assert starts(jobs, 4, policy) == {1: 0, 2: 10, 3: 15, 4: 8}


def test_ends_come_before_submits() -> None:
    """B finds the slots that A gives back at that very second."""
    for policy in POLICIES:
        assert starts([job(1, 0, 4, 10), job(2, 10, 4, 5)], 4, policy) == {1: 0, 2: 10}


def test_jobs_without_run_time_follow_each_other_in_one_instant() -> None:
    """Each holds the whole machine for no time."""
    for policy in POLICIES:
        assert starts([job(line, 3, 4, 0) for line in range(1, 5)], 4, policy) == dict.fromkeys(range(1, 5), 3)


@settings(max_examples=examples(200))
@given(traces(least_run=1, short=0))
def test_easy_never_delays_the_head(trace: tuple[list[TraceJob], int]) -> None:
    """What the head was promised first is kept, if nobody outruns what it asked for."""
    jobs, slots = trace
    simulation = Simulation(jobs, slots, "easy")
    promised: dict[int, float] = {}
    while (step := simulation.step()) is not None:
        for key, time in step[1].promises.items():
            assert time <= promised.setdefault(key, time)
    for run in simulation.done:
        assert run.start <= promised.get(jobs.index(run.job), math.inf)


@settings(max_examples=examples(100))
@given(traces())
def test_no_slot_is_held_twice(trace: tuple[list[TraceJob], int]) -> None:
    """At no time do running jobs hold more than the machine has, and each job starts once, not before its submit."""
    jobs, slots = trace
    for policy in POLICIES:
        runs = simulate(jobs, slots, policy)
        assert sorted(run.job.line for run in runs) == sorted(job.line for job in jobs)
        for run in runs:
            assert run.start >= run.job.submit
            assert sum(other.job.slots for other in runs if other.start <= run.start < other.end) <= slots


def test_an_overdue_job_moves_the_promise() -> None:
    """A should end at 8. Seen at 10 it is expected at 11, when D ends too: one slot is spare then, and C takes it."""
    jobs = [job(1, 0, 2, 20, 8), job(2, 0, 1, 11), job(3, 1, 4, 5), job(4, 2, 1, 50), job(5, 10, 5, 5)]
    assert starts(jobs, 5, "easy")[4] == 10
    assert starts(jobs, 5, "easy") == naive(jobs, 5, "easy")
