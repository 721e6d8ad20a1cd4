"""How much a dependency condition may name, and how often it is looked up."""

from __future__ import annotations

import pytest

from lavad.core.decide.base.resolve import MAX_NAMED, NeedsLookup, StoredJobs
from lavad.core.job.depend import MET, Ended
from lavad.core.lang.asks import Refused
from lavad.core.lang.ranges import Ranges
from tests.unit.lavad.core.decide.depend.test_depend import Waiters


@pytest.fixture
def world() -> Waiters:
    return Waiters()


class CountedReads(dict[int, Ended | None]):
    """Counts what is looked up in it."""

    count = 0

    def __getitem__(self, job: int) -> Ended | None:
        self.count += 1
        return super().__getitem__(job)


def test_what_a_condition_names_often_is_looked_up_once(world: Waiters) -> None:
    often = " && ".join(['ended("a*")'] * 300)
    with pytest.raises(NeedsLookup) as missing:
        world.depend(often + ' && done("a*") && done("b")')
    assert missing.value.names == ["a*", "b"]
    with pytest.raises(NeedsLookup) as missing:
        world.depend(often + ' && done("a*")', known=StoredJobs(names={"a*": (77, 78)}))
    assert missing.value.jobs == [77, 78]
    found = CountedReads({77: Ended(done=Ranges.span(1, 1)), 78: Ended(done=Ranges.span(1, 1))})
    waits = world.depend(often, known=StoredJobs(names={"a*": (77, 78)}, jobs=found))
    assert (found.count, world.blocked(waits)) == (2, MET)


def test_a_condition_names_a_bounded_number_of_jobs(world: Waiters) -> None:
    half = tuple(range(1000, 1000 + MAX_NAMED // 2))
    known = StoredJobs(names={"a*": half}, jobs=dict.fromkeys(half, Ended(done=Ranges.span(1, 1))))
    assert world.blocked(world.depend('ended("a*") && done("a*")', known=known)) == MET
    with pytest.raises(Refused, match=r"^a\*: Dependency condition names more than 100000 jobs$"):
        world.depend('ended("a*") && done("a*") && started("a*")', known=known)
