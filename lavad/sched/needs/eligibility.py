"""Which hosts a class of jobs may use at all, and what is cached beside it.

Rule: only a record: ``state.eligible`` works it out and decides when it must be worked out again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lavad.core.plan.volatile import WhyClass
from lavad.sched.needs.columns import Mask

Codes = npt.NDArray[np.int32]


class Crowd:
    """What ``crowd`` knows of the hosts of a base, at one change of them within one cycle."""

    __slots__ = ("changes", "most", "why")

    def __init__(self, changes: tuple[int, int]) -> None:
        self.changes = changes
        self.most: dict[str, float] = {}
        self.why: dict[tuple[str, bool], WhyClass] = {}


class Eligibility:
    """Reasons of one ``eligible_key`` for all hosts, and what they were made from."""

    __slots__ = ("array", "codes", "crowd", "depends_on_load", "full", "made_from", "most", "ok", "tops")

    def __init__(self, codes: list[int] | Codes, depends_on_load: bool, made_from: tuple[int, int]) -> None:
        self.codes = codes
        """Plain for few hosts, else a numpy array."""
        self.depends_on_load = depends_on_load
        self.made_from = made_from
        self.array: Codes = np.asarray(codes, dtype=np.int32)
        self.ok: Mask = self.array == 0
        self.crowd = Crowd((-1, -1))
        self.full: tuple[int, WhyClass | None] = (-1, None)
        """Why a class waits when all hosts are full, at this change of the columns."""
        self.tops: dict[object, float] = {}
        """Resource or GPU requirement to the most that any of these hosts has by itself."""
        self.most: dict[tuple[bool, int], tuple[int, int]] = {}
        """(whether CPUs bound the slots, ptile) to the (sum, maximum) of what empty hosts offer."""

    def is_current(self, state_seen: int, rows_seen: int) -> bool:
        """Whether it would come out the same if it were worked out again."""
        return self.made_from[0] == state_seen and (not self.depends_on_load or self.made_from[1] == rows_seen)
