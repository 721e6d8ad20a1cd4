"""bugroup and bmgroup: user groups and host groups with their members; bhpart: host partitions with their shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lavad.core.lang.asks import Refused
from lavad.queries.facts import shares
from lavad.queries.frame.request import Request, Shown, err, leave, out
from lavad.sched.order.fairshare import partition_policies

Groups = Sequence[tuple[str, tuple[str, ...]]]
_ALL_USERS = "all users"


def show_users(request: Request) -> Iterator[Shown]:
    """bugroup: a line for each group, or with -l a record with who administers it, and what shares its members have."""
    options = request.options()
    if "l" in options:
        yield from _show_users_long(request, "r" in options)
        return
    yield from _show(request, request.cluster.conf.user_groups, "USERS", _ALL_USERS, "r" in options)


def _show_users_long(request: Request, deep: bool) -> Iterator[Shown]:
    conf = request.cluster.conf
    known = conf.groups_of_users.members
    admins, given = dict(conf.params.user_group_admins), dict(conf.group_shares)
    for at, name in enumerate(_named(request, known, "USERS")):
        yield out("\n" if at else "")
        yield out(f"GROUP_NAME:  {name}\nUSERS:       {_text(known, name, _ALL_USERS, deep)}\n")
        if name in admins:
            yield out(f"GROUP_ADMIN: {''.join(f'{admin} ' for admin in admins[name])}\n")
        if name in given:
            yield out(f"SHARES:      {shares.text(given[name])}\n")


def show_hosts(request: Request) -> Iterator[Shown]:
    options = request.options()
    if "cu" in options:
        yield from _show_units(request)
        return
    everything = "all hosts used by the batch system"
    conf = request.cluster.conf
    groups = tuple((name, ("all",) if name in conf.params.whole_groups else members) for name, members in conf.host_groups)
    yield from _show(request, groups, "HOSTS", everything, "r" in options)


def _show_units(request: Request) -> Iterator[Shown]:
    """bmgroup -cu: compute units with their types."""
    conf = request.cluster.conf
    known = {unit.name: unit.type for unit in conf.params.units}
    for word in request.words:
        if word not in known:
            raise Refused(f"{word}: No such compute unit")
    if not known:
        raise Refused("No compute unit found")
    if "noheader" not in request.query.options:
        yield out("NAME          TYPE           HOSTS\n")
    for name in request.words or known:
        hosts = conf.groups_of_hosts.hosts(name) if "r" in request.query.options else conf.groups_of_hosts.members[name]
        yield out(f"{name:<13} {known[name]:<14} {''.join(f'{host} ' for host in hosts)}\n")


def _show(request: Request, groups: Groups, title: str, everything: str, deep: bool) -> Iterator[Shown]:
    known = dict(groups)
    names = _named(request, known, title)
    if "noheader" not in request.query.options:
        yield out(f"GROUP_NAME    {title}\n")
    for name in names:
        yield out(f"{name:<12} {_text(known, name, everything, deep)}\n")


def _named(request: Request, known: Mapping[str, tuple[str, ...]], title: str) -> Iterable[str]:
    """The groups that the command is about; raises Refused."""
    for word in request.words:
        if word not in known:
            raise Refused(f"{word}: No such user/host group")
    if not known:
        raise Refused("No user group found" if title == "USERS" else "No host group found")
    return request.words or known


def _text(known: Mapping[str, tuple[str, ...]], name: str, everything: str, deep: bool) -> str:
    """The members of a group, with a slash after those that are groups (LSF)."""
    words = _members(known, name, frozenset()) if deep else known[name]
    if "all" in words and not any(word.startswith("~") for word in words):
        return everything
    return "".join(f"{word}/ " if word in known else f"{word} " for word in dict.fromkeys(words))


def _members(known: Mapping[str, tuple[str, ...]], name: str, seen: frozenset[str]) -> list[str]:
    """The members of a group, groups in groups taken apart."""
    found: list[str] = []
    for word in known[name]:
        plain = word.rstrip("/")
        if plain in known and plain not in seen:
            found += _members(known, plain, seen | {name})
        else:
            found.append(word)
    return found


def show_partitions(request: Request) -> Iterator[Shown]:
    """bhpart: a record for each partition; ``-r`` shows groups within groups as well."""
    options = request.options()
    conf = request.cluster.conf
    if not conf.partitions:
        raise Refused("No host partition is defined in the system")
    hosts = {part.name: part.hosts for part in conf.partitions}
    groups = {name for name, _ in conf.host_groups}
    known = {policy.name: policy for policy in partition_policies(conf)}
    names = list(known) if not request.words or "all" in request.words else request.words
    for at, name in enumerate(names):
        policy = known.get(name)
        if policy is None:
            yield err(f"{name}: No such host partition")
            yield leave(255)
            continue
        listed = " ".join(f"{host}/" if host in groups else host for host in hosts[name])
        yield out("\n" if at else "")
        yield out(f"HOST_PARTITION_NAME: {name}\nHOSTS: {listed}\n")
        for piece in shares.tables(request.view, policy, request.now, name, "r" in options):
            yield out(piece)
