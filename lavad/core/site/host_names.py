"""Which hosts a list of host and group names means: HOSTS of a queue, ``bsub -m``.

Rule: words are ``host``, ``group``, ``all``, ``others``, each perhaps with ``+n`` (preference) or ``!`` (first host);
``~word`` excludes hosts. Unknown names mean nothing here: they were refused at submission.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lavad.core.site.conf import Conf

_WORD = re.compile(r"(~?)(.*?)(?:\+(\d*))?(!?)")


def members(conf: Conf, group: str, seen: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The hosts of a host group, groups in groups included; the name itself if it is no group."""
    words = dict(conf.host_groups).get(group)
    if words is None or group in seen:
        return (group,)
    return tuple(host for word in words for host in members(conf, word, seen | {group}))


def preferences(conf: Conf, words: tuple[str, ...], hosts: Iterable[str]) -> dict[str, int]:
    """Host to preference (0: none) for each of ``hosts`` that the words mean."""
    known = dict.fromkeys(hosts, 0)
    wanted: dict[str, int] = {}
    away: set[str] = set()
    others: int | None = None
    for word in words:
        match = _WORD.fullmatch(word)
        if match is None:
            continue
        level = int(match[3] or 1) if match[3] is not None else 0
        if match[2] == "others" and not match[1]:
            others = level
            continue
        named: Iterable[str] = members(conf, match[2])
        named = known if "all" in named else named
        if match[1]:
            away.update(named)
        else:
            wanted.update((host, max(level, wanted.get(host, 0))) for host in named)
    if others is not None or (away and not wanted):
        wanted = dict.fromkeys(known, others or 0) | wanted
    return {host: wanted[host] for host in known if host in wanted and host not in away}


def first_hosts(conf: Conf, words: tuple[str, ...], hosts: Iterable[str]) -> frozenset[str]:
    """Those of ``hosts`` marked with ``!``, alone or by a group of theirs: one of them must be the first exec host."""
    marked = (word[:-1].partition("+")[0] for word in words if word.endswith("!"))
    named = frozenset(host for name in marked for host in members(conf, name))
    return frozenset(hosts) if "all" in named else named
