"""Places of hosts among the parts of an attempt, of small and of large jobs."""

from __future__ import annotations

import pytest

from lavad.core.job import places
from lavad.core.job.job import Attempt, Part
from lavad.core.job.places import KEPT, MANY, places_of


def attempt(hosts: list[str], uid: str = "u", elastic: bool = False) -> Attempt:
    return Attempt(number=1, uid=uid, parts=tuple(Part(host=host, slots=1) for host in hosts), dispatched=1.0, elastic=elastic)


@pytest.mark.parametrize("count", [1, MANY - 1, MANY, 3 * MANY])
def test_a_host_is_found_where_it_is(count: int) -> None:
    hosts = [f"h{number}" for number in range(count)]
    run = attempt(hosts)
    for _ in range(2):
        assert [list(places_of(run, host)) for host in hosts] == [[place] for place in range(count)]
        assert not places_of(run, "elsewhere")
    assert list(places_of(attempt(hosts[::-1]), "h0")) == [count - 1], "another attempt of the same uid"
    assert not places_of(attempt(hosts[1:]), "h0")


def test_a_host_that_came_back_is_found_twice() -> None:
    hosts = [f"h{number}" for number in range(MANY)]
    assert list(places_of(attempt([*hosts, "h3"], elastic=True), "h3")) == [3, MANY]


def test_few_attempts_are_kept() -> None:
    for number in range(2 * KEPT):
        assert places_of(attempt([f"h{at}" for at in range(MANY)], uid=f"u{number}"), "h1")
    assert len(places._kept) <= KEPT
