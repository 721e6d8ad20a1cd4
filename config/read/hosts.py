"""lsb.hosts -> slots, limits and thresholds of hosts; host groups, host partitions and compute units."""

import fnmatch
from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec

from config.check import check_share_names
from config.model.cluster import UNLIMITED, GroupConfig, HostConfig, PartitionConfig, UnitConfig
from config.model.problems import Place, Problems
from config.read.queues import name_is_good, read_thresholds
from config.text.sections import Row, Section
from config.values import values as v
from config.values.fields import Fields, Table, fill, shortened
from config.values.names import HOST_KEYWORDS, check_cycles, expand_all, flat_members, host_names, host_words, unknown_hosts


def chkpnt_ability(value: str, scope: v.Scope) -> bool:
    """The CHKPNT column: C for a host that can checkpoint; Y and N are taken too."""
    return True if value.upper() == "C" else v.yes_no(value, scope)


HOST: Table = {
    "DISPATCH_WINDOW": v.window_list,
    "MIG": v.minutes,
    "EXIT_RATE": v.real(),
    "CHKPNT": chkpnt_ability,
}


KEPT = ("dispatch_window", "mig", "exit_rate")
"""Of these columns; the others are only checked."""


class Members(Protocol):
    """Who knows the members of the groups that have ``!`` for them. ``failed``: the groups for which there was no answer."""

    failed: list[str]

    def members(self, group: str, of_hosts: bool) -> tuple[str, ...]:
        """Raises ValueError with the reason why there is no answer."""


class BatchHosts(msgspec.Struct):
    """`listed` is False without a Host section: then all hosts of lsf.cluster are batch hosts."""

    listed: bool = False
    default: Fields | None = None
    fields: dict[str, Fields] = {}
    places: dict[str, Place] = {}
    groups: dict[str, GroupConfig] = {}
    group_places: dict[str, Place] = {}
    partitions: tuple[PartitionConfig, ...] = ()
    partition_places: dict[str, Place] = {}


def read_lsb_hosts(
    sections: list[Section], scope: v.Scope, indices: frozenset[str], problems: Problems, egroup: Members | None = None
) -> BatchHosts:
    batch = BatchHosts()
    for section in sections:
        kind = section.name.lower()
        if kind == "host":
            batch.listed = batch.listed or bool(section.rows)
            for row in section.rows:
                _read_host(batch, row, scope, indices, problems)
        elif kind == "hostgroup":
            for row in section.rows:
                read_group(batch.groups, batch.group_places, row, "host group", problems, egroup)
        elif kind == "hostpartition":
            for row in section.rows:
                _read_partition(batch, row, problems)
        elif kind != "computeunit":
            problems.warn(section.place, f"section {shortened(section.name)} is not supported and has no effect")
    members = {name: group.members for name, group in batch.groups.items()}
    check_cycles(members, batch.group_places, "host group", problems)
    return batch


def _read_host(batch: BatchHosts, row: Row, scope: v.Scope, indices: frozenset[str], problems: Problems) -> None:
    name = row.text("HOST_NAME")
    owner = f"host {shortened(name)}"
    own = {"HOST_NAME", "MXJ", "JL/U", "AFFINITY", *(index.upper() for index in indices)}
    fields = {name: value for name, value in fill(row, HOST, scope, problems, owner, own).items() if name in KEPT}
    fields["thresholds"] = read_thresholds(row, indices, problems, owner)
    _read_counts(fields, row, owner, problems)
    affinity = row.text("AFFINITY")
    if affinity and affinity.upper() not in ("Y", "N"):
        problems.warn(row.place, f"{owner}: AFFINITY with a list of CPUs has no effect")
    fields["affinity"] = affinity.upper() != "N"
    if name.lower() == "default":
        if batch.default is not None:
            problems.error(row.place, "host default is listed twice; the first line holds")
        batch.default = fields if batch.default is None else batch.default
        return
    for host in host_names(name, row.place, problems):
        if host in batch.fields:
            problems.error(row.place, f"host {host} is listed twice; the first line holds")
        batch.fields.setdefault(host, fields)
        batch.places.setdefault(host, row.place)


def _read_partition(batch: BatchHosts, row: Row, problems: Problems) -> None:
    name = row.text("HPART_NAME")
    if not name_is_good(name, "host partition", "HPART_NAME", row.place, problems):
        return
    table: Table = {"HOSTS": host_words, "USER_SHARES": v.shares}
    fields = fill(row, table, v.Scope(), problems, f"host partition {name}", {"HPART_NAME"})
    if any(part.name == name for part in batch.partitions):
        problems.error(row.place, f"host partition {name} is defined twice; the first one holds")
        return
    shares = fields.get("user_shares", ())
    batch.partitions += (PartitionConfig(name=name, hosts=fields.get("hosts", ("all",)), shares=shares),)
    batch.partition_places[name] = row.place


def _read_counts(fields: Fields, row: Row, owner: str, problems: Problems) -> None:
    """MXJ (`!` and `()`: number of CPUs, `-`: no bound) and JL/U."""
    cell = row.cells.get("MXJ")
    if cell is not None and cell.value == "-":
        fields["slots"] = UNLIMITED
    elif cell is not None and cell.value not in ("", "!"):
        _count(fields, "slots", row, "MXJ", owner, problems)
    if row.text("JL/U") not in ("", "!"):
        _count(fields, "user_job_limit", row, "JL/U", owner, problems)


def _count(fields: Fields, field: str, row: Row, column: str, owner: str, problems: Problems) -> None:
    try:
        fields[field] = v.number(0)(row.text(column), v.Scope())
    except ValueError as wrong:
        problems.error(row.cells[column].place, f"{owner}: {column}: {shortened(str(wrong))}")


def read_group(
    groups: dict[str, GroupConfig],
    places: dict[str, Place],
    row: Row,
    what: str,
    problems: Problems,
    egroup: Members | None,
) -> None:
    """A line of HostGroup or UserGroup. ``egroup`` is asked for the members where they are ``!``."""
    name = row.text("GROUP_NAME")
    if not name_is_good(name, what, "GROUP_NAME", row.place, problems):
        return
    if name.lower() in HOST_KEYWORDS:
        problems.error(row.place, f"{what} name '{name}' is a keyword")
        return
    if name in groups:
        problems.error(row.place, f"{what} {name} is defined twice; the first one holds")
        return
    members = tuple(row.text("GROUP_MEMBER").split())
    table: Table = {"CONDENSE": v.yes_no, "GROUP_ADMIN": v.words, "USER_SHARES": v.shares}
    fields = fill(row, table, v.Scope(), problems, f"{what} {name}", {"GROUP_NAME", "GROUP_MEMBER"})
    if "!" in members:
        members = tuple(member for member in members if member != "!")
        try:
            members += egroup.members(name, what == "host group") if egroup else ()
        except ValueError as wrong:
            problems.warn(row.place, f"{what} {name}: members by egroup (!): {shortened(str(wrong))}: it has none")
    groups[name] = GroupConfig(
        name=name,
        members=expand_all(members) if what == "host group" else members,
        admins=fields.get("group_admin", ()),
        shares=fields.get("user_shares", ()),
    )
    places[name] = row.place


def joined(
    declared: dict[str, HostConfig], is_open: bool, batch: BatchHosts, problems: Problems
) -> tuple[tuple[HostConfig, ...], HostConfig | None]:
    """The hosts of lsf.cluster with their lines of lsb.hosts, and what a host that nobody names gets.

    A line for the host itself beats one for a group, type or model, which beats `default`.
    """
    hosts = dict(declared)
    by_kind: dict[str, Fields] = {}
    for name, fields in batch.fields.items():
        if name in declared:
            continue
        members = _hosts_of_kind(name, declared, batch)
        if members is not None:
            for member in members:
                by_kind.setdefault(member, fields)
        elif is_open:
            hosts[name] = HostConfig(name=name)
        else:
            problems.error(batch.places[name], f"host {name} is not in lsf.cluster")
    found = []
    for name, host in hosts.items():
        chosen = batch.fields.get(name, by_kind.get(name, batch.default))
        is_batch = host.server and (chosen is not None or not batch.listed)
        found.append(msgspec.structs.replace(host, batch=is_batch, **(chosen or {})))
    accepts = is_open and (batch.default is not None or not batch.listed)
    return tuple(found), HostConfig(name="default", **(batch.default or {})) if accepts else None


def _hosts_of_kind(name: str, declared: dict[str, HostConfig], batch: BatchHosts) -> list[str] | None:
    """The hosts that a group, type or model stands for; None if `name` is none of these."""
    if name in batch.groups:
        patterns = flat_members(name, {group.name: group.members for group in batch.groups.values()})
        return [host for host in declared if any(_matches(host, pattern) for pattern in patterns)]
    return [host.name for host in declared.values() if name in (host.type, host.model)] or None


def _matches(host: str, pattern: str) -> bool:
    return pattern == "all" or fnmatch.fnmatchcase(host, pattern)


def members_of(batch: BatchHosts) -> list[tuple[str, tuple[str, ...], Place]]:
    """What each host group and host partition names, for ``check_hosts_named``."""
    parts = [(f"host partition {part.name}", part.hosts, batch.partition_places[part.name]) for part in batch.partitions]
    return [(f"host group {name}", group.members, batch.group_places[name]) for name, group in batch.groups.items()] + parts


def check_batch_hosts(batch: BatchHosts, hosts: frozenset[str], user_groups: Collection[str], problems: Problems) -> None:
    """Names of groups, what shares of a partition name, and what is not as in LSF: the first partition rules for all hosts."""
    for name in batch.groups.keys() & hosts:
        # it would take the host's place wherever that is named
        problems.error(batch.group_places[name], f"host group {name} has the name of a host")
    groups = {name: group.members for name, group in batch.groups.items()}
    for at, part in enumerate(batch.partitions):
        place, owner = batch.partition_places[part.name], f"host partition {part.name}"
        check_share_names(part.shares, user_groups, place, f"{owner}: USER_SHARES", problems)
        if at:
            problems.warn(place, f"{owner} has no effect: the first, {batch.partitions[0].name}, rules for all hosts")
        elif not _has_all(part.hosts, groups, hosts):
            problems.warn(place, f"{owner}: HOSTS has no effect: the partition rules for all hosts")


def _has_all(words: tuple[str, ...], groups: Mapping[str, tuple[str, ...]], hosts: frozenset[str]) -> bool:
    """Whether a list of hosts and host groups means all hosts."""
    if any(word.startswith("~") for word in words):
        return False
    named = flat_members("", {**groups, "": words})
    return all(any(_matches(host, pattern) for pattern in named) for host in hosts)


def check_hosts_named(lists: list[tuple[str, tuple[str, ...], Place]], known: frozenset[str], problems: Problems) -> None:
    for owner, words, place in lists:
        for name in unknown_hosts(words, known):
            problems.error(place, f"{owner}: unknown host or host group {shortened(name)}")


def read_units(
    sections: list[Section], types: tuple[str, ...], groups: frozenset[str], problems: Problems
) -> tuple[UnitConfig, ...]:
    """The ComputeUnit sections (racks, switches, enclosures, as cu[] and `-m` use them), in order of definition.

    `types` is COMPUTE_UNIT_TYPES, the finest first, `groups` are host groups.
    """
    table: Table = {"TYPE": v.text, "CONDENSE": v.yes_no, "ADMINS": v.words}
    order = [word.rstrip("!") for word in types]
    found: dict[str, UnitConfig] = {}
    places: dict[str, Place] = {}
    for row in [row for section in sections if section.name.lower() == "computeunit" for row in section.rows]:
        name = row.text("NAME")
        if not name_is_good(name, "compute unit", "NAME", row.place, problems):
            continue
        fields = fill(row, table, v.Scope(), problems, f"compute unit {name}", {"NAME", "MEMBER"})
        kind = fields.get("type", "")
        if name in found or name in groups:
            problems.error(row.place, f"compute unit {name} is defined twice; the first one holds")
        elif kind not in order:
            problems.error(row.place, f"compute unit {name}: type {shortened(kind) or '-'} is not in COMPUTE_UNIT_TYPES")
        else:
            members = expand_all(tuple(word.strip("()") for word in row.text("MEMBER").split() if word.strip("()")))
            found[name] = UnitConfig(name=name, type=kind, members=members, admins=fields.get("admins", ()))
            places[name] = row.place
    _check_units(found, places, order, problems)
    return tuple(found.values())


def _check_units(units: dict[str, UnitConfig], places: dict[str, Place], order: list[str], problems: Problems) -> None:
    """Each member is of the next finer type, and in one unit of a type only."""
    homes: dict[tuple[str, str], str] = {}
    for unit in units.values():
        level = order.index(unit.type)
        finer = order[level - 1] if level else ""
        for member in unit.members:
            home = homes.setdefault((unit.type, member), unit.name)
            if home != unit.name:
                problems.error(places[unit.name], f"compute unit {unit.name}: {shortened(member)} is in {home} already")
            inner = units.get(member)
            if (inner.type if inner is not None else "") != finer:
                what = f"a compute unit of type {finer}" if finer else "a host or host group"
                problems.error(places[unit.name], f"compute unit {unit.name}: {shortened(member)} is not {what}")
