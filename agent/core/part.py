"""What the agent knows of one attempt on its host, and the rules that it keeps there.

Rule: times are seconds of CLOCK_BOOTTIME, given by the caller; the run limit's clock stands still while it is stopped.
"""

from __future__ import annotations

from enum import Enum, IntEnum

import msgspec

DEFAULT_INTERVAL = 10.0
"""Seconds between SIGINT, SIGTERM and SIGKILL where the site gives none (LSF's JOB_TERMINATE_INTERVAL)."""


class Stage(IntEnum):
    """Where a part is on this host; it only goes down the list."""

    SENT = 1
    PREPARED = 2
    RUNNING = 3
    ENDED = 4
    GONE = 5


class Rules(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Limits (seconds and KB, 0: none) and how the part is to be ended."""

    run: int = 0
    cpu: int = 0
    mem: int = 0
    swap: int = 0
    processes: int = 0
    threads: int = 0
    enforce_memory: bool = False
    warn: str = ""
    """What warns the job ``warn_before`` seconds before its run limit or deadline: a signal's number, CHKPNT or a command."""
    warn_before: int = 0
    deadline: float = 0.0
    """When the master ends the job (``-t``), by the clock of limits; 0: never."""
    warning: int = 0
    """Seconds from SIGUSR2 at the run limit to the kill sequence."""
    interval: float = DEFAULT_INTERVAL
    sequential: bool = True
    """Kill by SIGINT, SIGTERM, SIGKILL; else SIGKILL at once (parallel jobs without LSB_USE_SEQUENTIAL_SIGNAL)."""
    soft_stop: bool = False
    """Stop by SIGTSTP (parallel and interactive jobs) rather than SIGSTOP."""
    suspend: str = ""
    """JOB_CONTROLS: what stops the job in place of the usual signal: a signal's number or a command."""
    resume: str = ""
    terminate: str = ""
    """What goes before the usual kill sequence, by three of its intervals."""
    checkpoint: bool = False
    """The job writes checkpoints when asked to."""
    after: bool = False
    """JOB_INCLUDE_POSTPROC: its end is told when the post-execution command has ended too."""
    first: bool = True
    """The part on the first host: it alone asks for checkpoints."""


class WishKind(Enum):
    """What the master may ask of a part."""

    SIGNAL = "signal"
    KILL = "kill"
    """End it, by the kill sequence or a given signal."""
    REQUEUE = "requeue"
    """End it at once: the job runs again."""
    MIGRATE = "migrate"
    """The same elsewhere, after a checkpoint if it writes any."""
    CHECKPOINT = "checkpoint"


class Wish(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Something asked of the part, once for each number."""

    number: int
    kind: WishKind
    signal: int = 0
    reason: str = ""
    kill_after: bool = False
    at: float = 0.0


class Step(msgspec.Struct, frozen=True, gc=False):
    """A signal that is due at a time; ``KILL`` ends everything, ``TERMINATE`` runs the queue's command."""

    at: float
    signal: int


KILL = -1
TERMINATE = -2
"""Run the command that ends the job."""


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt on this host."""

    uid: str
    key: int
    attempt: int
    rules: Rules = Rules()
    stage: Stage = Stage.SENT
    ran: float = 0.0
    """Seconds run before ``since``."""
    since: float = -1.0
    """Running, not stopped, since then; -1: not running now."""
    stopped: bool = False
    steps: tuple[Step, ...] = ()
    wishes: frozenset[int] = frozenset()
    """Numbers of the wishes that were done."""
    warned: bool = False
    killing: bool = False
    limit: str = ""
    """The limit that it went over (a TermReason name)."""
    reason: str = ""
    """Why it was told to end, by whom (a TermReason name)."""


def run_time(part: Part, now: float) -> float:
    """Seconds that it has run, without the time it was stopped."""
    return part.ran + (now - part.since if part.since >= 0 else 0.0)
