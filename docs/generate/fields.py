"""fields.md: the fields of ``-o`` of bjobs, bhosts, bqueues, busers, lshosts and lsload."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from config.help import queues as queue_help
from config.help.texts import read_texts
from config.values.parameters import QUEUE_PARAMETERS
from docs.generate import field_texts
from docs.generate.markdown import cell, code, table
from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Caller, Query
from lavad.core.plan.volatile import Soft
from lavad.queries.frame import columns
from lavad.queries.frame.columns import Field
from lavad.queries.frame.request import Request
from lavad.queries.frame.view import View
from lavad.queries.hosts import bhosts, gpuload, lshosts, lsload
from lavad.queries.jobs import bjobs_custom, bjobs_values
from lavad.queries.queues import bqueues, busers
from lavad.store.read import Reader

_HEAD = """\
# Fields of -o

`-o "jobid stat:7 mem:-10:GB delimiter=','"` chooses columns: a field, a width (`:-10` justifies to the right, `:` without a
number is the width below), a unit of sizes. `-o` with `-json` gives JSON, whose keys are the names in capitals. A name with one
asterisk is each field that it fits (`gpu_*`). What there is not is shown as `-`. LSB_BJOBS_FORMAT, LSB_BHOSTS_FORMAT,
LSB_BQUEUES_FORMAT, LSB_BUSERS_FORMAT, LSF_LSHOSTS_FORMAT and LSF_LSLOAD_FORMAT, as variables or in lsf.conf, are the columns
without `-o`.
"""


def page() -> str:
    of_queues = {**read_texts(field_texts.BQUEUES), **_of_parameters()}
    return "".join(
        [
            _HEAD,
            _fields("bjobs", bjobs_custom.FIELDS, read_texts(field_texts.BJOBS)),
            _fields("bhosts", bhosts.FIELDS, read_texts(field_texts.BHOSTS)),
            _fields("bqueues", bqueues.FIELDS, of_queues),
            _fields("busers", busers.FIELDS, read_texts(field_texts.BUSERS)),
            _fields("lshosts", lshosts_fields(), read_texts(field_texts.LSHOSTS)),
            _fields("lsload", lsload_fields(), read_texts(field_texts.LSLOAD)),
            _of_gpus(),
        ]
    )


def _asked(command: str) -> Request:
    """A query of a cluster that has no host and no resource of its own."""
    view = View(Cluster(), Soft(), lambda: Reader(sa.create_engine("sqlite://")))
    return Request(view, Query(command=command), Caller(user="", uid=0, host=""), 0.0)


def lshosts_fields() -> dict[str, columns.RowField[str]]:
    return columns.row_fields(lshosts.table(_asked("lshosts")))


def lsload_fields() -> dict[str, columns.RowField[str]]:
    """Without the site's own indices and those of GPUs."""
    request = _asked("lsload")
    return columns.row_fields(lsload.table(request, request.options()))


def _of_gpus() -> str:
    sums = ", ".join(f"`{name}`" for name in (*gpuload.COUNTS, *gpuload.AVERAGES))
    each = ", ".join(f"`{name}0`" for name, _, _ in gpuload.INDICES)
    return f"""
Load indices of the site (lsf.shared) are fields, too. Where a host has GPUs: {sums}; and of its first GPU {each}, of the second
the same with a 1, and so on.
"""


def _of_parameters() -> dict[str, str]:
    """Fields of bqueues that are parameters of lsb.queues, and its limits."""
    texts = read_texts(queue_help.QUEUES)
    found = {one.column.names.split()[0]: f"{one.name}: {texts[one.name]}" for one in QUEUE_PARAMETERS if one.column is not None}
    for name in bqueues.FIELDS.values():
        kind, _, limit = name.name.partition("_")
        if limit.endswith("limit") and limit != "tasklimit" and kind in ("max", "default"):
            found[name.name] = f"{limit.upper()}: {'the most that jobs may ask for' if kind == 'max' else 'what jobs get'}"
    return found


def _fields(command: str, fields: Mapping[str, Field], texts: Mapping[str, str]) -> str:
    """Raises KeyError for a field that shows something and has no text."""
    names: dict[str, list[str]] = {}
    for name, field in fields.items():
        names.setdefault(field.name, []).append(name)
    rows, empty = [], []
    for own, known in names.items():
        field = fields[own]
        if own in EMPTY.get(command, ()) or getattr(field, "value", None) is bjobs_values.none:
            empty += [f"`{name}`" for name in known]
            continue
        others = ", ".join(code(one) for one in known if one != own)
        rows.append((code(own), others, str(field.width), cell(texts[own])))
    left = f"\nTaken as in LSF, always `-`: {', '.join(empty)}.\n" if empty else ""
    return f"\n## {command}\n\n{table(('Field', 'Also', 'Width', ''), rows)}{left}"


EMPTY = {"bqueues": ("parameters",), "busers": ("priority",)}
"""Of the commands whose tables do not say it themselves."""
