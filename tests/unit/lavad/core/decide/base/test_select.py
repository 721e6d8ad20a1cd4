"""How many jobs one request may name: all there are, but none of them again and again."""

from __future__ import annotations

import pytest

from lavad.core.decide.base import select as selection
from lavad.core.decide.base.select import select
from lavad.core.lang.asks import Refused, Select
from lavad.core.lang.bounds import MAX_IDS
from tests.support.worlds.bench import ALICE, Bench


def test_more_ids_than_a_request_may_have(bench: Bench) -> None:
    with pytest.raises(Refused, match=f"More than {MAX_IDS} job IDs"):
        select(bench.cluster, Select(ids=["1"] * (MAX_IDS + 1)), ALICE)


def test_all_jobs_of_a_user_are_never_too_many(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [bench.bsub()["job"] for _ in range(5)]
    monkeypatch.setattr(selection, "MAX_KEYS", 4)
    assert select(bench.cluster, Select(ids=["0"]), ALICE) == jobs
    assert len(select(bench.cluster, Select(ids=["0", str(jobs[0])]), ALICE)) == 6
    with pytest.raises(Refused, match="More than 4 jobs and elements in one request"):
        select(bench.cluster, Select(ids=["0", "0"]), ALICE)
    with pytest.raises(Refused, match="More than 4 jobs and elements in one request"):
        select(bench.cluster, Select(ids=[str(jobs[0])] * 5), ALICE)
