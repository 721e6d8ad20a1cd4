"""Whether every host that may run a job sees the folder of its checkpoints: known from files that users wrote there, else from
what agents report of their mounts.

Rule: hosts with one boot id are one machine. A host that does not tell of its mounts is believed to see the folder; so is one
that exports it, by the source that others name. What such a file has shown overrides that, LAVA_SHARED_DIRS overrides both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec
from lavad.core.lang.states import HostState
from lavad.core.site.host import Host, Mount

ALL = "all"
Pair = tuple[str, str, str]
"""Where a file system is mounted for who submits, and the kinds (``kind_of``) of two hosts, in their order."""
Seen = Mapping[Pair, bool]
"""Whether two hosts see the same there."""


def moves(cluster: Cluster, spec: Spec) -> bool:
    """Whether a checkpointable job may start again on another machine, which has to be looked at before it starts."""
    if spec.checkpoint is None or spec.checkpoint.seen or spec.checkpoint.to_hosts:
        return False
    return _machines(hosts_for(cluster, spec)) > 1


def for_other_hosts(spec: Spec) -> Spec:
    """The spec of a job that may run on other hosts now: that all hosts see its folder was found for the previous ones."""
    checkpoint = spec.checkpoint
    return spec if checkpoint is None or not checkpoint.seen else replace(spec, checkpoint=replace(checkpoint, seen=False))


def why_alone(cluster: Cluster, spec: Spec, paths: tuple[str, ...], mount: str = "", seen: Seen | None = None) -> str:
    """Why a restart would not find the checkpoints, "" where it may. ``paths``: the folder's, without links last.

    Of a job whose checkpoints are copied, the folder of the copies counts. ``mount``: of that folder, as ``Pair`` has it.
    """
    if spec.checkpoint is not None and spec.checkpoint.stage:
        paths = (spec.checkpoint.stage,)
    if _is_declared(cluster, paths):
        return ""
    hosts = hosts_for(cluster, spec)
    found = found_apart(hosts, paths[-1], mount, seen or {})
    if found is not None:
        return f"is not the same on {found[0]} and {found[1]}: a file that one has is not on the other" if found else ""
    return _why_by_mounts(hosts, paths[-1]) if _machines(hosts) > 1 else ""


def is_found_shared(cluster: Cluster, spec: Spec, path: str, mount: str, seen: Seen) -> bool:
    """Whether all hosts were found to see a folder of which their mounts say otherwise."""
    hosts = hosts_for(cluster, spec)
    return found_apart(hosts, path, mount, seen) == () and bool(_why_by_mounts(hosts, path))


def found_apart(hosts: Sequence[Host], path: str, mount: str, seen: Seen) -> tuple[str, ...] | None:
    """Two hosts that were found to see different folders there; (): all were found to see the same; None: it is not known."""
    kinds: dict[str, list[str]] = {}
    for host in hosts:
        kinds.setdefault(kind_of(host, path), []).append(host.name)
    apart = (pair[1:] for pair, same in seen.items() if pair[0] == mount and not same)
    for one, other in sorted(apart, key=lambda pair: (pair[0] == pair[1], pair)):
        if one in kinds and other in kinds and (one != other or len(kinds[one]) > 1):
            return kinds[one][0], kinds[other][int(one == other)]
    whole = all(len(names) < 2 or seen.get((mount, kind, kind)) for kind, names in kinds.items())
    return () if whole and _connected(sorted(kinds), mount, seen) and len(hosts) > 1 else None


def _connected(kinds: Sequence[str], mount: str, seen: Seen) -> bool:
    """Whether each kind is known to see what another one sees, and so all the same."""
    reached, left = list(kinds[:1]), set(kinds[1:])
    for one in reached:
        near = {other for other in left if seen.get(pair_of(mount, one, other))}
        reached += sorted(near)
        left -= near
    return not left


def kind_of(host: Host, path: str) -> str:
    """What hosts have in common that have the same mounted at a path; a host that does not tell is a kind of its own."""
    mount = _mount_of(host, path)
    return f"host {host.name}" if mount is None else f"{mount.path} {mount.source if mount.shared else '-'}"


def pair_of(mount: str, one: str, other: str) -> Pair:
    """The key of two kinds."""
    return (mount, *sorted((one, other)))  # type: ignore[return-value]


def hosts_up(hosts: Sequence[Host]) -> int:
    """How many of them can be asked."""
    return sum(host.state is HostState.OK for host in hosts)


def hosts_for(cluster: Cluster, spec: Spec) -> list[Host]:
    """Those that have been seen and may run the job, by name."""
    seen = {name: host for name, host in cluster.hosts.rows.items() if host.facts.boot_id}
    queue = cluster.queue_conf.get(spec.queue)
    for words in (spec.hosts, queue.hosts if queue is not None else ()):
        if words and seen:
            meant = cluster.conf.groups_of_hosts.preferences(words, seen)
            seen = {name: host for name, host in seen.items() if name in meant}
    return [seen[name] for name in sorted(seen)]


def _machines(hosts: Sequence[Host]) -> int:
    return len({host.facts.boot_id for host in hosts})


def _is_declared(cluster: Cluster, paths: Sequence[str]) -> bool:
    shared = cluster.conf.params.lava_shared_dirs
    return ALL in shared or any(is_below(path, one) for path in paths for one in shared)


def _why_by_mounts(hosts: Sequence[Host], path: str) -> str:
    mounts = {host: _mount_of(host, path) for host in hosts}
    exports = {mount.source.partition(":")[0] for mount in mounts.values() if mount is not None and mount.shared}
    for host, mount in mounts.items():
        if mount is not None and not mount.shared and exports.isdisjoint((host.name, host.facts.address)):
            return f"is on a file system of {host.name} alone: a restart elsewhere would not find its checkpoints"
    return ""


def _mount_of(host: Host, path: str) -> Mount | None:
    around = [mount for mount in host.facts.mounts if is_below(path, mount.path)]
    return max(around, key=lambda mount: len(mount.path), default=None)


def is_below(path: str, folder: str) -> bool:
    """Whether an absolute path is the folder or in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
