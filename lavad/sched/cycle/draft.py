"""What a cycle has decided so far: placements, and why classes of jobs wait."""

from __future__ import annotations

from lavad.core.plan.plan import Placement
from lavad.core.plan.volatile import WhyClass
from lavad.sched.cycle.explain import main_reason
from lavad.sched.cycle.reservations_and_preemption import Beyond
from lavad.sched.state.cycle_state import CycleState

MOST = 10_000
"""Placements of one plan; more wait for the next cycle, so that a cycle stays short."""


class Draft:
    """The plan that is being made. ``beyond``: what is done for jobs that do not fit."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.beyond = Beyond(state)
        self.placements: list[Placement] = self.beyond.begin()
        self.why: dict[int, WhyClass] = {}

    @property
    def left(self) -> int:
        """How many placements the plan still takes."""
        return MOST - len(self.placements)

    def set_reason(self, number: int, reason: int) -> None:
        """A class waits for a reason that is about no host."""
        old = self.state.cache.why.get(number)
        if old is None or old.reasons != ((reason, 0, ()),):
            self.why[number] = main_reason(reason, self.state.now)
