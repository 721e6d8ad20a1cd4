"""Names of projects and user groups have a length that every database can hold as a key."""

from __future__ import annotations

import pytest

from lavad.core.decide.submit.relations import MAX_OWNER
from lavad.core.lang.asks import Refused
from tests.support.worlds.bench import Bench


def test_a_name_that_is_too_long_is_refused(bench: Bench) -> None:
    with pytest.raises(Refused, match="Project name is too long"):
        bench.bsub(P="é" * MAX_OWNER)
    with pytest.raises(Refused, match="User group name is too long"):
        bench.bsub(G="g" * (MAX_OWNER + 1))


def test_the_longest_project(bench: Bench) -> None:
    job = bench.bsub(P="p" * MAX_OWNER)["job"]
    assert bench.cluster.spec_of(job).project == "p" * MAX_OWNER
