"""What a scheduling cycle proposes. The engine re-checks it with the same ledger before anything becomes true."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from lavad.core.job.job import Placed
from lavad.core.lang.states import PreemptionAction, TermReason
from lavad.core.plan.volatile import ReservedStart, WhyClass


class Placement(msgspec.Struct, frozen=True, gc=False):
    """Start this job or element (explicit index) on these hosts, the first being the first exec host."""

    key: int
    parts: tuple[Placed, ...]
    spec: int = 0
    """The class it was decided for (0: not said); a job that has another one by now stays pending."""
    way: int = 0
    """Which of the alternatives of its requirement it is placed by."""
    alone: tuple[str, ...] = ()
    """Hosts without a part of it that no other job may use meanwhile (cu[excl])."""


class Chunks(msgspec.Struct, frozen=True, gc=False):
    """Start these jobs of one class on a host, so many at a time, the others behind them (``core.job.chunk``).

    Job number i runs in slot i modulo ``slots``.
    """

    keys: tuple[int, ...]
    slots: int
    part: Placed
    """What each slot takes there."""
    spec: int


class Preemption(msgspec.Struct, frozen=True, gc=False):
    """A running job gives way to another; carried out together with the other's placement, or not at all."""

    key: int
    uid: str
    how: PreemptionAction
    beneficiary: int
    parts: tuple[Placed, ...] = ()
    """SHRINK: the slots that it gives up."""


class Suspension(msgspec.Struct, frozen=True, gc=False):
    """Suspend a running job; ``why`` is what bjobs -s says.

    ``reason``: termination reason if it is killed instead (TERMINATE_WHEN of its queue).
    """

    key: int
    uid: str
    why: str
    reason: TermReason = TermReason.NONE


class RunLimit(msgspec.Struct, frozen=True, gc=False):
    """A job that has reached its soft run limit (EXTENDABLE_RUNLIMIT): ``soft`` seconds it may run now, or ``hard``."""

    key: int
    uid: str
    soft: int = 0
    hard: int = 0


class Recorded(msgspec.Struct, frozen=True):
    """The inputs of a plan beside the events, packed for the history; ``anew``: complete, not built on the previous record.

    ``data`` is b"" with a plan that is the rest of another, whose record has them.
    """

    anew: bool
    data: bytes


class Growth(msgspec.Struct, frozen=True, gc=False):
    """More hosts or slots for a running job that is resizable."""

    key: int
    uid: str
    parts: tuple[Placed, ...]


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cycle's result, made on ``version`` of the cluster."""

    version: int
    placements: tuple[Placement, ...] = ()
    chunks: tuple[Chunks, ...] = ()
    why: dict[int, WhyClass] = {}
    """Spec number to why its remaining jobs wait (only classes that were looked at)."""
    why_job: dict[int, int] = {}
    """Job key to a pend reason of its own (array limit, begin time …)."""
    wake_at: float = 0.0
    """When time alone may make a job eligible (begin time, window); 0: never."""
    preemptions: tuple[Preemption, ...] = ()
    resumes: tuple[int, ...] = ()
    """Jobs suspended by the system that may resume."""
    suspensions: tuple[Suspension, ...] = ()
    releases: tuple[int, ...] = ()
    """Pending jobs whose reserved slots are released: they can no longer start on them, or not now."""
    holds: tuple[Placement, ...] = ()
    """Jobs that collect their slots one by one (GANG=N), with all slots that they hold from now on."""
    deadlocked: tuple[int, ...] = ()
    """Those that wait for each other."""
    promises: dict[int, ReservedStart] = {}
    """Pending job to its reserved start; jobs that are missing here have none."""

    recorded: Recorded | None = None
    """What a replay needs; None: nothing is recorded."""
    growths: tuple[Growth, ...] = ()
    run_limits: dict[int, int] = {}
    """Job that starts in what is held for another (INTERRUPTIBLE_BACKFILL) to its run limit in seconds, as limits are given."""

    extensions: tuple[RunLimit, ...] = ()

    took: float = 0.0
    """Seconds that the cycle took."""

    @property
    def started(self) -> int:
        """How many jobs it starts, or puts behind others."""
        return len(self.placements) + sum(len(one.keys) for one in self.chunks)

    @property
    def decides(self) -> bool:
        """Whether the master has anything to do about it."""
        started = self.placements or self.chunks or self.preemptions or self.resumes
        others = self.releases or self.growths or self.holds or self.deadlocked or self.extensions
        return bool(started or self.suspensions or others)


_PROPOSALS = ("suspensions", "releases", "placements", "chunks", "growths", "holds", "deadlocked", "resumes", "extensions")
"""In the order in which they are accepted."""


def split(plan: Plan, most: int) -> tuple[Plan, Plan | None]:
    """The first proposals of a plan, until they are about ``most`` hosts, and the rest; None: there is none.

    A job is never split, however many hosts it has. Both have all preemptions, as each belongs to a placement.
    """
    first, rest = {}, {}
    for name in _PROPOSALS:
        rows = getattr(plan, name)
        at = 0
        while at < len(rows) and most > 0:
            one = rows[at]
            most -= len(one.keys) if isinstance(one, Chunks) else len(one.parts) if isinstance(one, Placement | Growth) else 1
            at += 1
        if at < len(rows):
            first[name], rest[name] = rows[:at], rows[at:]
        elif at:
            rest[name] = ()
    if not first:
        return plan, None
    recorded = plan.recorded and Recorded(anew=False, data=b"")
    return replace(plan, **first), replace(plan, recorded=recorded, **rest)
