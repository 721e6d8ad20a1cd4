"""Limits of job groups below and above each other, and what a group without one has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core.decide.base.groups import add_group, change_group
from lavad.core.job.groups import limited_by
from lavad.core.lang.asks import AddGroup, ChangeGroup, Refused
from tests.support.worlds.bench import ADMIN, ALICE, Bench


@pytest.fixture
def grouped(bench: Bench) -> Bench:
    for name, limit in (("/a", 10), ("/a/b", None), ("/a/b/c", 5), ("/ab", None)):
        bench.take(add_group(bench.cluster, AddGroup(group=name, limit=limit), ALICE, bench.now))
    return bench


@pytest.mark.parametrize(
    ("name", "limit", "other"),
    [("/a/b", 11, "/a has 10"), ("/a/b/c", 11, "/a has 10"), ("/a", 4, "/a/b/c has 5"), ("/a/b", 4, "/a/b/c has 5")],
)
def test_a_limit_that_does_not_fit(grouped: Bench, name: str, limit: int, other: str) -> None:
    with pytest.raises(Refused, match=f"^{limit}: Bad job group limit: job group {other}.$"):
        change_group(grouped.cluster, ChangeGroup(group=name, limit=limit), ADMIN, grouped.now)


def test_all_groups_above_count_where_an_older_store_has_one_with_more_than_its_parent(grouped: Bench) -> None:
    cluster = grouped.cluster
    cluster.groups.put("/a/b", replace(cluster.groups.rows["/a/b"], limit=20))
    with pytest.raises(Refused, match="job group /a has 10"):
        change_group(cluster, ChangeGroup(group="/a/b/c", limit=15), ADMIN, grouped.now)


def test_a_new_group_has_no_more_than_those_above(grouped: Bench) -> None:
    with pytest.raises(Refused, match="job group /a has 10"):
        add_group(grouped.cluster, AddGroup(group="/a/new/one", limit=11), ALICE, grouped.now)


@pytest.mark.parametrize(("name", "limit"), [("/a", 5), ("/a", None), ("/a/b", 10), ("/a/b", 5), ("/a/b/c", 0), ("/ab", 99)])
def test_a_limit_that_fits(grouped: Bench, name: str, limit: int | None) -> None:
    grouped.take(change_group(grouped.cluster, ChangeGroup(group=name, limit=limit), ADMIN, grouped.now))
    assert grouped.cluster.groups.rows[name].limit == limit


@pytest.mark.parametrize(("name", "limit"), [("/a", 10), ("/a/b", 10), ("/a/b/c", 5), ("/a/b/d/e", 10), ("/ab", None)])
def test_a_group_without_a_limit_has_that_above_it(grouped: Bench, name: str, limit: int | None) -> None:
    row = limited_by(name, grouped.cluster.groups.rows)
    assert (None if row is None else row.limit) == limit
