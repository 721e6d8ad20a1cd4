"""fields.md: the fields of ``-o`` of bjobs, bhosts, bqueues and busers."""

from __future__ import annotations

from collections.abc import Mapping

from config.help import queues as queue_help
from config.help.texts import read_texts
from config.values.parameters import QUEUE_PARAMETERS
from docs.generate import field_texts
from docs.generate.markdown import cell, code, table
from lavad.queries.frame.columns import Field
from lavad.queries.hosts import bhosts
from lavad.queries.jobs import bjobs_custom, bjobs_values
from lavad.queries.queues import bqueues, busers

_HEAD = """\
# Fields of -o

`-o "jobid stat:7 mem:-10:GB delimiter=','"` chooses columns: a field, a width (`:-10` justifies to the right, `:` without a
number is the width below), a unit of sizes. `-o` with `-json` gives JSON, whose keys are the names in capitals. A name with one
asterisk is each field that it fits (`gpu_*`). What there is not is shown as `-`. LSB_BJOBS_FORMAT, LSB_BHOSTS_FORMAT,
LSB_BQUEUES_FORMAT and LSB_BUSERS_FORMAT, as variables or in lsf.conf, are the columns without `-o`.
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
        ]
    )


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


EMPTY = {"bqueues": ("parameters",), "busers": ("mpend", "priority")}
"""Of the commands whose tables do not say it themselves."""
