"""bgadd and bgdel: whose groups, which of them, and what is refused."""

from __future__ import annotations

import pytest

from lavad.core.decide.base.groups import add_group, drop_group
from lavad.core.lang.asks import AddGroup, Caller, DropGroup, Refused
from tests.support.worlds.bench import ADMIN, ALICE, BOB, Bench

ALL = {"/a", "/a/b", "/b", "/used", "/used/here", "/used/not"}


@pytest.fixture
def grouped(bench: Bench) -> Bench:
    """Groups of alice, but for /b; a job of hers is in /used/here."""
    for name, caller in (("/a/b", ALICE), ("/b", BOB), ("/used/here", ALICE), ("/used/not", ALICE)):
        bench.take(add_group(bench.cluster, AddGroup(group=name), caller, bench.now))
    bench.submit(group="/used/here")
    assert bench.cluster.groups.rows.keys() == ALL
    return bench


def dropped(bench: Bench, caller: Caller, **ask: object) -> set[str]:
    """The groups that are gone then, which are those that the answer names or are below them."""
    bench.take(drop_group(bench.cluster, DropGroup(**ask), caller, bench.now))  # type: ignore[arg-type]
    return ALL - bench.cluster.groups.rows.keys()


@pytest.mark.parametrize(
    ("caller", "user", "gone"),
    [
        (ALICE, "", {"/a", "/a/b", "/used/not"}),
        (ALICE, "all", {"/a", "/a/b", "/used/not"}),
        (ALICE, "bob", set()),
        (BOB, "alice", set()),
        (BOB, "", {"/b"}),
        (ADMIN, "", set()),
        (ADMIN, "bob", {"/b"}),
        (ADMIN, "alice", {"/a", "/a/b", "/used/not"}),
        (ADMIN, "all", {"/a", "/a/b", "/b", "/used/not"}),
    ],
)
def test_all_empty_groups_are_those_of_the_caller_or_for_an_administrator_of_anybody(
    grouped: Bench, caller: Caller, user: str, gone: set[str]
) -> None:
    assert dropped(grouped, caller, group="0", user=user) == gone


@pytest.mark.parametrize(
    ("caller", "group", "below", "gone"),
    [
        (ALICE, "/a", False, {"/a", "/a/b"}),
        (ALICE, "/a/b", False, {"/a/b"}),
        (ADMIN, "/b", False, {"/b"}),
        (ALICE, "/used/not", False, {"/used/not"}),
        (ALICE, "/a", True, {"/a", "/a/b"}),
        (ALICE, "/used", True, {"/used/not"}),
    ],
)
def test_a_group_goes_with_those_below_it(grouped: Bench, caller: Caller, group: str, below: bool, gone: set[str]) -> None:
    """With -c only those without jobs."""
    assert dropped(grouped, caller, group=group, below=below) == gone


@pytest.mark.parametrize(
    ("caller", "group", "below", "why"),
    [
        (BOB, "/a", False, "User permission denied."),
        (BOB, "/a", True, "User permission denied."),
        (ALICE, "/used", False, "The job group is not empty."),
        (ALICE, "/used/here", False, "The job group is not empty."),
        (ALICE, "/used/here", True, "The job group is not empty."),
        (ALICE, "/nosuch", False, "Bad/empty job group name."),
        (ALICE, "/us", False, "Bad/empty job group name."),
        (ALICE, "", False, "Bad/empty job group name."),
    ],
)
def test_a_group_stays(grouped: Bench, caller: Caller, group: str, below: bool, why: str) -> None:
    with pytest.raises(Refused) as refusal:
        dropped(grouped, caller, group=group, below=below)
    assert refusal.value.text == why


@pytest.mark.parametrize("caller", [ALICE, BOB])
def test_a_group_is_added_once(grouped: Bench, caller: Caller) -> None:
    with pytest.raises(Refused, match=r"^Job group exists already\.$"):
        add_group(grouped.cluster, AddGroup(group="/a"), caller, grouped.now)
