"""Users that lists of users and groups name: groups of everybody (`all`), of everybody but some, and nested ones."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller
from lavad.core.site.conf import Conf, Params
from lavad.core.site.reservation import Reservation, may_use
from lavad.core.site.rights import NamedUsers, is_group_admin, may_use_queue

GROUPS = (
    ("dev", ("ann", "bob")),
    ("every", ("all",)),
    ("most", ("all", "~dev")),
    ("above", ("every",)),
    ("some", ("dev", "eve", "~bob")),
    ("again", ("most", "bob")),
    ("few", ("every", "~again")),
    ("both", ("most", "again")),
)
CONF = Conf(user_groups=GROUPS, params=Params(user_group_admins=(("most", ("kim",)),)))
NAMED = [
    (("all",), "ann bob eve"),
    (("every",), "ann bob eve"),
    (("above",), "ann bob eve"),
    (("most",), "eve"),
    (("most", "bob"), "bob eve"),
    (("some",), "ann eve"),
    (("every", "~dev"), "eve"),
    (("again",), "bob eve"),
    (("few",), "ann"),
    (("both",), "bob eve"),
    (("dev", "~again"), "ann"),
    (("all", "~eve"), "ann bob"),
    (("dev", "~ann"), "bob"),
    (("~ann",), ""),
    (("ann", "nosuch"), "ann"),
]


@pytest.mark.parametrize(("words", "users"), NAMED)
def test_who_is_named_may_use_the_queue_and_the_reservation(words: tuple[str, ...], users: str) -> None:
    named, queue, row = NamedUsers(CONF, words), QueueConfig(name="q", users=words), Reservation(name="r", users=words)
    for ask in (lambda user: user in named, lambda user: may_use_queue(CONF, queue, user), lambda user: may_use(CONF, row, user)):
        assert [user for user in ("ann", "bob", "eve") if ask(user)] == users.split()


@pytest.mark.parametrize(("words", "users"), NAMED)
def test_all_are_listed_where_it_is_not_everybody_but_some(words: tuple[str, ...], users: str) -> None:
    listed = NamedUsers(CONF, words).listed
    if {"all", "every", "above", "most", "again", "both"} & set(words):
        assert listed is None
    else:
        assert listed is not None
        assert sorted(listed & {"ann", "bob", "eve"}) == users.split()


@pytest.mark.parametrize(
    ("user", "groups"),
    [("ann", "dev every some above few"), ("bob", "dev every above again both"), ("eve", "every most some above again both")],
)
def test_the_groups_of_a_user(user: str, groups: str) -> None:
    assert sorted(CONF.groups_of_users.of(user)) == sorted(groups.split())
    plain = Conf(user_groups=tuple((name, words) for name, words in GROUPS if not any(word[0] == "~" for word in words)))
    assert set(plain.groups_of_users.of(user)) - {"again", "both"} == {*groups.split()} - {"most", "some", "few", "again", "both"}


def test_a_group_that_the_user_is_not_in_gives_its_administrators_no_rights() -> None:
    strict = Conf(
        user_groups=GROUPS, params=Params(strict_ug_control=True, user_group_admins=(("dev", ("kim",)), ("some", ("lee",))))
    )
    kim, lee = (Caller(user=user, uid=1007, host="h1") for user in ("kim", "lee"))
    assert [is_group_admin(strict, Spec(user="ann", queue="q", user_group="dev"), one) for one in (kim, lee)] == [True, False]
    assert [is_group_admin(strict, Spec(user="eve", queue="q", user_group="dev"), one) for one in (kim, lee)] == [False, True]


def test_an_administrator_of_a_group_of_everybody_but_some() -> None:
    kim = Caller(user="kim", uid=1007, host="h1")
    assert [is_group_admin(CONF, Spec(user=user, queue="q"), kim) for user in ("ann", "eve")] == [False, True]
