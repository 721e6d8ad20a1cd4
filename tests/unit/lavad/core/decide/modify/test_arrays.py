"""bmod of a whole array: what is asked for changes for its waiting elements, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core.decide.control.messages import post
from lavad.core.lang.asks import Post
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from tests.support.worlds.bench import ALICE, Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmod

ALL = Ranges.span(1, 4)


def test_its_elements_have_what_was_asked_for_when_they_start(bench: Bench) -> None:
    job = bench.bsub(J="a[1-4]")["job"]
    bmod(bench, job, n="2", r=True)
    assert (bench.cluster.spec_of(job).slots, bench.cluster.spec_of(job).rerunnable) == (2, True)
    bench.step()
    run = bench.run(key_of(job, 1))
    assert sum(part.slots for part in run.parts) == 2
    assert bench.cluster.spec_of(key_of(job, 1)).rerunnable


@pytest.mark.parametrize("options", [{"n": "2"}, {"J": "other"}, {"P": "other"}])
def test_what_is_not_asked_for_stays(bench: Bench, options: dict[str, Any]) -> None:
    """Its condition, and how many may run at once."""
    first = bench.bsub()["job"]
    job = bench.bsub(J="a[1-4]%2", w=f"done({first})")["job"]
    before = bench.cluster.arrays.rows[job]
    bmod(bench, job, **options)
    after = bench.cluster.arrays.rows[job]
    assert (after.depend, after.waiting, after.limit, after.pending) == (before.depend, ALL, 2, ALL)
    assert not {key_of(job, index) for index in ALL} & set(bench.step()), "they wait for the first one"


def test_a_condition_that_is_taken_back_lets_them_start(bench: Bench) -> None:
    first = bench.bsub()["job"]
    job = bench.bsub(J="a[1-4]", w=f"done({first})")["job"]
    bmod(bench, job, wn=True)
    row = bench.cluster.arrays.rows[job]
    assert (row.depend, bool(row.waiting)) == (None, False)
    assert key_of(job, 1) in bench.step()


def test_a_message_to_it_is_there_for_each_of_its_elements(bench: Bench) -> None:
    """Also for those that get a record of their own later; a newer one of its number takes its place."""
    job = bench.bsub(J="a[1-4]")["job"]
    for number, text in ((0, "first"), (1, "other"), (0, "again")):
        bench.take(post(bench.cluster, Post(job=str(job), text=text, number=number), ALICE, bench.now))
    assert [(one.number, one.text) for one in bench.cluster.arrays.rows[job].messages] == [(1, "other"), (0, "again")]
    bench.step()
    assert [one.text for one in bench.job(key_of(job, 1)).messages] == ["other", "again"]
