"""Service classes (lsb.serviceclasses) and the pools of resources that are guaranteed to them (lsb.resources).

The words and their meaning are LSF's: "Guaranteed resource pools" and "Using goal-oriented SLA scheduling" of the LSF
administration guide.
"""

from typing import Literal

import msgspec


class Goal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A goal in time: so many jobs at once (velocity), all jobs done by the end of the window (deadline), so many an hour."""

    kind: Literal["velocity", "deadline", "throughput"]
    number: int = 0
    """Jobs at once, or jobs an hour; of a deadline 0."""
    windows: str = ""
    """When it is pursued, as of RUN_WINDOW; "": always."""

    def __str__(self) -> str:
        return f"{self.kind.upper()} {self.number}" if self.number else self.kind.upper()


class ControlAction(msgspec.Struct, frozen=True, omit_defaults=True):
    """CONTROL_ACTION: what is run each time that a goal has been missed for so many seconds."""

    seconds: int
    command: str
    """For /bin/sh."""
    file: str = ""
    """That says so: who may write it decides whether root runs it."""


class ServiceClass(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group of jobs with guarantees, or with goals in time. An empty list of ACCESS_CONTROL lets in all."""

    name: str
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """Users and user groups; of a class with goals USER_GROUP, which lets in administrators too."""
    fairshare_groups: tuple[str, ...] = ()
    """User groups that jobs are submitted for (``bsub -G``)."""
    apps: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    auto_attach: bool = False
    """Whether jobs that name no class and are let in belong to it; of several such classes to the first."""
    description: str = ""
    goals: tuple[Goal, ...] = ()
    """(): its goal is GUARANTEE."""
    priority: int = 1
    """PRIORITY: among classes with goals the largest comes first, of equal ones the first in the file."""
    control_action: ControlAction | None = None


class Amount(msgspec.Struct, frozen=True, omit_defaults=True):
    """So many units of a pool, or (``percent``) this percentage."""

    value: int
    percent: bool = False

    def of(self, total: int) -> int:
        """The number of units, where the whole has ``total``."""
        return total * self.value // 100 if self.percent else self.value

    def __str__(self) -> str:
        return f"{self.value}%" if self.percent else str(self.value)


class Loan(msgspec.Struct, frozen=True, omit_defaults=True):
    """LOAN_POLICIES: which jobs may have what is guaranteed to others and not used."""

    queues: tuple[str, ...]
    """Those whose jobs may borrow; ``all``: of every queue."""
    duration: int | None = None
    """Seconds: only jobs that say that they take no longer."""
    retain: Amount = Amount(0)
    """What is never lent of each guarantee."""
    close_on_demand: bool = False
    """Nothing is lent while jobs wait to which it is guaranteed."""

    def __str__(self) -> str:
        found = [f"QUEUES[{' '.join(self.queues)}]"]
        if self.duration is not None:
            found.append(f"DURATION[{self.duration // 60}]")
        if self.retain.value:
            found.append(f"RETAIN[{self.retain}]")
        return " ".join((*found, *(("CLOSE_ON_DEMAND",) if self.close_on_demand else ())))


class Pool(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A GuaranteedResourcePool: whole hosts, slots, or packages of slots and memory on one host.

    ``slots`` and ``mem`` (MB) are what a package has; slots are packages of one.
    """

    name: str
    type: str
    """``slots``, ``hosts`` or ``package``."""
    distribution: tuple[tuple[str, Amount], ...]
    """Service class to what is guaranteed to it."""
    slots: int = 1
    mem: float = 0.0
    hosts: tuple[str, ...] = ("all",)
    res_select: str = ""
    """A requirement that the hosts of the pool meet, as of ``select[]``."""
    slots_per_host: int | None = None
    """The most slots of each host that belong to the pool."""
    loan: Loan | None = None
    description: str = ""

    @property
    def type_text(self) -> str:
        """TYPE as the file has it."""
        if self.type != "package":
            return self.type
        amounts = [f"slots={self.slots}"] if self.slots else []
        return f"package[{':'.join(amounts + ([f'mem={self.mem:g}'] if self.mem else []))}]"
