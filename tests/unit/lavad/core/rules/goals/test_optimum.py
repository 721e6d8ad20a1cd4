"""The optimum number of running jobs: LSF's examples, and a deadline against jobs that are run one after the other in slots."""

from __future__ import annotations

from heapq import heapify, heapreplace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.model.guarantees import Goal, ServiceClass
from config.model.values import Limits
from lavad.core.job.pace import NEWEST, Pace, with_job
from lavad.core.job.spec import Spec
from lavad.core.rules.goals.optimum import Work, done_after, optimum_of
from lavad.core.rules.goals.work import Clock, optimum_now, pursued, seconds_of, work_of

MINUTE, HOUR = 60.0, 3600.0
DEADLINE = Goal("deadline", 0, "16:15-16:45")


def finish(waiting: int, seconds: float, ends: list[float], slots: int) -> float:
    """When all are over, in so many slots, of which those of started jobs are the first."""
    free = [*sorted(ends), *[0.0] * max(0, slots - len(ends))][:slots]
    last = max([0.0, *ends])
    heapify(free)
    for _ in range(waiting):
        last = max(last, free[0] + seconds)
        heapreplace(free, free[0] + seconds)
    return last


@pytest.mark.parametrize(("number", "waiting", "started"), [(5, 0, 0), (5, 100, 3), (30, 2, 40), (1, 1, 0)])
def test_a_velocity_is_a_number_of_jobs(number: int, waiting: int, started: int) -> None:
    assert optimum_of(Goal("velocity", number), Work(waiting, HOUR, [60.0] * started), HOUR) == number


@pytest.mark.parametrize(
    ("an_hour", "minutes", "jobs"),
    [(6, 50, 5), (6, 10, 1), (6, 10.01, 2), (60, 1, 1), (3, 1, 1), (1, 120, 2), (1000, 30, 500)],
)
def test_a_throughput_needs_so_many_at_once(an_hour: int, minutes: float, jobs: int) -> None:
    assert optimum_of(Goal("throughput", an_hour), Work(10, minutes * MINUTE, []), HOUR) == jobs


@pytest.mark.parametrize(
    ("waiting", "minutes", "ends", "left", "jobs"),
    [
        (6, 5, [], 30, 1),  # LSF's example: six jobs of five minutes use one slot for half an hour
        (5, 5, [299], 1799 / 60, 1),
        (6, 5, [], 29, 2),
        (3, 20, [], 39, 3),
        (3, 20, [], 40, 2),
        (1, 5, [], 4, 1),
        (10, 5, [], 4, 10),
        (10, 5, [60, 120], 4, 12),
        (0, 5, [60, 120], 30, 2),
        (0, 5, [], 30, 0),
        (280, 4, [], 14 * 60, 2),
        (40, 60, [], 8 * 60, 5),
    ],
)
def test_a_deadline_is_met_with_so_many(waiting: int, minutes: float, ends: list[float], left: float, jobs: int) -> None:
    assert optimum_of(DEADLINE, Work(waiting, minutes * MINUTE, ends), left * MINUTE) == jobs


works = st.tuples(st.integers(1, 60), st.integers(1, 900), st.lists(st.integers(0, 900), max_size=6), st.integers(1, 7200))


@given(works)
def test_a_deadline_takes_the_least_number_that_suffices(given: tuple[int, int, list[int], int]) -> None:
    waiting, seconds, ends, left = given
    work = Work(waiting, float(seconds), sorted(map(float, ends)))
    jobs = optimum_of(DEADLINE, work, float(left))
    assert 1 <= jobs <= waiting + len(ends)
    late = [end for end in ends if end > left]
    if jobs < waiting + len(ends) and not late:
        assert finish(waiting, seconds, list(work.ends), jobs) <= left
    if jobs > max(1, len(ends)):
        assert finish(waiting, seconds, list(work.ends), jobs - 1) > left


@given(works)
def test_with_less_time_or_more_jobs_it_is_not_less(given: tuple[int, int, list[int], int]) -> None:
    waiting, seconds, ends, left = given
    work = Work(waiting, float(seconds), sorted(map(float, ends)))
    jobs = optimum_of(DEADLINE, work, float(left))
    assert optimum_of(DEADLINE, work, left / 2) >= jobs
    assert optimum_of(DEADLINE, work._replace(waiting=waiting + 3), float(left)) >= jobs


@given(works, st.integers(1, 8))
def test_when_all_will_be_over(given: tuple[int, int, list[int], int], more: int) -> None:
    waiting, seconds, ends, _ = given
    work = Work(waiting, float(seconds), sorted(map(float, ends)))
    slots = len(ends) + more
    assert done_after(work, slots) == pytest.approx(finish(waiting, seconds, list(work.ends), slots), abs=1.1)


def test_nothing_waits_and_nothing_runs() -> None:
    assert done_after(Work(0, 60.0, []), 1) == 0.0
    assert done_after(Work(0, 60.0, [5.0, 90.0]), 2) == 90.0


def clock(*closed: str, left: int | None = 1800) -> Clock:
    return Clock(lambda text: text not in closed, lambda text: left if text else None)


def test_of_several_goals_the_largest_number_of_jobs_runs() -> None:
    service = ServiceClass(name="a", goals=(Goal("velocity", 3, "8:00-18:00"), Goal("throughput", 60, "9:00-17:00"), DEADLINE))
    work = Work(6, 5 * MINUTE, [])
    assert optimum_now(pursued(service, clock()), work, clock()) == 5
    assert optimum_now(pursued(service, clock("9:00-17:00")), work, clock()) == 3
    only = clock("9:00-17:00", "8:00-18:00")
    assert optimum_now(pursued(service, only), work, only) == 1
    assert pursued(service, clock(*(goal.windows for goal in service.goals))) == []


def test_what_jobs_are_expected_to_take() -> None:
    pace = Pace("a", 3, 100.0)
    assert work_of([(2, 60), (2, None)], [(950.0, None), (990.0, 30)], pace, 1000.0) == Work(4, 80.0, [20.0, 50.0])
    assert work_of([], [], pace, 1000.0) == Work(0, 100.0, [])
    unknown = work_of([(7, None)], [(400.0, None), (900.0, None)], None, 1000.0)
    assert unknown == Work(7, 600.0, [0.0, 500.0]), "as long as the one that has run longest has run by now"
    assert work_of([(7, None)], [], None, 1000.0) == Work(7, 1.0, [])
    assert work_of([(7, 0)], [(1005.0, None)], None, 1000.0) == Work(7, 1.0, [1.0]), "a clock that was set back"


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=NEWEST))
def test_the_pace_of_a_few_jobs_is_their_mean(times: list[float]) -> None:
    pace = None
    for seconds in times:
        pace = with_job(pace, "a", seconds)
    assert pace is not None
    assert (pace.name, pace.jobs) == ("a", len(times))
    assert pace.seconds == pytest.approx(sum(times) / len(times), rel=1e-6, abs=1e-6)


def test_what_ran_long_ago_is_forgotten() -> None:
    pace = with_job(None, "a", 10_000.0)
    for _ in range(10 * NEWEST):
        pace = with_job(pace, "a", 10.0)
    assert pace.jobs == NEWEST
    assert pace.seconds == pytest.approx(10.0, abs=0.1)


@pytest.mark.parametrize(
    ("estimate", "limit", "seconds"), [(0, None, None), (60, None, 60), (0, 90, 90), (60, 90, 60), (90, 60, 60)]
)
def test_an_estimate_counts_up_to_the_run_limit(estimate: int, limit: int | None, seconds: int | None) -> None:
    assert seconds_of(Spec(user="u", queue="q", estimate=estimate, limits=Limits(run=limit))) == seconds
