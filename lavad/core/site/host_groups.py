"""Which hosts a list of host and group names means: HOSTS of a queue, ``bsub -m``.

Rule: words are ``host``, ``group``, ``all``, ``others``, each perhaps with ``+n`` (preference) or ``!`` (first host);
``~word`` excludes hosts. Unknown names mean nothing here: they were refused at submission. It depends on the configuration only,
so that each list is read once; a site may have thousands of hosts in hundreds of groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

_WORD = re.compile(r"(~?)(.*?)(?:\+(\d*))?(!?)")
MOST_KNOWN = 2_000_000
"""Hosts in lists of which it is kept what they mean: users give as many lists as they like, each with a group of thousands."""


class HostGroups:
    """The host groups of one configuration, compute units among them."""

    def __init__(self, groups: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self._listed = groups
        self._hosts: dict[str, tuple[str, ...]] = {}
        self._meant: dict[tuple[str, ...], HostList] = {}
        self._size = 0
        """Of these together."""

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The members of each group as configured: hosts, groups, ``all``."""
        return dict(self._listed)

    def hosts(self, group: str) -> tuple[str, ...]:
        """The hosts of a host group, groups in groups included; the name itself if it is no group."""
        if group not in self.members:
            return (group,)
        if group not in self._hosts:
            self._hosts[group] = self._read(group, frozenset())
        return self._hosts[group]

    def _read(self, group: str, above: frozenset[str]) -> tuple[str, ...]:
        known = self._hosts.get(group)
        if known is not None:
            return known
        if group not in self.members or group in above:
            return (group,)
        return tuple(host for word in self.members[group] for host in self._read(word, above | {group}))

    def preferences(self, words: tuple[str, ...], hosts: Iterable[str]) -> dict[str, int]:
        """Host to preference (0: none) for each of ``hosts`` that the words mean."""
        level = self.meant(words).level
        return {host: found for host in hosts if (found := level(host)) is not None}

    def meant(self, words: tuple[str, ...]) -> HostList:
        """What the words mean."""
        known = self._meant.get(words)
        if known is None:
            known = HostList(self, words)
            if self._size + known.size > MOST_KNOWN:
                self._meant, self._size = {}, 0
            self._meant[words] = known
            self._size += known.size
        return known

    def first_hosts(self, words: tuple[str, ...], hosts: Iterable[str]) -> frozenset[str]:
        """Those of ``hosts`` marked with ``!``, alone or by a group of theirs: one of them must be the first exec host."""
        marked = (word[:-1].partition("+")[0] for word in words if word.endswith("!"))
        named = frozenset(host for name in marked for host in self.hosts(name))
        return frozenset(hosts) if "all" in named else named


class HostList:
    """A list that has been read."""

    def __init__(self, groups: HostGroups, words: tuple[str, ...]) -> None:
        self._levels: dict[str, int] = {}
        self._away: set[str] = set()
        self._others: int | None = None
        """The preference of hosts that no word names; None: they are not meant."""
        for sign, name, level, _ in (match.groups() for match in map(_WORD.fullmatch, words) if match is not None):
            wanted = int(level or 1) if level is not None else 0
            if name == "others" and not sign:
                self._others = wanted
            elif sign:
                self._away.update(groups.hosts(name))
            else:
                hosts = groups.hosts(name)
                self._levels.update(
                    (host, max(wanted, self._levels.get(host, 0))) for host in (("all",) if "all" in hosts else hosts)
                )
        if self._away and not self._levels and self._others is None:
            self._others = 0

    @property
    def size(self) -> int:
        """Hosts that it names, and what it takes beside them, as so many hosts."""
        return len(self._levels) + len(self._away) + 25

    def level(self, host: str) -> int | None:
        """The preference (0: none) of a host of the cluster; None: it is not meant."""
        if host in self._away or "all" in self._away:
            return None
        everywhere, named = self._levels.get("all"), self._levels.get(host)
        if everywhere is not None:
            return max(everywhere, named or 0)
        return self._others if named is None else named
