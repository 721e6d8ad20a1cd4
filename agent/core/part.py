"""What the agent knows of one attempt on its host, and the limits that it enforces there.

Rule: times are seconds of CLOCK_BOOTTIME, given by the caller; the run limit does not count the time that the part is stopped.
"""

from __future__ import annotations

from enum import Enum, IntEnum

import msgspec

DEFAULT_INTERVAL = 10.0
"""Seconds between SIGINT, SIGTERM and SIGKILL where the site gives none (LSF's JOB_TERMINATE_INTERVAL)."""


class Stage(IntEnum):
    """How far a part has come on this host; it only moves down this list."""

    SENT = 1
    PREPARED = 2
    RUNNING = 3
    ENDED = 4
    GONE = 5


class Rules(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Limits (seconds and KB, 0: none) and how to stop and end the part."""

    run: int = 0
    cpu: int = 0
    mem: int = 0
    swap: int = 0
    processes: int = 0
    threads: int = 0
    enforce_memory: bool = False
    warn: str = ""
    """What warns the job: a signal's number, CHKPNT or a command, ``warn_before`` seconds before its run limit or deadline, or
    before the master ends it."""
    warn_before: int = 0
    deadline: float = 0.0
    """When the master ends the job (``-t``), in seconds of CLOCK_BOOTTIME; 0: never."""
    warning: int = 0
    """Seconds from SIGUSR2 at the run limit to the kill sequence."""
    interval: float = DEFAULT_INTERVAL
    sequential: bool = True
    """Kill by SIGINT, SIGTERM, SIGKILL; else SIGKILL at once (parallel jobs without LSB_USE_SEQUENTIAL_SIGNAL)."""
    soft_stop: bool = False
    """Stop by SIGTSTP (parallel and interactive jobs) rather than SIGSTOP."""
    stop_signal: int = 0
    """LSB_SIGSTOP: stop by this signal, whatever the job is; 0: by the usual one."""
    suspend: str = ""
    """JOB_CONTROLS: what stops the job instead of the usual signal: a signal's number or a command."""
    resume: str = ""
    terminate: str = ""
    """Runs or is sent first; the usual kill sequence follows three of its intervals later."""
    checkpoint: bool = False
    """The job writes checkpoints when asked to."""
    after: bool = False
    """JOB_INCLUDE_POSTPROC: the end is reported when the post-execution command has ended too."""
    first: bool = True
    """This is the part on the first host, which alone asks the job for checkpoints."""


class RequestKind(Enum):
    """What the master may request of a part."""

    SIGNAL = "signal"
    KILL = "kill"
    """End it, by the kill sequence or a given signal."""
    REQUEUE = "requeue"
    """End it at once: the job runs again."""
    MIGRATE = "migrate"
    """The same elsewhere, after a checkpoint if it writes any."""
    CHECKPOINT = "checkpoint"

    @classmethod
    def named(cls, name: str) -> RequestKind:
        """The kind by its name on the wire; one that is not known is a signal."""
        return _KINDS.get(name, cls.SIGNAL)


_KINDS = {kind.value: kind for kind in RequestKind}


class Request(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A request of the master; one with a number that was seen before is not carried out again."""

    number: int
    kind: RequestKind
    signal: int = 0
    reason: str = ""
    kill_after: bool = False
    at: float = 0.0
    notice: int = 0
    """Seconds that a job which is ended by the request has at most from its warning to its end; 0: none."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A signal to send at a time; ``KILL`` ends everything, ``TERMINATE`` runs the queue's own command."""

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
    """Since when it runs without a stop; -1: it does not run now."""
    stopped: bool = False
    steps: tuple[Step, ...] = ()
    requests: frozenset[int] = msgspec.field(default=frozenset(), name="wishes")
    """Numbers of the requests that were carried out; "wishes" in the agent's journal."""
    warned: bool = False
    killing: bool = False
    limit: str = ""
    """The limit that it exceeded (the name of a TermReason), "" if none."""
    reason: str = ""
    """Why it was ended on request (the name of a TermReason), "" if it was not."""
    waiting: tuple[Request, ...] = ()
    """Requests for checkpoints that came before its command runs."""
    again: bool = False
    """It is to end and the job to run again, or wait: its last request of that kind was no kill."""
    migrating: int = 0
    """Number of the request by which it is to end and the job to start elsewhere; 0: none."""


def run_time(part: Part, now: float) -> float:
    """Seconds that the part has run, without the time that it was stopped."""
    return part.ran + (now - part.since if part.since >= 0 else 0.0)
