"""MAX_PEND_SLOTS holds for the slots that bmod -n adds to jobs that wait, as for those of new jobs."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.cluster import UserConfig
from lavad.core.decide.modify.modify import modify
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Modify, Refused
from tests.support.worlds.bench import ALICE, LOCAL, Bench


def bmod(bench: Bench, job: object, **options: Any) -> None:
    ask = Modify(job=str(job), options=options)
    bench.take(modify(bench.cluster, ask, JobText(command="old"), ALICE, bench.now, LOCAL))


@pytest.fixture
def bench() -> Bench:
    b = Bench()
    b.configure(users=(UserConfig(name="alice", max_pend_slots=6),))
    return b


def test_a_job_that_waits(bench: Bench) -> None:
    key = bench.bsub(n="2")["job"]
    bench.bsub(n="2")
    with pytest.raises(Refused, match=r"^Pending job threshold reached$") as refused:
        bmod(bench, key, n="5")
    assert refused.value.retry == 0
    assert bench.cluster.spec_of(key).slots == 2
    bmod(bench, key, n="4")
    assert bench.cluster.spec_of(key).slots == 4
    bmod(bench, key, J="name")
    bmod(bench, key, n="1")


def test_an_array_counts_with_all_its_elements(bench: Bench) -> None:
    key = bench.bsub(J="a[1-3]")["job"]
    with pytest.raises(Refused, match="Pending job threshold reached"):
        bmod(bench, key, n="3")
    bmod(bench, f"{key}[2]", n="4")
    with pytest.raises(Refused, match="Pending job threshold reached"):
        bmod(bench, f"{key}[3]", n="2")


def test_one_that_has_too_much_already_may_be_made_smaller(bench: Bench) -> None:
    key = bench.bsub(n="6")["job"]
    bench.configure(users=(UserConfig(name="alice", max_pend_slots=2),))
    bmod(bench, key, n="4")
    bmod(bench, key, J="name")
