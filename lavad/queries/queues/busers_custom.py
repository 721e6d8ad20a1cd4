"""busers -o and -json, and the record that both formats of busers show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from config.model.cluster import UserConfig
from lavad.core.cluster.usage_index import PEND, PSUSP, RSV, RUN, SSUSP, USUSP
from lavad.queries.frame import columns
from lavad.queries.frame.columns import Custom, Named
from lavad.queries.frame.request import Shown, out

DEFAULT = "user jl/p max njobs pend run ssusp ususp rsv"


class UserRow(msgspec.Struct, frozen=True):
    """A user or group: limits, slots by state (None: not counted), pending jobs."""

    name: str
    conf: UserConfig
    counts: list[int] | None
    pending_jobs: int
    gpus: Callable[[], Counter[str]] = Counter
    """How many GPUs the jobs that run hold: ``shared``, ``excl``, and ``jexcl`` of the shared ones. Counted when asked for."""

    @property
    def njobs(self) -> int:
        """All slots."""
        return sum(self.counts or ())


class UserField(Named, frozen=True):
    """A field."""

    value: Callable[[UserRow], object]


def _count(*states: int) -> Callable[[UserRow], object]:
    return lambda row: "" if row.counts is None else sum(row.counts[state] for state in states)


def _limit(name: str) -> Callable[[UserRow], object]:
    def read(row: UserRow) -> object:
        value = getattr(row.conf, name)
        return "" if value is None else f"{value:g}"

    return read


def _gpus(*kinds: str) -> Callable[[UserRow], object]:
    def read(row: UserRow) -> object:
        held = row.gpus()
        return "" if row.counts is None else sum(held[kind] for kind in kinds)

    return read


_TABLE: tuple[tuple[str, int, Callable[[UserRow], object]], ...] = (
    ("user", 20, lambda row: row.name),
    ("jl/p jlp", 8, _limit("slots_per_processor")),
    ("max", 8, _limit("max_jobs")),
    ("nstart", 8, _count(RUN, SSUSP, USUSP, RSV)),
    ("pend", 8, _count(PEND, PSUSP)),
    ("run", 8, _count(RUN)),
    ("ssusp", 8, _count(SSUSP)),
    ("ususp", 8, _count(USUSP)),
    ("rsv", 8, _count(RSV)),
    ("njobs", 8, lambda row: "" if row.counts is None else row.njobs),
    ("pjobs", 8, lambda row: row.pending_jobs),
    ("mpend", 8, lambda row: ""),
    ("mpjobs", 8, _limit("max_pend_slots")),
    ("priority", 10, lambda row: ""),
    ("ngpus", 8, _gpus("shared", "excl")),
    ("ngpus_shared", 8, _gpus("shared")),
    ("ngpus_excl", 8, _gpus("excl")),
    ("ngpus_shared_jexcl", 8, _gpus("jexcl")),
)

FIELDS: dict[str, UserField] = {
    alias: UserField(names.split()[0], width, value) for names, width, value in _TABLE for alias in names.split()
}


def show(rows: Sequence[UserRow], custom: Custom, as_json: bool, header: bool) -> Iterator[Shown]:
    """A table or JSON."""
    lines = [[str(FIELDS[column.name].value(row)) for column in custom.columns] for row in rows]
    pieces = (
        columns.json_pieces("busers", "USERS", [columns.record(custom, line) for line in lines])
        if as_json
        else columns.table(custom, lines, header)
    )
    yield from map(out, pieces)
