"""The watch that the tests of this folder run under sees a decision that changes its cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.conditions import Condition
from lavad.core.decide.control.control import kill
from lavad.core.job.depend import Depend
from tests.support.worlds.pure import Watch
from tests.support.worlds.world import one_host


def drops_a_row(cluster: Cluster) -> None:
    cluster.hosts.drop("h1")


def notes_something(cluster: Cluster) -> None:
    cluster.conditions.timed[Condition(Depend(text="time(*)", ids=()))] = None


def drops_a_row_by_and_by(cluster: Cluster) -> Iterator[int]:
    yield 1
    cluster.hosts.drop("h1")
    yield 2


@pytest.mark.parametrize("decide", [drops_a_row, notes_something, drops_a_row_by_and_by])
def test_a_change_is_seen(decide: Any) -> None:
    watched = Watch().wrap(decide, 0)
    with pytest.raises(AssertionError, match="changed its cluster"):
        list(watched(one_host().cluster) or ())


def test_what_decides_is_watched() -> None:
    assert hasattr(kill, "__wrapped__")
