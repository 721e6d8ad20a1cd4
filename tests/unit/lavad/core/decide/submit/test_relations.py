"""Names of projects and user groups have a length that every database can hold as a key."""

from __future__ import annotations

import pytest

from lavad.core.decide.base.select import select
from lavad.core.decide.submit.relations import MAX_OWNER
from lavad.core.lang.asks import Refused, Select
from lavad.core.lang.bounds import MAX_IDS
from tests.support.worlds.bench import ALICE, Bench


def test_a_name_that_is_too_long_is_refused(bench: Bench) -> None:
    with pytest.raises(Refused, match="Project name is too long"):
        bench.bsub(P="é" * MAX_OWNER)
    with pytest.raises(Refused, match="User group name is too long"):
        bench.bsub(G="g" * (MAX_OWNER + 1))


def test_the_longest_project(bench: Bench) -> None:
    job = bench.bsub(P="p" * MAX_OWNER)["job"]
    assert bench.cluster.spec_of(job).project == "p" * MAX_OWNER


def test_more_ids_than_a_request_may_have(bench: Bench) -> None:
    with pytest.raises(Refused, match=f"More than {MAX_IDS} job IDs"):
        select(bench.cluster, Select(ids=["1"] * (MAX_IDS + 1)), ALICE)
