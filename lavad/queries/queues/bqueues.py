"""bqueues: queues by priority, with their status, limits and job slots. With -l: ``bqueues_long``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from config.model.queue import QueueConfig
from config.model.values import Limits
from config.values.parameters import QUEUE_PARAMETERS
from lavad.core.lang.asks import Refused
from lavad.core.site.rights import may_use_queue
from lavad.queries.facts import hostfacts
from lavad.queries.facts.queuefacts import QueueRow, limit
from lavad.queries.frame import columns, formats
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.queues import bqueues_long

HEADER = "QUEUE_NAME     PRIO      STATUS      MAX  JL/U JL/P JL/H NJOBS  PEND  RUN  SUSP\n"
WIDE = "QUEUE_NAME     PRIO      STATUS      MAX  JL/U JL/P JL/H NJOBS  PEND  RUN  SUSP  RSV PJOBS\n"


def show(request: Request) -> Iterator[Shown]:
    options = request.options()
    columns.refuse_json_with(options, "l", "r")
    queues = _queues(request, options.text("m"), options.text("u"))
    rows = [QueueRow(request.view, conf, request.now) for conf in queues]
    if not rows:
        raise Refused("No queue found")
    given = columns.find_format(request, options, DEFAULT, "w")
    if options.any("l", "r"):
        for at, row in enumerate(rows):
            yield out(("-" * 79 + "\n\n" if at else "\n") + bqueues_long.record(row, "r" in options))
    elif given is not None:
        yield from columns.show_rows(options, "QUEUES", FIELDS, given, rows)
    else:
        if "noheader" not in options:
            yield out(WIDE if "w" in options else HEADER)
        for row in rows:
            yield out(_line(row, "w" in options))


def _queues(request: Request, host: str, user: str) -> list[QueueConfig]:
    """The queues asked for; an unknown name refuses the whole command, as in LSF."""
    conf = request.cluster.conf
    known = request.cluster.queue_conf
    for word in request.words:
        if word not in known and word != "all":
            raise Refused(f"{word}: No such queue")
    wanted = [known[word] for word in request.words if word != "all"]
    if not wanted or "all" in request.words:
        wanted = list(conf.queues)
    if user and user != "all":
        wanted = [queue for queue in wanted if may_use_queue(conf, queue, user)]
    if host and host != "all":
        hosts = set(hostfacts.named(request, [host]))
        everything = hostfacts.all_hosts(request.view)
        wanted = [queue for queue in wanted if hosts & set(conf.groups_of_hosts.preferences(queue.hosts, everything))]
    return sorted(dict.fromkeys(wanted), key=lambda queue: (-queue.priority, queue.name))


def _line(row: QueueRow, wide: bool) -> str:
    conf = row.conf
    name = f"{conf.name:<14}" if wide else f"{conf.name:<14.14}"
    status = f"{row.status:^19}"[:18]
    limits = (limit(value) for value in (conf.qjob_limit, conf.ujob_limit, conf.pjob_limit, conf.hjob_limit))
    cells = [f"{value:>{width}}" for value, width in zip(limits, (4, 5, 5, 5), strict=True)]
    cells += [f"{count:>6}" for count in (row.njobs, row.pend, row.run, row.susp)]
    text = formats.joined(f"{name} {conf.priority:>3}", status, *cells) + " "
    return f"{text}{row.rsv:>4} {row.jobs_waiting:>5}\n" if wide else text + "\n"


DEFAULT = "queue_name priority status max jl_u jl_p jl_h njobs pend run susp"
Value = Callable[[QueueRow, str], object]


def _conf(path: str) -> Value:
    """A field of the queue, or of a record in it."""
    find = attrgetter(path)

    def read(row: QueueRow, _: str) -> object:
        value = find(row.conf)
        if value is None:
            return ""
        if isinstance(value, tuple):
            return " ".join(map(str, value))
        if isinstance(value, bool):
            return "Y" if value else "N"
        return f"{value:g}" if isinstance(value, float) else value

    return read


def _limits(which: str) -> list[tuple[str, int, Value]]:
    prefix, short = ("max", "") if which == "limits" else ("default", "def_")

    def reader(name: str) -> Value:
        def read(row: QueueRow, _: str) -> object:
            own: Limits = getattr(row.conf, which)
            value = getattr(own, name)
            if value is None:
                return ""
            if name in ("cpu", "run"):
                return f"{value / 60:.1f}"
            return value if name in ("processes", "threads") else formats.limit_text(value)

        return read

    return [
        (f"{prefix}_{word}limit {short}{word}limit", width, reader(name))
        for name, word, width in (
            ("core", "core", 8),
            ("cpu", "cpu", 30),
            ("data", "data", 8),
            ("file", "file", 8),
            ("mem", "mem", 8),
            ("processes", "process", 8),
            ("run", "run", 12),
            ("stack", "stack", 8),
            ("swap", "swap", 8),
            ("threads", "thread", 6),
        )
    ]


_TABLE: tuple[tuple[str, int, Value], ...] = (
    ("queue_name qname", 15, _conf("name")),
    ("parameters params", 10, lambda row, _: ""),
    ("status stat", 12, lambda row, _: row.status),
    ("njobs", 10, lambda row, _: row.njobs),
    ("pend", 10, lambda row, _: row.pend),
    ("run", 10, lambda row, _: row.run),
    ("susp", 10, lambda row, _: row.susp),
    ("rsv", 10, lambda row, _: row.rsv),
    ("ususp", 10, lambda row, _: row.ususp),
    ("ssusp", 10, lambda row, _: row.ssusp),
    *((one.column.names, one.column.width, _conf(one.field)) for one in QUEUE_PARAMETERS if one.column is not None),
    *_limits("limits"),
    *_limits("defaults"),
    ("max_tasklimit tasklimit", 6, _conf("tasklimit.maximum")),
    ("min_tasklimit", 6, _conf("tasklimit.minimum")),
    ("default_tasklimit def_tasklimit", 6, _conf("tasklimit.default")),
    ("fairshare", 30, lambda row, _: " ".join(f"[{name}, {number}]" for name, number in row.conf.fairshare)),
)

_ORDER = """
queue_name description parameters priority status nice max jl_u jl_p jl_h njobs pend run susp rsv ususp ssusp max_corelimit
max_cpulimit max_datalimit max_filelimit max_memlimit max_processlimit max_runlimit max_stacklimit max_swaplimit
max_threadlimit default_corelimit default_cpulimit default_datalimit default_filelimit default_memlimit default_processlimit
default_runlimit default_stacklimit default_swaplimit default_threadlimit max_tasklimit min_tasklimit default_tasklimit
dispatch_window run_window users hosts admins pre_exec post_exec interactive exclusive rerunnable fairshare preemption
backfill res_req gpu_req job_starter chkpnt requeue_exit_values stop_cond resume_cond job_controls terminate_when
slot_reserve job_accept_interval new_job_sched_delay
"""
"""The fields of ``-o all``; others come after them."""


def _place(row: tuple[str, int, Value]) -> int:
    name = row[0].split()[0]
    known = _ORDER.split()
    return known.index(name) if name in known else len(known)


FIELDS = columns.row_fields(sorted(_TABLE, key=_place), capitals=True)
