"""The user groups of one configuration: whom each has, and which a user is in.

Rule: it depends on the configuration only, so that it is made once and asked often; a site may have thousands of users in
hundreds of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush


class GroupUsers:
    """Users of a group; ``all`` among them is everyone but those in ``out``."""

    def __init__(self, users: frozenset[str], out: frozenset[str] = frozenset()) -> None:
        self.users = users
        self.has_all = "all" in users
        self.out = out

    def __contains__(self, user: object) -> bool:
        return user not in self.out and (self.has_all or user in self.users)

    def __or__(self, other: GroupUsers) -> GroupUsers:
        """Whom one of them names is named: in ``most bob`` bob is, whom ``most`` leaves out."""
        out = frozenset(user for user in self.out | other.out if user not in self and user not in other)
        return GroupUsers(self.users | other.users, out)

    def __sub__(self, other: GroupUsers) -> GroupUsers:
        if not other.has_all:
            return GroupUsers(self.users - other.users, self.out | other.users if self.has_all else frozenset())
        kept = other.out | self.users if self.has_all else self.users
        return GroupUsers(frozenset(user for user in kept if user in self and user not in other) - {"all"})


class UserGroups:
    """The groups with their members as configured, each read when it is first asked for."""

    def __init__(self, groups: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self._listed = groups
        self._users: dict[str, GroupUsers] = {}
        self._expanded: dict[tuple[str, ...], frozenset[str]] = {}
        self._of: dict[str, tuple[str, ...]] = {}

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The members of each group as configured: users, groups (``GROUP/``), ``~`` before who is left out, ``all``."""
        return dict(self._listed)

    @cached_property
    def _holding(self) -> dict[str, list[int]]:
        """The places of the groups that have a member of this name, in their order."""
        found: dict[str, list[int]] = {}
        for at, (_, words) in enumerate(self._listed):
            for word in dict.fromkeys(words):
                found.setdefault(word, []).append(at)
        return found

    @cached_property
    def _named(self) -> frozenset[str]:
        """The groups, and users that they name."""
        return frozenset((*self.members, *(word.removeprefix("~") for word in self._holding)))

    @cached_property
    def _leaves_out(self) -> bool:
        return any(word.startswith("~") for word in self._holding)

    def users(self, name: str) -> GroupUsers:
        """The users of a group, of groups in it too, whose own ``~`` leave nobody out whom the group names beside them.

        Of a user, the user.
        """
        group = name.rstrip("/")
        if group not in self.members:
            return GroupUsers(frozenset((name,)))
        name = group if name == group else f"{group}/"  # with one slash, as users may give any number
        if name not in self._users:
            self._users[name] = self._read(name, {})
        return self._users[name]

    def _read(self, name: str, begun: dict[str, GroupUsers]) -> GroupUsers:
        """``begun``: what has been read so far; a group that is in itself has there what names it."""
        known = self._users.get(name) or begun.get(name)
        if known is not None:
            return known
        inside, outside = GroupUsers(frozenset((name,))), GroupUsers(frozenset())
        begun[name] = inside
        plain = []
        for word in self.members.get(name.rstrip("/"), ()):
            if word.startswith("~"):
                outside |= self._read(word[1:], begun)
            elif word.rstrip("/") in self.members:
                inside |= self._read(word, begun)
            else:
                plain.append(word)
        inside |= GroupUsers(frozenset(plain))
        begun[name] = inside - outside
        return begun[name]

    def expand(self, names: tuple[str, ...]) -> frozenset[str]:
        """Users and groups that the configuration names somewhere, with the groups' members (groups may nest)."""
        known = self._expanded.get(names)
        if known is None:
            found: set[str] = set()
            waiting = list(names)
            while waiting:
                name = waiting.pop()
                if name not in found:
                    found.add(name)
                    waiting += self.members.get(name.rstrip("/"), ())
            known = self._expanded[names] = frozenset(found)
        return known

    def of(self, user: str) -> tuple[str, ...]:
        """The groups that a user is in, groups in groups included."""
        user = user if user in self._named else ""  # whom no group names is in those of everybody
        known = self._of.get(user)
        if known is None:
            known = self._of[user] = self._groups_of(user)
        return known

    def _groups_of(self, user: str) -> tuple[str, ...]:
        """In the order in which they are found by going through all of them again and again until no more are found."""
        found: dict[str, None] = {}
        waiting = [(0, at) for word in (user, "all") for at in self._holding.get(word, ())]
        heapify(waiting)
        while waiting:
            turn, at = heappop(waiting)
            name = self._listed[at][0]
            if name not in found:
                found[name] = None
                for word in (name, f"{name}/"):
                    for other in self._holding.get(word, ()):
                        heappush(waiting, (turn + (other <= at), other))
        if self._leaves_out:
            return tuple(group for group in found if user in self.users(group))
        return tuple(found)
