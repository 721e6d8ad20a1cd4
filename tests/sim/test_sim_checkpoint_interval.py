"""Lost work and checkpoint cost of jobs on hosts that fail: the interval that lava sets beside the best one and fixed ones."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable
from math import exp, gamma

import pytest

from lavad.core.lang.states import HostState
from lavad.core.rules.checkpoint_interval import DAY, LEAST, MOST, PRIOR, best_interval, failure_rate, pooled_rate
from lavad.core.site.host import Host

HOSTS = 16
RESTART = 120.0
SHAPE = 0.7
"""Of the Weibull distribution of real hosts' failures: many come soon after the last one."""
Failures = list[float]
PeriodAt = Callable[[float], float]


def failures(how: str, mean: float, length: float, seed: int) -> Failures:
    """Times at which a host fails, ``mean`` seconds between them."""
    chance = random.Random(seed)

    def draw() -> float:
        if how == "exponential":
            return chance.expovariate(1 / mean)
        return chance.weibullvariate(mean / gamma(1 + 1 / SHAPE), SHAPE)

    found, at = [], draw()
    while at < length:
        found.append(at)
        at += draw()
    return found


def overhead(period_at: PeriodAt, cost: float, down: Failures, length: float) -> float:
    """Seconds of ``length`` that were no lasting progress: dumps, lost work, restarts. ``down``: the job's failures in order."""
    useful, at = 0.0, 0.0
    for failure in [*down, length]:
        while (period := period_at(at)) and at + period <= failure:
            useful += period - cost
            at += period
        at = failure + RESTART
    return length - useful


def always(period: float) -> PeriodAt:
    return lambda _: period


def learnt(each: list[Failures], cost: float) -> PeriodAt:
    """The period that lava sets at a time, for a job on all these hosts, from what it has seen of them by then."""
    known: dict[int, float] = {}

    def period(at: float) -> float:
        day = int(at // DAY)
        if day not in known:
            seen = [bisect_right(down, at) for down in each]
            hosts = [Host(name=str(n), state=HostState.OK, failures=count) for n, count in enumerate(seen)]
            pooled = pooled_rate(hosts, at)
            known[day] = min(MOST, max(LEAST, best_interval(cost, 1 / sum(failure_rate(host, pooled, at) for host in hosts))))
        return known[day]

    return period


@pytest.mark.parametrize("how", ["exponential", "weibull"])
@pytest.mark.parametrize(("days", "cost"), [(20, 30.0), (100, 120.0), (5, 10.0)])
def test_lost_work_and_cost_are_near_the_least(how: str, days: int, cost: float) -> None:
    length = 80 * days * DAY
    each = [failures(how, days * DAY, length, 1000 * days + seed) for seed in range(HOSTS)]
    down = sorted(at for one in each for at in one)
    ours = overhead(learnt(each, cost), cost, down, length)
    guess = best_interval(cost, days * DAY / HOSTS)
    best = min(overhead(always(guess * 1.1**k), cost, down, length) for k in range(-8, 9))
    assert ours <= 1.05 * best
    for minutes in (10, 30, 60):
        fixed = overhead(always(60.0 * minutes), cost, down, length)
        assert ours < fixed or (ours <= 1.03 * fixed and 0.6 < 60 * minutes / guess < 1.7), f"{minutes} minutes"


def test_the_formula_is_near_the_exact_minimum() -> None:
    """Of Daly's expression for the time that a job takes, (exp(t/M) - 1) / (t - cost), by search."""
    for cost, mean in ((10.0, 3600.0), (120.0, 7200.0), (300.0, 86400.0), (600.0, 1800.0)):
        periods = [cost * 1.001 + 2 * mean * k / 20000 for k in range(1, 20000)]
        best = min(periods, key=lambda t: (exp(t / mean) - 1) / (t - cost))
        assert best_interval(cost, mean) == pytest.approx(best, rel=0.05)
    assert best_interval(100.0, 40.0) == 140.0


def test_estimates_begin_with_the_prior_and_follow_what_is_seen() -> None:
    fresh = [Host(name=f"h{number}") for number in range(4)]
    pooled = pooled_rate(fresh, 0.0)
    assert pooled == pytest.approx(1 / PRIOR)
    assert failure_rate(fresh[0], pooled, 0.0) == pytest.approx(1 / PRIOR)
    worn = Host(name="w", up=100 * DAY, failures=20)
    assert failure_rate(worn, pooled_rate([*fresh, worn], 0.0), 0.0) > 5 * failure_rate(fresh[0], pooled, 0.0)
