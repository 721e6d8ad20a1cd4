"""Elements of a live array that ended before a condition named it: they count all the same once the array is over."""

from __future__ import annotations

import pytest

from lavad.core.decide.base.resolve import NeedsLookup, StoredJobs
from lavad.core.decide.depend.depend import ConditionQueue
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.depend import BLOCKED, MET, NEVER, Ended
from lavad.core.lang.asks import Submit
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from tests.support.worlds.bench import ALICE, LOCAL, Bench

FIRST = Ranges.span(1, 1)


class Site(Bench):
    """Job 1 is an array of three elements that run, and job 2 runs; ``stored``: what the store has of the array's elements."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions = ConditionQueue(self.cluster.conditions)
        self.bsub(J="a[1-3]")
        self.bsub(J="other")
        self.step()
        self.stored: Ended | None = None

    def end(self, index: int, status: int = 0, post: int = 0) -> None:
        key = key_of(1, index)
        host = self.run(key).parts[0].host
        self.start(key, host)
        self.ended(key, host, status, post=post)
        self.settle()

    def settle(self) -> None:
        while events := self.conditions.settle(self.cluster, self.now, self.local, 100):
            self.apply(*events)

    def depends(self, condition: str) -> int:
        """The id of a job with this condition; what is missing is looked up."""
        ask = Submit(command="true", options={"w": condition})
        try:
            decided = submit(self.cluster, Given(ask, ALICE, self.now, LOCAL))
        except NeedsLookup:
            decided = submit(self.cluster, Given(ask, ALICE, self.now, LOCAL, StoredJobs(elements={1: self.stored})))
        job: int = self.take(decided)["job"]
        self.settle()
        return job

    def stands(self, *jobs: int) -> list[int]:
        return [self.job(job).blocked for job in jobs]


@pytest.mark.parametrize("array", ["1", "a"])
def test_an_element_that_failed_before_keeps_done_untrue(array: str) -> None:
    """By number and by name; the array as a whole never was done."""
    site = Site()
    site.end(1, status=256)
    site.stored = Ended(exited=((1, FIRST),))
    done, exited = site.depends(f"done({array}) || done(2)"), site.depends(f"exit({array}) || done(2)")
    over, alone = site.depends(f"ended({array})"), site.depends(f"done({array})")
    assert site.stands(done, exited, over, alone) == [BLOCKED, BLOCKED, BLOCKED, NEVER]
    site.end(2)
    site.end(3)
    assert 1 not in site.cluster.arrays.rows
    assert site.stands(done, exited, over, alone) == [BLOCKED, BLOCKED, MET, NEVER]


@pytest.mark.parametrize("before", ["", "done(1[1])", "done(1)"])
def test_a_post_execution_command_that_failed_before_counts(before: str) -> None:
    """Also where another condition has named the array already."""
    site = Site()
    site.end(1, post=1)
    site.stored = Ended(done=FIRST, post_failed=FIRST)
    if before:
        site.depends(before)
    good, bad = site.depends("post_done(1) || done(2)"), site.depends("post_err(1) || done(2)")
    site.end(2)
    site.end(3)
    assert site.stands(good, bad) == [BLOCKED, BLOCKED]
    assert site.cluster.ended.rows[1].post_failed == FIRST


def test_nothing_is_looked_up_where_all_elements_that_ended_are_done() -> None:
    site = Site()
    site.end(1)
    job = site.depends("done(1)")
    site.end(2)
    site.end(3)
    assert site.stands(job) == [MET]
