"""bgadd, bgdel, bgmod: job groups that exist without jobs, and their limits of started jobs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.job.groups import JobGroup, lineage, read_path
from lavad.core.lang.asks import AddGroup, Caller, ChangeGroup, DropGroup, Refused
from lavad.core.site.rights import is_admin

BAD = "Bad/empty job group name"
MAX_LIMIT = 2**31 - 1


@decides(AddGroup)
def add_group(cluster: Cluster, ask: AddGroup, caller: Caller, now: float) -> Decided:
    """bgadd: add the group and its missing ancestors. Raises Refused."""
    path = _path(ask.group)
    if path in cluster.groups.rows:
        raise Refused("Job group exists already.")
    rows = [JobGroup(name=name, owner=caller.user, added=now) for name in _missing(cluster, path)]
    rows[-1] = replace(rows[-1], limit=_limit(ask.limit))
    return Decided(events=[ev.GroupSet(at=now, value=row) for row in rows], answer={"group": ask.group})


def missing_groups(cluster: Cluster, path: str, owner: str, now: float) -> list[ev.Event]:
    """Events that add a job's group and its ancestors where they are missing."""
    rows = (JobGroup(name=name, owner=owner, added=now, implicit=True) for name in _missing(cluster, path))
    return [ev.GroupSet(at=now, value=row) for row in rows]


def _missing(cluster: Cluster, path: str) -> list[str]:
    return [name for name in reversed(lineage(path)) if name not in cluster.groups.rows] if path else []


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
        names = _empty(cluster, ask.user if ask.user else caller.user)
        if not is_admin(cluster.conf, caller):
            names = [name for name in names if cluster.groups.rows[name].owner == caller.user]
        return _dropped(names, names, now)
    path = _path(ask.group)
    row = cluster.groups.rows.get(path)
    if row is None:
        raise Refused("The job group is not empty." if _in_use(cluster, path) else f"{BAD}.")
    if row.owner != caller.user and not is_admin(cluster.conf, caller):
        raise Refused("User permission denied.")
    if ask.below:
        names = [name for name in _empty(cluster, "all") if f"{name}/".startswith(f"{path}/")]
        if not names:
            raise Refused("The job group is not empty.")
        return _dropped(names, names, now)
    below = [name for name in cluster.groups.rows if name.startswith(path + "/")]
    if _in_use(cluster, path):
        raise Refused("The job group is not empty.")
    return _dropped([*below, path], [ask.group], now)


def _dropped(names: list[str], shown: list[str], now: float) -> Decided:
    events: list[ev.Event] = [ev.GroupDropped(at=now, group=name) for name in names]
    return Decided(events=events, answer={"groups": shown})


def _empty(cluster: Cluster, owner: str) -> list[str]:
    rows = cluster.groups.rows.values()
    wanted = [row.name for row in rows if owner == "all" or row.owner == owner]
    empty = {name for name in wanted if not _in_use(cluster, name)}
    # deepest first, and none that stays above one that stays
    kept = {name for name in cluster.groups.rows if name not in empty}
    return sorted((n for n in empty if not any(k.startswith(n + "/") for k in kept)), key=lambda n: (-n.count("/"), n))


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
    if not is_admin(cluster.conf, caller):
        raise Refused("User permission denied.")
    value = replace(row, limit=_limit(ask.limit))
    return Decided(events=[ev.GroupSet(at=now, value=value, by=caller.user)], answer={"group": ask.group})


def _path(text: str) -> str:
    path = read_path(text)
    if not path:
        raise Refused(f"{BAD}.")
    return path


def _limit(limit: int | None) -> int | None:
    if limit is not None and not 0 <= limit <= MAX_LIMIT:
        raise Refused(f"{limit}: Bad job group limit.")
    return limit
