"""bqueues -o and -json."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from config.model.values import Limits
from config.values.parameters import QUEUE_PARAMETERS
from lavad.queries.facts.queuefacts import QueueRow
from lavad.queries.frame import columns, units
from lavad.queries.frame.columns import Custom, Named
from lavad.queries.frame.request import Shown, out

DEFAULT = "queue_name priority status max jl_u jl_p jl_h njobs pend run susp"
Value = Callable[[QueueRow], object]


class QueueField(Named, frozen=True):
    """A field."""

    value: Value


def _conf(path: str) -> Value:
    """A field of the queue, or of a record in it."""
    find = attrgetter(path)

    def read(row: QueueRow) -> object:
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
        def read(row: QueueRow) -> object:
            own: Limits = getattr(row.conf, which)
            value = getattr(own, name)
            if value is None:
                return ""
            if name in ("cpu", "run"):
                return f"{value / 60:.1f}"
            return value if name in ("processes", "threads") else units.limit_text(value)

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
    ("parameters params", 10, lambda row: ""),
    ("status stat", 12, lambda row: row.status),
    ("njobs", 10, lambda row: row.njobs),
    ("pend", 10, lambda row: row.pend),
    ("run", 10, lambda row: row.run),
    ("susp", 10, lambda row: row.susp),
    ("rsv", 10, lambda row: row.rsv),
    ("ususp", 10, lambda row: row.ususp),
    ("ssusp", 10, lambda row: row.ssusp),
    *((one.column.names, one.column.width, _conf(one.field)) for one in QUEUE_PARAMETERS if one.column is not None),
    *_limits("limits"),
    *_limits("defaults"),
    ("max_tasklimit tasklimit", 6, _conf("tasklimit.maximum")),
    ("min_tasklimit", 6, _conf("tasklimit.minimum")),
    ("default_tasklimit def_tasklimit", 6, _conf("tasklimit.default")),
    ("fairshare", 30, lambda row: " ".join(f"[{name}, {number}]" for name, number in row.conf.fairshare)),
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


FIELDS: dict[str, QueueField] = {
    alias: QueueField(names.split()[0], width, value)
    for names, width, value in sorted(_TABLE, key=_place)
    for alias in names.split()
}


def show(rows: Sequence[QueueRow], custom: Custom, as_json: bool, header: bool) -> Iterator[Shown]:
    """A table or JSON."""
    lines = [[str(FIELDS[column.name].value(row)) for column in custom.columns] for row in rows]
    pieces = (
        columns.json_pieces("bqueues", "QUEUES", [columns.record(custom, line) for line in lines])
        if as_json
        else columns.table(custom, lines, header)
    )
    yield from map(out, pieces)
