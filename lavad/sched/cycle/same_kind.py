"""Classes of one kind: what keeps one of them waiting keeps the others too, so that they cost a look at two numbers each.

Rule: an answer is what ``_Cycle`` found for another class of the kind, and holds until anything is placed, reserved or lent.
"""

from __future__ import annotations

from math import inf

from lavad.core.plan.volatile import WhyClass
from lavad.sched.cycle.full_hosts import SPARE
from lavad.sched.cycle.plan_builder import PlanBuilder
from lavad.sched.hosts.gates import reads_load
from lavad.sched.needs.kinds import Kind
from lavad.sched.needs.needs import Need
from lavad.sched.state.eligible import get_eligible
from lavad.sched.state.scheduler_cache import PendingClass


class _Answer:
    """Why classes of a kind wait. ``reason``: one that is about no host; 0: there is too little room on hosts."""

    __slots__ = ("far", "most", "near", "reads_load", "reason", "top")

    def __init__(self, reason: int = 0) -> None:
        self.reason = reason
        self.most = inf
        """Room for this much there may be."""
        self.top = inf
        """More than this no host can ever have."""
        self.near: WhyClass | None = None
        self.far: WhyClass | None = None
        """``near`` of those that ask for up to ``top``, ``far`` of the others."""
        self.reads_load = False


class SameKind:
    """The answers of one cycle."""

    def __init__(self, builder: PlanBuilder) -> None:
        self._builder = builder
        self._state = builder.state
        self._answers: dict[Kind | None, _Answer] = {}

    def forget(self) -> None:
        """Something has changed in this cycle."""
        self._answers.clear()

    def note_reason(self, kind: Kind | None, reason: int) -> None:
        """A class of this kind waits for a reason that is about no host."""
        if kind is not None and self._builder.is_quiet:
            self._answers[kind] = _Answer(reason)

    def note_full(self, entry: PendingClass, need: Need, why: WhyClass) -> None:
        """No host has room for the one job of a class."""
        kind = entry.kind
        if kind is None or not self._builder.is_quiet:
            return
        eligible = get_eligible(self._state, need)
        answer = self._answers.setdefault(kind, _Answer())
        answer.most = eligible.full_hosts.most[kind.name] + SPARE
        answer.top = eligible.most.get(kind.name, inf) + SPARE
        answer.reads_load = reads_load(need)
        if entry.amount > answer.top:
            answer.far = why
        else:
            answer.near = why

    def waits(self, number: int, entry: PendingClass) -> bool:
        """Whether a class waits as another of its kind does; then that is noted."""
        answer = self._answers.get(entry.kind)
        if answer is None:
            return False
        cache = self._state.cache
        if answer.reason:
            entry.blocked = -1
            cache.forget_job_reasons(entry)
            self._builder.set_reason(number, answer.reason)
            return True
        amount = entry.amount
        why = answer.far if amount > answer.top else answer.near
        if why is None or amount <= answer.most or not entry.alone:
            return False
        if entry.blocked < cache.changed.improved or (answer.reads_load and entry.blocked < cache.changed.load_changed):
            self._builder.block(number, entry, why)
        return True
