"""bgadd, bgdel, bgmod: job groups that exist without jobs, and their limits of started jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.job.groups import JobGroup, lineage, read_path
from lavad.core.lang.asks import AddGroup, Caller, ChangeGroup, DropGroup, Refused
from lavad.core.lang.bounds import MAX_INT32
from lavad.core.site.rights import is_admin, why_not_admin

BAD = "Bad/empty job group name"
AT_ONCE = 1_000
"""Groups that are deleted in one turn; other callers wait for it."""


@decides(AddGroup)
def add_group(cluster: Cluster, ask: AddGroup, caller: Caller, now: float) -> Decided:
    """bgadd: add the group and its missing ancestors. Raises Refused."""
    path = _path(ask.group)
    if path in cluster.groups.rows:
        raise Refused("Job group exists already.")
    rows = [JobGroup(name=name, owner=caller.user, added=now) for name in _missing(cluster, path, caller.user)]
    rows[-1] = replace(rows[-1], limit=_limit(cluster, path, ask.limit))
    return Decided(events=[ev.GroupSet(at=now, value=row) for row in rows], answer={"group": ask.group})


def missing_groups(cluster: Cluster, path: str, owner: str, now: float) -> list[ev.Event]:
    """Events that add a job's group and its ancestors where they are missing. Raises Refused."""
    if not path:
        return []
    rows = (JobGroup(name=name, owner=owner, added=now, implicit=True) for name in _missing(cluster, path, owner))
    return [ev.GroupSet(at=now, value=row) for row in rows]


def _missing(cluster: Cluster, path: str, owner: str) -> list[str]:
    found = [name for name in reversed(lineage(path)) if name not in cluster.groups.rows]
    if found and cluster.groups_of[owner] + len(found) > cluster.conf.params.max_user_records:
        raise Refused("Job group threshold reached (MAX_USER_RECORDS); bgdel 0 deletes your empty job groups.")
    return found


def clean_groups(cluster: Cluster, now: float) -> Decided:
    """JOB_GROUP_CLEAN: delete the ``unused_groups``."""
    return Decided(events=[ev.GroupDropped(at=now, group=name) for name in unused_groups(cluster)])


def unused_groups(cluster: Cluster) -> list[str]:
    """Groups created by jobs that have no limit, no jobs and no remaining subgroup; deepest first."""
    used = {name for group in groups_of_jobs(cluster) for name in lineage(group)}
    kept = (row.name for row in cluster.groups.rows.values() if not row.implicit or row.limit is not None)
    stays = used | {name for group in kept for name in lineage(group)}
    return sorted((name for name in cluster.groups.rows if name not in stays), key=lambda name: (-name.count("/"), name))


@decides(DropGroup)
def drop_group(cluster: Cluster, ask: DropGroup, caller: Caller, now: float) -> Decided:
    """bgdel: delete an empty group; ``0``: all empty groups of the caller (with ``user`` all, of everybody). Raises Refused."""
    if ask.group == "0":
        owner = ask.user if ask.user else caller.user
        every = owner == "all"
        rows = [row for row in cluster.groups.rows.values() if every or row.owner == owner]
        names = _empty(cluster, [row.name for row in rows])
        if not is_admin(cluster.conf, caller):
            names = [name for name in names if cluster.groups.rows[name].owner == caller.user]
        return _drop_empty(cluster, names, now, [])
    path = _path(ask.group)
    row = cluster.groups.rows.get(path)
    if row is None:
        raise Refused("The job group is not empty." if _in_use(cluster, path) else f"{BAD}.")
    if row.owner != caller.user and (why := why_not_admin(cluster.conf, caller)):
        raise Refused(f"{why}.")
    if ask.below:
        names = [name for name in _empty(cluster, cluster.groups.rows) if f"{name}/".startswith(f"{path}/")]
        if not names:
            raise Refused("The job group is not empty.")
        return _drop_empty(cluster, names, now, [])
    below = [name for name in cluster.groups.rows if name.startswith(path + "/")]
    if _in_use(cluster, path):
        raise Refused("The job group is not empty.")
    return _dropped([*below, path], [ask.group], now)


def _dropped(names: list[str], shown: list[str], now: float) -> Decided:
    events: list[ev.Event] = [ev.GroupDropped(at=now, group=name) for name in names]
    return Decided(events=events, answer={"groups": shown})


def _drop_empty(cluster: Cluster, names: list[str], now: float, dropped: list[str]) -> Decided:
    """Delete those of the groups, deepest first, that are still empty, some in each turn; ``dropped``: those of turns before."""
    used = _used(cluster)
    below = Counter(name.rpartition("/")[0] for name in cluster.groups.rows)
    some = []
    for name in names[:AT_ONCE]:
        if name in cluster.groups.rows and name not in used and not below[name]:
            some.append(name)
            below[name.rpartition("/")[0]] -= 1
    decided = _dropped(some, [*dropped, *some], now)
    if rest := names[AT_ONCE:]:
        shown = decided.answer["groups"]
        decided.more = lambda then, at: _drop_empty(then, rest, at, shown)
    return decided


def _empty(cluster: Cluster, wanted: Iterable[str]) -> list[str]:
    """Those of the groups without a job in them or below, and without a group below that is not one of them."""
    rows = cluster.groups.rows
    used = _used(cluster)
    empty = {name for name in wanted if name in rows and name not in used}
    # deepest first, and none that stays above one that stays
    stays = {name for kept in rows if kept not in empty for name in lineage(kept)}
    return sorted(empty - stays, key=lambda name: (-name.count("/"), name))


def _used(cluster: Cluster) -> set[str]:
    """The groups of live jobs, and those above them."""
    return {name for group in set(groups_of_jobs(cluster)) for name in lineage(group)}


def _in_use(cluster: Cluster, path: str) -> bool:
    return any(group == path or group.startswith(path + "/") for group in groups_of_jobs(cluster))


def groups_of_jobs(cluster: Cluster) -> Iterator[str]:
    """The groups of live jobs, once for each spec."""
    for number in cluster.spec_jobs:
        group = cluster.specs.rows[number].group
        if group:
            yield group


@decides(ChangeGroup)
def change_group(cluster: Cluster, ask: ChangeGroup, caller: Caller, now: float) -> Decided:
    """bgmod: change or remove the limit. Raises Refused."""
    path = _path(ask.group)
    row = cluster.groups.rows.get(path)
    if row is None:
        raise Refused(f"{BAD}.")
    if why := why_not_admin(cluster.conf, caller):
        raise Refused(f"{why}.")
    limit = _limit(cluster, path, ask.limit)
    if limit is not None:
        for below in cluster.groups.rows.values():
            if below.limit is not None and below.limit > limit and below.name.startswith(f"{path}/"):
                raise _unfit(limit, below)
    value = replace(row, limit=limit)
    return Decided(events=[ev.GroupSet(at=now, value=value, by=caller.user)], answer={"group": ask.group})


def _path(text: str) -> str:
    path = read_path(text)
    if not path:
        raise Refused(f"{BAD}.")
    return path


def _limit(cluster: Cluster, path: str, limit: int | None) -> int | None:
    """The limit; raises Refused where it is above that of a group above, as IBM has it ("Modifying a job group limit")."""
    if limit is None:
        return None
    if not 0 <= limit <= MAX_INT32:
        raise Refused(f"{limit}: Bad job group limit.")
    # each, as stores of versions that did not look have groups with more than the one above them
    for name in lineage(path)[1:]:
        above = cluster.groups.rows.get(name)
        if above is not None and above.limit is not None and above.limit < limit:
            raise _unfit(limit, above)
    return limit


def _unfit(limit: int, other: JobGroup) -> Refused:
    return Refused(f"{limit}: Bad job group limit: job group {other.name} has {other.limit}.")
