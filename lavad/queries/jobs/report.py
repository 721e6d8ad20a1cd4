"""lava report: what the jobs of users, projects and queues that have ended held and used of slots and GPUs."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lavad.core.job import checkpoints, gpu_use
from lavad.core.job.checkpoints import CheckpointSums
from lavad.core.job.gpu_use import GpuSums
from lavad.core.lang.asks import Refused
from lavad.queries.facts import visibility
from lavad.queries.frame import formats
from lavad.queries.frame.request import Options, Request, Shown, err, out, read_period
from lavad.store.accounting import Asked, Share

GROUPS = ("user", "project", "queue")
_HOUR = 3600.0
_KWH = 3_600_000.0
_COLUMNS = (
    "by",
    "name",
    "jobs",
    "slot_hours",
    "cpu_hours",
    "gpu_jobs",
    "gpu_hours",
    "gpu_used_hours",
    "gpu_idle_hours",
    "gpu_kwh",
    "checkpoint_hours",
    "lost_hours",
)
_HEAD = (
    "JOBS SLOT_HOURS  CPU_HOURS SLOT_WASTE GPU_JOBS  GPU_HOURS   GPU_USED   GPU_IDLE GPU_WASTE    GPU_KWH CKPT_HOURS LOST_HOURS\n"
)


def show(request: Request) -> Iterator[Shown]:
    options = request.options()
    if request.words:
        raise Refused(f"lava report: {request.words[0]}: no such argument")
    by = options.text("by")
    if by and by not in GROUPS:
        raise Refused(f"lava report: --by {by[:80]}: must be user, project or queue")
    asked = _asked(request, options)
    shares = request.view.reader.shares(asked)
    found = [(group, _grouped(shares, group)) for group in ([by] if by else GROUPS)]
    if "csv" in options:
        yield out(_csv(found))
        return
    begin, end = asked.completed or (0.0, request.now)
    if begin and (kept := request.view.reader.kept_since()) > begin:
        yield err(f"Jobs that ended before {formats.full_time(kept)} are no longer kept (LAVA_HISTORY_DAYS)")
    since = f"between {formats.time_with_year(begin)} and" if begin else "until"
    yield out(f"Jobs that ended {since} {formats.time_with_year(end)}; waste: slots without CPU time, GPUs below 5 % of use\n")
    for group, rows in found:
        yield out(_table(group, rows))


def _asked(request: Request, options: Options) -> Asked:
    """Where users may not see each other's history, the caller's own jobs."""
    begin, end = options.text("from"), options.text("to")
    period = read_period(request, f"{begin or '2000/1/1'},{end or '.'}") if begin or end else None
    users = tuple(options.words("user"))
    if visibility.history_is_restricted(request):
        if users and users != (request.caller.user,):
            raise Refused("User permission denied")
        users = (request.caller.user,)
    queues = tuple(options.words("queue"))
    for queue in queues:
        if queue not in request.cluster.queue_conf:
            raise Refused(f"{queue}: No such queue")
    return Asked(users=users, projects=tuple(options.words("project")), queues=queues, completed=period)


class _Row(NamedTuple):
    name: str
    jobs: int
    slots: float
    cpu: float
    gpu_jobs: int
    gpus: GpuSums
    checkpoints: CheckpointSums


def _grouped(shares: list[Share], group: str) -> list[_Row]:
    """A row for each user, project or queue, by name."""
    members: defaultdict[str, list[Share]] = defaultdict(list)
    for share in shares:
        members[getattr(share, group)].append(share)
    return [_sum(name, members[name]) for name in sorted(members)]


def _sum(name: str, shares: Iterable[Share | _Row]) -> _Row:
    shares = list(shares)
    return _Row(
        name,
        sum(share.jobs for share in shares),
        sum(share.slots for share in shares),
        sum(share.cpu for share in shares),
        sum(share.gpu_jobs for share in shares),
        gpu_use.total(share.gpus for share in shares),
        checkpoints.total(share.checkpoints for share in shares),
    )


def _table(group: str, found: list[_Row]) -> str:
    width = max([len(row.name) for row in found] + [14])
    rows = [*found, _sum("TOTAL", found)]
    return f"\n{group.upper():<{width}} {_HEAD}" + "".join(f"{row.name:<{width}} {_line(row)}" for row in rows)


def _line(share: _Row) -> str:
    gpus, slots, cpu = share.gpus, share.slots, share.cpu
    return (
        f"{share.jobs:>4} {slots / _HOUR:>10.2f} {cpu / _HOUR:>10.2f} {_waste(slots - cpu, slots):>10} "
        f"{share.gpu_jobs:>8} {gpus.held / _HOUR:>10.2f} {gpus.used / _HOUR:>10.2f} {gpus.idle / _HOUR:>10.2f} "
        f"{_waste(gpus.idle, gpus.held):>9} {gpus.energy / _KWH:>10.3f} "
        f"{share.checkpoints.cost / _HOUR:>10.2f} {share.checkpoints.lost / _HOUR:>10.2f}\n"
    )


def _waste(lost: float, held: float) -> str:
    return f"{100 * max(0.0, lost) / held:.0f}%" if held else "-"


def _csv(found: list[tuple[str, list[_Row]]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for group, rows in found:
        for one in rows:
            gpus = one.gpus
            hours = [f"{value / _HOUR:.4f}" for value in (one.slots, one.cpu)]
            cards = [f"{value / _HOUR:.4f}" for value in (gpus.held, gpus.used, gpus.idle)]
            lost = [f"{value / _HOUR:.4f}" for value in (one.checkpoints.cost, one.checkpoints.lost)]
            writer.writerow([group, one.name, one.jobs, *hours, one.gpu_jobs, *cards, f"{gpus.energy / _KWH:.4f}", *lost])
    return text.getvalue()
