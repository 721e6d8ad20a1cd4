"""Which jobs are over, separate ones and elements."""

from __future__ import annotations

from lavad.core.cluster.over import which_are_over
from tests.support.worlds.bench import Bench


def test_a_job_is_over_when_it_has_ended_or_is_not_known() -> None:
    bench = Bench()
    runs, waits = bench.placed(), bench.placed("PEND")
    ended = bench.placed()
    bench.ended(ended, "h1")
    assert which_are_over(bench.cluster, [runs, waits, ended, 4711]) == [ended, 4711]


def test_an_element_that_waits_is_not_over() -> None:
    bench = Bench()
    array = bench.bsub(J="a[1-3]")["job"]
    first, other = (index << 32 | array for index in (1, 9))
    assert which_are_over(bench.cluster, [first, other]) == [other]


def test_an_array_is_over_with_its_last_element() -> None:
    bench = Bench()
    array = bench.bsub(J="a[1-2]")["job"]
    bench.step()
    for index in (1, 2):
        assert which_are_over(bench.cluster, [array]) == []
        key = index << 32 | array
        bench.start(key)
        bench.ended(key, "h1")
    assert which_are_over(bench.cluster, [array]) == [array]
