"""bqueues -o and -json."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from config.model.values import Limits
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
    ("description desc", 50, _conf("description")),
    ("parameters params", 10, lambda row: ""),
    ("priority prio", 10, _conf("priority")),
    ("status stat", 12, lambda row: row.status),
    ("nice", 6, _conf("nice")),
    ("max", 10, _conf("qjob_limit")),
    ("jl_u jlu", 10, _conf("ujob_limit")),
    ("jl_p jlp", 10, _conf("pjob_limit")),
    ("jl_h jlh", 10, _conf("hjob_limit")),
    ("njobs", 10, lambda row: row.njobs),
    ("pend", 10, lambda row: row.pend),
    ("run", 10, lambda row: row.run),
    ("susp", 10, lambda row: row.susp),
    ("rsv", 10, lambda row: row.rsv),
    ("ususp", 10, lambda row: row.ususp),
    ("ssusp", 10, lambda row: row.ssusp),
    *_limits("limits"),
    *_limits("defaults"),
    ("max_tasklimit tasklimit", 6, _conf("tasklimit.maximum")),
    ("min_tasklimit", 6, _conf("tasklimit.minimum")),
    ("default_tasklimit def_tasklimit", 6, _conf("tasklimit.default")),
    ("dispatch_window", 30, _conf("dispatch_window")),
    ("run_window", 30, _conf("run_window")),
    ("users", 30, _conf("users")),
    ("hosts", 30, _conf("hosts")),
    ("admins", 30, _conf("administrators")),
    ("pre_exec", 30, _conf("pre_exec")),
    ("post_exec", 30, _conf("post_exec")),
    ("interactive", 12, _conf("interactive")),
    ("exclusive", 10, _conf("exclusive")),
    ("rerunnable", 10, _conf("rerunnable")),
    ("fairshare", 30, lambda row: " ".join(f"[{name}, {number}]" for name, number in row.conf.fairshare)),
    ("preemption", 30, _conf("preemption")),
    ("backfill", 8, _conf("backfill")),
    ("res_req", 30, _conf("res_req")),
    ("gpu_req", 30, _conf("gpu_req")),
    ("job_starter", 30, _conf("job_starter")),
    ("chkpnt", 30, _conf("chkpnt")),
    ("requeue_exit_values", 20, _conf("requeue_exit_values")),
    ("stop_cond", 30, _conf("stop_cond")),
    ("resume_cond", 30, _conf("resume_cond")),
    ("job_controls", 30, _conf("job_controls")),
    ("terminate_when", 30, _conf("terminate_when")),
    ("slot_reserve", 12, _conf("slot_reserve")),
    ("job_accept_interval", 20, _conf("job_accept_interval")),
    ("new_job_sched_delay", 20, _conf("new_job_sched_delay")),
)

FIELDS: dict[str, QueueField] = {
    alias: QueueField(names.split()[0], width, value) for names, width, value in _TABLE for alias in names.split()
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
