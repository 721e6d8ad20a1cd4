"""Whether every host that may run a job sees the folder of its checkpoints, as far as what agents say of their mounts tells.

Rule: hosts with one boot id are one machine. A host that does not tell of its mounts is believed to see the folder; so is one
that exports it, by the source that others name. LAVA_SHARED_DIRS is the site's word and goes over all of it.
"""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec
from lavad.core.site.host import Host, Mount
from lavad.core.site.host_names import preferences

ALL = "all"


def moves(cluster: Cluster, spec: Spec) -> bool:
    """Whether a checkpointable job may start again on another machine."""
    return spec.checkpoint is not None and len({host.facts.boot_id for host in hosts_for(cluster, spec)}) > 1


def why_alone(cluster: Cluster, spec: Spec, paths: tuple[str, ...]) -> str:
    """Why a restart would not find the checkpoints, "" where it may. ``paths``: the folder's, without links last.

    Of a job whose checkpoints are copied, the folder of the copies counts.
    """
    if spec.checkpoint is not None and spec.checkpoint.stage:
        paths = (spec.checkpoint.stage,)
    shared = cluster.conf.params.lava_shared_dirs
    if not moves(cluster, spec) or ALL in shared or any(_is_below(path, one) for path in paths for one in shared):
        return ""
    real = paths[-1]
    mounts = {host: _mount_of(host, real) for host in hosts_for(cluster, spec)}
    exports = {mount.source.partition(":")[0] for mount in mounts.values() if mount is not None and mount.shared}
    for host, mount in mounts.items():
        if mount is not None and not mount.shared and exports.isdisjoint((host.name, host.facts.address)):
            return f"is on a file system of {host.name} alone: a restart elsewhere would not find its checkpoints"
    return ""


def hosts_for(cluster: Cluster, spec: Spec) -> list[Host]:
    """Those that have been seen and may run the job, by name."""
    seen = {name: host for name, host in cluster.hosts.rows.items() if host.facts.boot_id}
    queue = cluster.queue_conf.get(spec.queue)
    for words in (spec.hosts, queue.hosts if queue is not None else ()):
        if words and seen:
            meant = preferences(cluster.conf, words, seen)
            seen = {name: host for name, host in seen.items() if name in meant}
    return [seen[name] for name in sorted(seen)]


def _mount_of(host: Host, path: str) -> Mount | None:
    around = [mount for mount in host.facts.mounts if _is_below(path, mount.path)]
    return max(around, key=lambda mount: len(mount.path), default=None)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
