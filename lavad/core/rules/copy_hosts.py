"""On which host copies of a job's checkpoints are held, where no folder is shared (``bsub -k "DIR stage"``).

Rule: another host than the job's, on another machine where there is one; which of them follows from the job's number, so that
the copies of many jobs are on many hosts.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.lang.states import HostState
from lavad.core.rules.checkpoint_folder import hosts_for
from lavad.core.site.host import Host

LONGEST_KEY = 20
"""Digits of a job's key, and more: Python reads no number of any length."""


def choose(cluster: Cluster, key: int, host: str, avoid: Collection[str] = ()) -> str:
    """The host that is to hold copies for a job on ``host``; "": there is none that is up."""
    own = cluster.hosts.rows.get(host)
    machine = own.facts.boot_id if own is not None else ""
    rows = (row for name, row in cluster.hosts.rows.items() if name != host and name not in avoid and is_up(row))
    best = min(rows, key=lambda row: (row.facts.boot_id == machine, row.closed, _turn(key, row.name)), default=None)
    return best.name if best is not None else ""


def is_up(row: Host | None) -> bool:
    """Whether it can be given copies, or asked for them."""
    return row is not None and row.state is HostState.OK and bool(row.facts.copies_port)


def why_nowhere(cluster: Cluster, spec: Spec) -> str:
    """Why generations of a job could not be copied to another host, "" where they can."""
    holders = {name for name, row in cluster.hosts.rows.items() if row.facts.copies_port}
    if not holders:
        return "no host holds copies for others (LAVA_CHKPNT_COPY_DIR)"
    runs = {row.name for row in hosts_for(cluster, spec)}
    if len(holders) == 1 and runs and runs <= holders:
        return f"{min(holders)} is the only host that holds copies, and the job runs there"
    return ""


def name_of(job: Job, user: str) -> str:
    """What a job's copies are known by: ``USER/KEY-SUBMITTED``, as job numbers begin again with a new store."""
    return f"{user}/{job.key}-{round(job.submitted * 1e6)}"


def unneeded(cluster: Cluster, names: Iterable[str]) -> list[str]:
    """Those of the copies that no job can go on from any more."""
    found: list[str] = []
    for name in names:
        number = name.rpartition("/")[2].partition("-")[0]
        job = cluster.jobs.rows.get(int(number)) if number.isdecimal() and len(number) < LONGEST_KEY else None
        if name in cluster.copy_sources:
            continue
        if job is None or name_of(job, cluster.specs.rows[job.spec].user) != name:
            found.append(name)
    return found


def _turn(key: int, host: str) -> int:
    return zlib.crc32(f"{key} {host}".encode())
