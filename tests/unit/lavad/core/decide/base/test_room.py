"""MAX_USER_RECORDS: how many live records a user may have, and what makes records."""

from __future__ import annotations

import re

import pytest

from lavad.core.cluster.invariants import check_invariants
from lavad.core.cluster.records import units_of, units_of_spec
from lavad.core.decide.base import groups
from lavad.core.decide.base.groups import add_group, drop_group
from lavad.core.decide.base.room import TOO_MANY
from lavad.core.decide.control.control import kill
from lavad.core.decide.control.messages import post
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.modify.switch import switch
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import AddGroup, DropGroup, Kill, Modify, Post, Refused, Select, Switch
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ALICE, BOB, LOCAL, Bench

MOST = 1000


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.configure(params=Params(max_user_records=MOST, max_job_array_size=10**6, sub_try_interval=7))
    return bench


def fill(bench: Bench, left: int) -> None:
    """Jobs of alice until she may have ``left`` records more."""
    key = bench.bsub()["job"]
    job = bench.job(key)
    while bench.cluster.records["alice"] < MOST - left:
        key += 1
        bench.cluster.next_job = key + 1
        bench.cluster.jobs.put(key, type(job)(key=key, spec=job.spec, name="n", submitted=job.submitted))
    assert bench.cluster.records["alice"] == MOST - left


def refused(bench: Bench, **options: str) -> Refused:
    with pytest.raises(Refused, match=f"^{re.escape(TOO_MANY)}$") as caught:
        bench.bsub(ALICE, **options)
    return caught.value


def test_a_submission_beyond_it_is_refused_and_tried_again(bench: Bench) -> None:
    fill(bench, 2)
    bench.bsub()
    bench.bsub()
    assert refused(bench).retry == 7
    bench.bsub(BOB)
    assert bench.asked(kill, Kill(jobs=Select(ids=["1"])))[0][1] == ""
    bench.bsub()


def test_an_array_is_one_record_until_its_elements_differ(bench: Bench) -> None:
    bench.bsub(J="a[1-1000000]")
    assert bench.cluster.records["alice"] == 1 + units_of_spec(bench.cluster.spec_of(1))
    left = MOST - bench.cluster.records["alice"]
    answer = bench.asked(switch, Switch(queue="night", jobs=Select(ids=["1[1-500]"])))
    assert answer == [("1[1-500]", "")]
    taken = bench.cluster.records["alice"]
    assert MOST - left + 500 <= taken <= MOST - left + 520
    assert bench.asked(switch, Switch(queue="night", jobs=Select(ids=["1[1001-1500]"]))) == [("1[1001-1500]", TOO_MANY)]
    assert bench.cluster.records["alice"] == taken
    bench.bsub(J="b[1-1000000]")


def test_a_message_and_a_change_of_elements_make_records(bench: Bench) -> None:
    bench.bsub(J="a[1-1000000]")
    with pytest.raises(Refused, match=re.escape(TOO_MANY)):
        post(bench.cluster, Post(job="1[1-5000]", text="t"), ALICE, bench.now)
    with pytest.raises(Refused, match=re.escape(TOO_MANY)):
        modify(bench.cluster, Modify(job="1[1-5000]", options={"P": "x"}), JobText(command="c"), ALICE, bench.now, LOCAL)
    bench.take(post(bench.cluster, Post(job="1[1-5]", text="t"), ALICE, bench.now))
    assert len(bench.cluster.elements[1]) == 5


def test_long_names_requirements_and_conditions_count_for_more(bench: Bench) -> None:
    bench.bsub()
    one = bench.cluster.records["alice"]
    bench.bsub(J="n" * 4000)
    named = bench.cluster.records["alice"] - one
    assert named == units_of(bench.job(2)) == 8
    fill(bench, 100)
    refused(bench, R=" && ".join(["select[mem>1"] + ["mem>1"] * 500) + "]")
    refused(bench, w=" && ".join(["done(1)"] * 500))
    bench.bsub(R="select[mem>1]")


def test_a_batch_that_is_undone_counts_nothing(bench: Bench) -> None:
    bench.bsub()
    bench.cluster.forget_changes()
    before = dict(bench.cluster.records)
    bench.bsub(R="select[mem>5]")
    bench.asked(kill, Kill(jobs=Select(ids=["1"])))
    bench.cluster.undo_changes()
    assert bench.cluster.records == before


def test_job_groups_have_the_same_limit(bench: Bench) -> None:
    """Beside the jobs, whether they are added by hand or by jobs, with those above them; what stands can be used."""
    for number in range(MOST // 50):
        bench.take(add_group(bench.cluster, AddGroup(group=f"/g{number}" + "/a" * 49), ALICE, bench.now))
    assert bench.cluster.groups_of == {"alice": MOST}
    with pytest.raises(Refused, match="Job group threshold reached"):
        add_group(bench.cluster, AddGroup(group="/more"), ALICE, bench.now)
    with pytest.raises(Refused, match="Job group threshold reached"):
        bench.bsub(g="/more")
    bench.bsub(g="/g1/a/a")
    with pytest.raises(Refused, match="Job group threshold reached"):
        modify(bench.cluster, Modify(job="1", options={"g": "/more"}), JobText(command="c"), ALICE, bench.now, LOCAL)
    bench.bsub(BOB, g="/more")
    bench.take(drop_group(bench.cluster, DropGroup(group="0"), ALICE, bench.now))
    assert bench.cluster.groups_of == {"alice": 3, "bob": 1}
    bench.bsub(g="/other")
    check_invariants(bench.cluster)


def test_groups_are_deleted_some_in_each_turn_unless_in_use_by_then(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "AT_ONCE", 10)
    for number in range(10):
        bench.take(add_group(bench.cluster, AddGroup(group=f"/g{number}/a"), ALICE, bench.now))
    first = drop_group(bench.cluster, DropGroup(group="0"), ALICE, bench.now)
    bench.take(first)
    assert len(bench.cluster.groups.rows) == 10
    bench.bsub(g="/g3")
    bench.take(add_group(bench.cluster, AddGroup(group="/g5/new"), BOB, bench.now))
    assert first.more is not None
    last = first.more(bench.cluster, bench.now)
    bench.take(last)
    assert last.more is None
    assert len(last.answer["groups"]) == 18
    assert sorted(bench.cluster.groups.rows) == ["/g3", "/g5", "/g5/new"]
