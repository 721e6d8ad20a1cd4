"""What a parameter's value looks like, its default, and whether it changes anything: for docs/reference and ``lava explain``.

Made of the tables and records that the files are read with.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum

import msgspec

from config.values import clusterwide as vc
from config.values import planning, without_effect
from config.values import share as vs
from config.values import values as v
from config.values.containers import container
from config.values.fields import field_of
from config.values.local_resources import local_resources
from config.values.names import host_words
from config.values.variables import env_vars

_FORMS: dict[Callable[..., object], str] = {
    v.text: "text",
    vc.path: "path",
    vc.host_names: "hosts",
    v.words: "words",
    host_words: "words",
    container: "docker[image(…) options(…)]",
    env_vars: "NAME='value',…",
    v.gpu_req: "as of bsub -gpu",
    v.window_list: "windows",
    v.yes_no: "Y or N",
    v.yes_no_or_variable: "Y, N, or a variable",
    v.second_count: "seconds",
    v.positive_seconds: "seconds",
    v.minutes: "[hours:]minutes",
    vc.some_minutes: "[hours:]minutes",
    v.minutes_or_percent: "[hours:]minutes, or n%",
    v.preempt_for: "words",
    v.size: "size",
    v.terminate_when: "LOAD PREEMPT WINDOW",
    v.interactive: "YES, NO, ONLY",
    v.resizable: "Y, N, AUTO",
    v.unit: "KB … EB",
    v.time_limit: "[default] maximum, each [hours:]minutes[/host]",
    v.one_time: "[hours:]minutes[/host]",
    v.size_limit: "[default] maximum",
    v.count_limit: "[default] maximum",
    v.task_limit: "[minimum [default]] maximum",
    v.chkpnt: "folder [minutes]",
    v.exit_values: "exit values",
    v.requeue_exit: "exit values",
    v.job_controls: "SUSPEND[…] RESUME[…] TERMINATE[…]",
    v.fairshare: "USER_SHARES[[name, n] …]",
    v.preemption: "PREEMPTIVE[…] PREEMPTABLE[…]",
    planning.extendable_runlimit: "BASE[minutes] …",
    planning.job_sizes: "numbers from 1",
    planning.reservation_limits: "[resource=min,max] …",
    planning.host_order: "index[:index …]",
    v.reserve_time: "MAX_RESERVE_TIME[n]",
    v.priority_over_time: "n/minutes",
    v.enforce: "memory cpu gpu",
    v.exclusive: "Y, N, CU",
    vs.queue_names: "queues",
    vs.weight: "n, or slots:n gpus:n",
    vs.amounts: "n, or slots:n gpus:n",
    vs.dominant: "slots mem gpus",
    vs.aps_priority: "WEIGHT[…] LIMIT[…] GRACE_PERIOD[…]",
    vs.scheduler: "name or file",
    local_resources: "[resource NAME] [resourcemap n*NAME] [type NAME] …",
    vc.colon_list: "words",
    v.scheduling_interval: "seconds, or n ms",
    v.shares: "[name, n] …",
    vc.pack_weights: "slots=n mem=n gpus=n",
    vc.mail_pattern: "address",
    vc.traces: "Y, N, or an address",
    vc.memory_size: "size",
    vc.checkpoint_method: "name",
    v.host_hours: "hours, or minutes with m",
    vc.priority_classes: "name=n …",
    vc.signal_name: "signal",
    vc.backfill: "EASY or CONSERVATIVE",
}


def why_without_effect(file: str, name: str) -> str:
    """Why it changes nothing; "" for one that does something."""
    why = without_effect.BECAUSE.get(name, "")
    if name in without_effect.NEEDLESS.get(file, ()):
        return f"no effect: {why or 'lava does not need it'}"
    if name in without_effect.MISSING.get(file, ()):
        return f"no effect: {why or 'not supported by lava'}"
    return ""


def form_of(parse: Callable[..., object]) -> str:
    """What a value looks like. Raises KeyError for a parser without a word for it."""
    if parse in _FORMS:
        return _FORMS[parse]
    kind = parse.__qualname__.partition(".")[0]
    inside = inspect.getclosurevars(parse).nonlocals
    if kind in ("choice", "choices"):
        return (", " if kind == "choice" else " ").join(inside["known"])
    if kind == "number":
        most = inside["most"]
        return f"number from {inside['least']}" + (f" to {most}" if most < v.LARGEST_INT else "")
    if kind == "real":
        return "number"
    return _FORMS[parse]


_SCALED: dict[Callable[..., object], int] = {
    v.minutes: 60,
    vc.some_minutes: 60,
    v.minutes_or_percent: 60,
    v.one_time: 60,
    v.host_hours: 3600,
}


def default_of(name: str, parse: Callable[..., object], record: type[msgspec.Struct]) -> str:
    """The default of the record, as a file has it; "" for none."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(record)}
    value = defaults.get(field_of(name))
    if isinstance(value, bool):
        return "Y" if value else "N"
    if isinstance(value, Enum):
        return str(value.value).upper()
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if isinstance(value, int | float):
        return f"{value / _SCALED.get(parse, 1):.10g}"
    return value if isinstance(value, str) else ""
