"""busers: limits and job slots of users and user groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from config.model.cluster import UserConfig
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import PEND, PSUSP, RSV, RUN, SSUSP, USUSP
from lavad.core.site.rights import expand_users
from lavad.queries.facts.slot_reservations import held_slots
from lavad.queries.frame import columns
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.queues import busers_custom
from lavad.queries.queues.busers_custom import UserRow

HEADER = "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV \n"
WIDE = "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV  PJOBS MPJOBS\n"


def show(request: Request) -> Iterator[Shown]:
    """A line for each user or group."""
    options = request.options()
    rows = [_row(request, name) for name in _names(request)]
    given = options.find("o") or options.text("LSB_BUSERS_FORMAT") or request.view.lsf.get("LSB_BUSERS_FORMAT", "")
    if options.any("o", "json") or (given and "w" not in options):
        custom = columns.parse("busers", given or busers_custom.DEFAULT, busers_custom.FIELDS)
        yield from busers_custom.show(rows, custom, "json" in options, "noheader" not in options)
        return
    wide = "w" in options
    if "noheader" not in options:
        yield out(WIDE if wide else HEADER)
    for row in rows:
        yield out(_line(row, wide))


def _names(request: Request) -> list[str]:
    if not request.words:
        return [request.caller.user]
    if "all" not in request.words:
        return request.words
    conf = request.cluster.conf
    groups = [name for name, _ in conf.user_groups]
    named = {user.name for user in conf.users} - {"default"}
    members = {member for _, group in conf.user_groups for member in group} - {"all"}
    users = {*request.cluster.use.users, *named, *members} - set(groups)
    return [*sorted(users), "default", *groups]


def _row(request: Request, name: str) -> UserRow:
    cluster = request.cluster
    limits = {user.name: user for user in cluster.conf.users}
    own = limits.get(name) or limits.get(f"{name}@") or limits.get("default") or UserConfig(name=name)
    if name == "default":
        return UserRow(name, own, None, 0)
    members = expand_users(cluster.conf, [name]) if name in dict(cluster.conf.user_groups) else {name}
    counts = [0] * 6
    pending_jobs = 0
    for member in members:
        for at, count in enumerate(cluster.use.users.get(member, ())):
            counts[at] += count
        counts[RSV] += held_slots(request.view, user=member)
        pending_jobs += sum(key in cluster.jobs.rows for key in cluster.by_user.get(member, ()))
        pending_jobs -= sum(key in cluster.started for key in cluster.by_user.get(member, ()))
        for key in cluster.by_user.get(member, ()):
            array = cluster.arrays.rows.get(key)
            pending_jobs += len(array.pending) + len(array.held) if array is not None else 0
    return UserRow(name, own, counts, pending_jobs, lambda: _gpus(cluster, members))


def _gpus(cluster: Cluster, users: AbstractSet[str]) -> Counter[str]:
    held: Counter[str] = Counter()
    for user in users:
        for key in cluster.by_user.get(user, ()):
            if key not in cluster.started:
                continue
            job = cluster.jobs.rows[key]
            asked = cluster.specs.rows[job.spec].gpu
            count = sum(len(part.gpus) for part in job.run.parts) if job.run is not None else 0
            exclusive = asked is not None and asked.mode == "exclusive_process"
            held["excl" if exclusive else "shared"] += count
            if asked is not None and asked.j_exclusive and not exclusive:
                held["jexcl"] += count
    return held


def _line(row: UserRow, wide: bool) -> str:
    jl_p = "-" if row.conf.slots_per_processor is None else f"{row.conf.slots_per_processor:g}"
    most = "-" if row.conf.max_jobs is None else str(row.conf.max_jobs)
    lead = f"{row.name:<18} {jl_p:>5} {most:>6} "
    if row.counts is None:
        return lead + " ".join(["     -"] * 6) + " \n"
    counts = row.counts
    numbers = [row.njobs, counts[PEND] + counts[PSUSP], counts[RUN], counts[SSUSP], counts[USUSP], counts[RSV]]
    line = lead + " ".join(f"{number:>6}" for number in numbers)
    if wide:
        line += f" {row.pending_jobs:>6} {row.conf.max_pend_slots if row.conf.max_pend_slots is not None else '-':>6}"
    return line + "\n"
