"""What the records of a store are made of, with the version of the store: an older lavad has to refuse what it would not read.

Where a record, an event or an enum changes, this fails. If a lavad of the last release has written stores of ``HEAD``, add a
migration (``0014_records.py`` is one without tables). Then LAVA_WRITE_GOLDEN=1 writes ``record_shapes.txt`` anew.
"""

from __future__ import annotations

import enum
import os
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import fields

from lavad.core.cluster.charge import Charge
from lavad.core.events import EVENTS
from lavad.core.job.groups import JobGroup
from lavad.core.job.job import Array, Job
from lavad.core.job.memory import Learnt
from lavad.core.job.pace import Pace
from lavad.core.job.spec import JobText, Spec
from lavad.core.site.conf import Conf, QueueAdmin
from lavad.core.site.host import Host
from lavad.core.site.reservation import Reservation
from lavad.core.site.tokens import UserTokens
from lavad.store.schema import HEAD

GOLDEN = Path(__file__).parent / "record_shapes.txt"
ROOTS = (*EVENTS, Job, Array, Spec, JobText, Host, QueueAdmin, Charge, Learnt, Pace, UserTokens, JobGroup, Reservation)
READ_ANEW = {Conf}
"""A lavad that starts reads it from its own files; what older ones stored is upgraded (``lavad.store.older_conf``)."""


def inner(kind: object) -> Iterator[type]:
    """The classes that a type is made of."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        yield kind
    for part in typing.get_args(kind):
        yield from inner(part)


def shapes() -> list[str]:
    """A line for each class that is stored: what it is called and has there."""
    found: dict[str, str] = {}
    todo: list[Any] = list(ROOTS)
    while todo:
        kind = todo.pop()
        if kind.__name__ in found or kind in READ_ANEW:
            continue
        if issubclass(kind, msgspec.Struct):
            tag = kind.__struct_config__.tag
            parts = sorted(field.encode_name for field in fields(kind))
            found[kind.__name__] = f"{kind.__name__}{f' ({tag})' if tag else ''}: {' '.join(parts)}"
            todo += [one for field in fields(kind) for one in inner(field.type)]
        elif issubclass(kind, enum.Enum):
            found[kind.__name__] = f"{kind.__name__}: {' '.join(sorted(str(one.value) for one in kind))}"
    return [f"version {HEAD}", *sorted(found.values())]


def test_what_is_stored_changes_with_the_version_of_the_store_only() -> None:
    lines = shapes()
    if os.environ.get("LAVA_WRITE_GOLDEN"):
        GOLDEN.write_text("\n".join(lines) + "\n")
    assert lines == GOLDEN.read_text().splitlines(), __doc__
