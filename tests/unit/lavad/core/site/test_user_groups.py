"""Who is in which user group, asked from either side, beside the plain rule; groups of many users."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.site.user_groups import UserGroups
from tests.support.examples import examples

USERS = ("ann", "bob", "eve")
NAMES = tuple(f"g{at}" for at in range(6))


@st.composite
def groups(draw: st.DrawFn) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Groups of users, of everybody, and of other groups of which none is in itself, in any order."""
    found = []
    for at, name in enumerate(NAMES):
        words = st.sampled_from((*USERS, "all", *NAMES[:at], *(f"{one}/" for one in NAMES[:at])))
        members = st.tuples(st.sampled_from(("", "", "", "~")), words).map("".join)
        found.append((name, tuple(draw(st.lists(members, max_size=4)))))
    return tuple(draw(st.permutations(found)))


def is_in(listed: dict[str, tuple[str, ...]], user: str, name: str) -> bool:
    """The rule as docs/configuration.md says it: whom a list names, less whom it leaves out."""

    def meant(word: str) -> bool:
        return word in (user, "all") or (word.rstrip("/") in listed and is_in(listed, user, word.rstrip("/")))

    words = listed[name]
    return any(meant(word) for word in words if word[0] != "~") and not any(meant(word[1:]) for word in words if word[0] == "~")


@given(groups())
@settings(max_examples=examples(500), deadline=None)
def test_a_user_is_in_the_groups_whose_users_have_it(listed: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    one = UserGroups(listed)
    for user in USERS:
        named = {name for name in NAMES if is_in(dict(listed), user, name)}
        assert set(one.of(user)) == named
        assert {name for name in NAMES if user in one.users(name)} == named
        assert one.of(user) is one.of(user)


def test_groups_come_in_the_order_in_which_they_are_listed_and_those_of_groups_found_later_after_them() -> None:
    listed = (("outer", ("middle",)), ("middle", ("inner",)), ("other", ("ann",)), ("inner", ("ann",)), ("last", ("inner",)))
    assert UserGroups(listed).of("ann") == ("other", "inner", "last", "middle", "outer")


def test_a_group_that_is_asked_for_with_slashes_is_kept_once() -> None:
    """``bjobs -u`` takes any number of them; with a slash a user of the same name is not meant."""
    one = UserGroups((("team", ("ann", "bob")),))
    assert all(one.users("team" + "/" * count) is one.users("team/") for count in range(1, 9))
    assert ("team" in one.users("team"), "team" in one.users("team/"), "ann" in one.users("team/")) == (True, False, True)
    assert one.users("eve/").users == {"eve/"}


def test_users_whom_no_group_names_are_kept_as_one() -> None:
    """``blimits -u`` takes any name."""
    one = UserGroups((("most", ("all", "~bob")), ("team", ("ann",)), ("both", ("most", "team"))))
    assert one.of("eve") == ("most", "both")
    assert all(one.of(f"user{at}") is one.of("eve") for at in range(9))
    assert (one.of("bob"), one.of("ann")) == ((), ("most", "team", "both"))


def test_a_group_that_is_in_itself_ends_nothing() -> None:
    one = UserGroups((("a", ("b", "ann")), ("b", ("a", "bob"))))
    for first in (("a", "b"), ("b", "a")):
        assert all({"ann", "bob"} <= one.users(name).users for name in first)
    assert set(one.of("ann")) == {"a", "b"}
    assert one.expand(("a",)) >= {"ann", "bob"}
