"""How much of the masters' memory a live record takes, in units of one plain job (up to 500 bytes in each of three processes).

Rule: a record's units follow from the record alone, so that ``Cluster.records`` (the sum of each user) is derived state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from lavad.core.job.depend import Jobs
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import Spec
from lavad.core.lang.ranges import Ranges

CHARS = 512
"""Characters of names and messages in a unit."""
READ_CHARS = 16
"""Characters of a requirement or a condition in a unit: the scheduler keeps what they are read as."""
MESSAGE = 128
"""Characters that a message takes besides its text."""
PER_RANGE = 8
"""Spans of indices in a unit."""


def units_of(record: Job | Array) -> int:
    """Of a job, an element with a record of its own, or an array."""
    chars = len(record.name)
    for message in record.messages:
        chars += MESSAGE + len(message.text) + len(message.body)
    units = 1 + chars // CHARS
    if record.depend is not None:
        units += (len(record.depend.text) + sum(map(_numbers, record.depend.ids))) // READ_CHARS
    if isinstance(record, Array):
        units += (len(record.spec_text) // CHARS) + (len(record.indices.parts) + len(record.pending.parts)) // PER_RANGE
    return units


def _numbers(jobs: Jobs) -> int:
    return len(jobs.parts) if isinstance(jobs, Ranges) else len(jobs)


def is_as_large(old: Job | Array, new: Job | Array) -> bool:
    """Whether nothing of a record has changed that its units depend on, as at most changes of state."""
    if old.name is not new.name or old.messages is not new.messages or old.depend is not new.depend:
        return False
    return not isinstance(old, Array) or (isinstance(new, Array) and len(old.pending.parts) == len(new.pending.parts))


def units_of_spec(spec: Spec) -> int:
    """Of a class of equal jobs, beside those of its jobs."""
    return 2 + len(spec.resreq) // READ_CHARS + _chars(msgspec.structs.astuple(spec)) // CHARS


Key = TypeVar("Key", str, int)


def add_to(counts: Counter[Key], name: Key, number: int) -> None:
    """Count on; what is 0 is not there."""
    counts[name] += number
    if not counts[name]:
        del counts[name]


def _chars(fields: Iterable[object]) -> int:
    """Characters of all texts in a record."""
    count = 0
    for one in fields:
        if not one:
            continue  # most are empty
        if isinstance(one, str):
            count += len(one)
        elif isinstance(one, tuple):
            count += _chars(one)
        elif isinstance(one, msgspec.Struct):
            count += _chars(msgspec.structs.astuple(one))
    return count
