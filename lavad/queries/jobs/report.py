"""lava report: what jobs that have ended held, used and wasted, and how long they waited: by user, project, queue, user group."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import show as show_key
from lavad.core.site.rights import NamedUsers
from lavad.queries.facts import visibility
from lavad.queries.frame import formats
from lavad.queries.frame.request import Options, Request, Shown, err, out, read_period
from lavad.queries.jobs import report_html
from lavad.queries.jobs.report_rows import HOUR, KWH, Row, grouped, summed, waste
from lavad.store.asked import Asked, Share, Wasteful
from proto.numbers import find_number

GROUPS = ("user", "project", "queue")
BY = (*GROUPS, "group", "site")
"""``group``: each user group of the configuration, with the jobs of its members; ``site``: all together."""
TOP = 10
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
    "exited",
    "slot_waste_hours",
    "mean_wait_hours",
    "longest_wait_hours",
)
_HEAD = (
    "JOBS SLOT_HOURS  CPU_HOURS SLOT_WASTE GPU_JOBS  GPU_HOURS   GPU_USED   GPU_IDLE GPU_WASTE    GPU_KWH CKPT_HOURS LOST_HOURS"
    " EXITED MEAN_WAIT LONGEST_WAIT\n"
)


def show(request: Request) -> Iterator[Shown]:
    options = request.options()
    if request.words:
        raise Refused(f"lava report: {request.words[0]}: no such argument")
    by = options.text("by")
    if by and by not in BY:
        raise Refused(f"lava report: --by {by[:80]}: must be user, project, queue, group or site")
    most = _most(options)
    asked = _asked(request, options)
    shares = request.view.reader.shares(asked)
    found = [(group, grouped(request, shares, group)) for group in ([by] if by else GROUPS)]
    if "csv" in options:
        yield out(_csv(found))
        return
    begin, end = asked.completed or (0.0, request.now)
    if begin and (kept := request.view.reader.kept_since()) > begin:
        yield err(f"Jobs that ended before {formats.full_time(kept)} are no longer kept (LAVA_HISTORY_DAYS)")
    if "html" in options:
        groups = grouped(request, shares, "group") if request.cluster.conf.user_groups else []
        found = [(group, rows) for group, rows in [*found, ("group", groups)] if rows]
        yield from report_html.page(request, asked, shares, found, most or TOP)
        return
    since = f"between {formats.time_with_year(begin)} and" if begin else "until"
    yield out(f"Jobs that ended {since} {formats.time_with_year(end)}; waste: slots without CPU time, GPUs below 5 % of use\n")
    for group, rows in found:
        yield out(_table(group, rows, shares))
    for gpus in (False, True) if most else ():
        yield out(_top(request.view.reader.wasteful(asked, most, gpus), gpus))


def _most(options: Options) -> int:
    """How many jobs to name (--top); 0: none."""
    text = options.text("top")
    if not text:
        return 0
    count = find_number(text)
    if count is None or not 1 <= count <= 1000:
        raise Refused(f"lava report: --top {text[:80]}: must be 1 to 1000")
    return count


def _top(rows: list[Wasteful], gpus: bool) -> str:
    """The jobs that wasted the most; "" where none did."""
    if not rows:
        return ""
    kind = "GPU" if gpus else "SLOT"
    lines = [
        f"\n{'JOBID':<16} {'USER':<12} {'PROJECT':<12} {'QUEUE':<12} {kind + '_HOURS':>10} {kind + '_WASTE':>10}  JOB_NAME\n"
    ]
    for row in rows:
        lines.append(
            f"{show_key(row.key):<16} {row.user:<12} {row.project:<12} {row.queue:<12} {row.held / HOUR:>10.2f} "
            f"{row.wasted / HOUR:>10.2f}  {row.name}\n"
        )
    return "".join(lines)


def _asked(request: Request, options: Options) -> Asked:
    """Where users may not see each other's history, the caller's own jobs."""
    begin, end = options.text("from"), options.text("to")
    period = read_period(request, f"{begin or '2000/1/1'},{end or '.'}") if begin or end else None
    users = tuple(options.words("user"))
    but: tuple[str, ...] = ()
    if group := options.text("group"):
        if group not in request.cluster.conf.groups_of_users.members:
            raise Refused(f"{group}: No such user group")
        named = NamedUsers(request.cluster.conf, [*users, group])
        users, but = tuple(sorted(named.listed or ())), tuple(sorted(named.left_out)) if named.listed is None else ()
    if visibility.history_is_restricted(request):
        if users and users != (request.caller.user,):
            raise Refused("User permission denied")
        users = (request.caller.user,)
    queues = tuple(options.words("queue"))
    for queue in queues:
        if queue not in request.cluster.queue_conf:
            raise Refused(f"{queue}: No such queue")
    return Asked(users=users, but_users=but, projects=tuple(options.words("project")), queues=queues, completed=period)


def _table(group: str, found: list[Row], shares: list[Share]) -> str:
    width = max([len(row.name) for row in found] + [14])
    rows = [*found, summed("TOTAL", shares)]
    return f"\n{group.upper():<{width}} {_HEAD}" + "".join(f"{row.name:<{width}} {_line(row)}" for row in rows)


def _line(share: Row) -> str:
    gpus, slots, cpu = share.gpus, share.slots, share.cpu
    return (
        f"{share.jobs:>4} {slots / HOUR:>10.2f} {cpu / HOUR:>10.2f} {waste(share.slots_wasted, slots):>10} "
        f"{share.gpu_jobs:>8} {gpus.held / HOUR:>10.2f} {gpus.used / HOUR:>10.2f} {gpus.idle / HOUR:>10.2f} "
        f"{waste(gpus.idle, gpus.held):>9} {gpus.energy / KWH:>10.3f} "
        f"{share.checkpoints.cost / HOUR:>10.2f} {share.checkpoints.lost / HOUR:>10.2f} "
        f"{share.exited:>6} {formats.hms(share.mean_wait):>9} {formats.hms(share.longest_wait):>12}\n"
    )


def _csv(found: list[tuple[str, list[Row]]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for group, rows in found:
        for one in rows:
            gpus = one.gpus
            hours = [f"{value / HOUR:.4f}" for value in (one.slots, one.cpu)]
            cards = [f"{value / HOUR:.4f}" for value in (gpus.held, gpus.used, gpus.idle)]
            lost = [f"{value / HOUR:.4f}" for value in (one.checkpoints.cost, one.checkpoints.lost)]
            waits = [f"{value / HOUR:.4f}" for value in (one.slots_wasted, one.mean_wait, one.longest_wait)]
            energy = f"{gpus.energy / KWH:.4f}"
            writer.writerow([group, one.name, one.jobs, *hours, one.gpu_jobs, *cards, energy, *lost, one.exited, *waits])
    return text.getvalue()
