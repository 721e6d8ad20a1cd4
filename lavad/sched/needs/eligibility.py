"""Which hosts a class of jobs may use at all, and what is cached beside that answer.

Rule: only records stand here; ``state.eligible`` works them out, and does so again when they are no longer current.
"""

from __future__ import annotations

from typing import TypeAlias

from lavad.core.lang.gpureq import GpuReq
from lavad.core.plan.volatile import WhyClass
from lavad.sched.needs.arrays import Ints, Ints32, Mask, np

Codes: TypeAlias = Ints32
"""Pend reason of each host by row number, 0: the class may use it. Shape: (hosts,)."""


class FullHosts:
    """What ``cycle.full_hosts`` knows of the eligible hosts. ``changes``: (cycle, changes of rows) as of which it is so."""

    __slots__ = ("changes", "most", "why")

    def __init__(self, changes: tuple[int, int]) -> None:
        self.changes = changes
        self.most: dict[str, float] = {}
        """Resource to the most that a host with a free slot has of it."""
        self.why: dict[tuple[str, bool, int], WhyClass] = {}
        """(resource, whether the queue asks for it, why not even empty hosts could hold it) to why a class waits."""


class Eligibility:
    """The reasons of all hosts for the classes of one ``eligible_key``.

    ``made_from``: (``state_seen``, ``rows_seen``) of the cache when it was worked out last; ``since``: the cycle since which it
    is so.
    """

    __slots__ = (
        "_array",
        "_ok",
        "all_full",
        "any_ok",
        "capacity",
        "codes",
        "depends_on_load",
        "full_hosts",
        "made_from",
        "most",
        "no_gpus",
        "since",
        "totals",
    )

    def __init__(self, codes: list[int] | Codes, depends_on_load: bool, made_from: tuple[int, int], since: int) -> None:
        self.codes = codes
        """A plain list for few hosts, else a numpy array."""
        self.depends_on_load = depends_on_load
        self.made_from = made_from
        self.since = since
        self._array: Codes | None = None
        self._ok: Mask | None = None
        self.any_ok = 0 in codes
        self.full_hosts = FullHosts((-1, -1))
        self.all_full: tuple[int, WhyClass | None] = (-1, None)
        """Why a class waits when all hosts are full, at this change of the columns."""
        self.capacity: dict[tuple[bool, int], tuple[int, int]] = {}
        """(whether CPUs bound the slots, ptile) to the (sum, maximum) of the slots that these hosts offer when empty."""
        self.most: dict[object, float] = {}
        """Resource or affinity requirement to the most that any of these hosts has when empty."""
        self.totals: dict[object, tuple[float, bool]] = {}
        """(What a slot takes of a resource or of GPUs, CPUs, ptile) to (slots that these hosts offer when empty, whether all of
        them are counted: else they offer at least so many)."""
        self.no_gpus: dict[GpuReq, int] = {}
        """GPU requirement to why none of these hosts could satisfy it when empty; 0: one could."""

    @property
    def array(self) -> Codes:
        """The codes as an array, also of few hosts."""
        if self._array is None:
            self._array = np.asarray(self.codes, dtype=np.int32)
        return self._array

    @property
    def ok(self) -> Mask:
        """Where the class may use the host. Shape: (hosts,)."""
        if self._ok is None:
            self._ok = self.array == 0
        return self._ok

    def has_any_of(self, rows: list[int] | Ints) -> bool:
        """Whether the class may use any of these hosts."""
        codes = self.codes
        return any(not codes[row] for row in rows) if isinstance(codes, list) else bool(self.ok[rows].any())

    def has_codes(self, codes: list[int] | Codes) -> bool:
        """Whether these are its codes."""
        return self.codes == codes if isinstance(codes, list) else np.array_equal(self.array, codes)

    def is_current(self, state_seen: int, rows_seen: int) -> bool:
        """Whether it would come out the same if it were worked out again."""
        return self.made_from[0] == state_seen and (not self.depends_on_load or self.made_from[1] == rows_seen)
