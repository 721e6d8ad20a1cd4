"""The states of jobs, parts, hosts and queues; job states carry LSF's own bit values (lsb.events uses them)."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class JobState(IntEnum):
    """What ``bjobs`` shows in STAT. WAIT: dispatched in a chunk, behind another job in the same slot (``core.job.chunk``)."""

    PEND = 0x1
    PSUSP = 0x2
    RUN = 0x4
    SSUSP = 0x8
    USUSP = 0x10
    EXIT = 0x20
    DONE = 0x40
    WAIT = 0x200
    UNKWN = 0x10000
    ZOMBI = 0x80000


WAITING = frozenset({JobState.PEND, JobState.PSUSP})
STARTED = frozenset({JobState.RUN, JobState.WAIT, JobState.SSUSP, JobState.USUSP, JobState.UNKWN, JobState.ZOMBI})
SUSPENDED = frozenset({JobState.SSUSP, JobState.USUSP})
FINAL = frozenset({JobState.DONE, JobState.EXIT})


class PartState(IntEnum):
    """One attempt on one host.

    OFFERED: the agent is to prepare or start it. PREPARED: the host is ready and waits for the other hosts.
    STARTING: released. RUNNING: the agent reported that it runs. GONE: nothing of it is left on the host.
    FENCED: the host is silent and its lease has expired, so nothing of it can be left.
    """

    OFFERED = 1
    PREPARED = 2
    STARTING = 3
    RUNNING = 4
    GONE = 5
    FENCED = 6


OVER = frozenset({PartState.GONE, PartState.FENCED})


class TaskState(IntEnum):
    """One task of a job with roles. WAITING: to be started, for the first time or again."""

    WAITING = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4


TASK_OVER = frozenset({TaskState.SUCCEEDED, TaskState.FAILED})


class HostState(IntEnum):
    """Whether the master receives heartbeats of a host's agent."""

    OK = 1
    UNAVAIL = 2
    UNREACH = 3


class TermReason(IntEnum):
    """Why a job was ended, under LSF's names; NONE: it ended by itself."""

    NONE = 0
    TERM_OWNER = 1
    TERM_ADMIN = 2
    TERM_RUNLIMIT = 3
    TERM_CPULIMIT = 4
    TERM_MEMLIMIT = 5
    TERM_SWAP = 6
    TERM_PROCESSLIMIT = 7
    TERM_DEADLINE = 8
    TERM_FORCE_OWNER = 9
    TERM_FORCE_ADMIN = 10
    TERM_REQUEUE_OWNER = 11
    TERM_REQUEUE_ADMIN = 12
    TERM_CHKPNT = 13
    TERM_CWD_NOTEXIST = 14
    TERM_UNKNOWN = 15
    TERM_ZOMBIE = 16
    TERM_PREEMPT = 17
    TERM_LOAD = 18
    TERM_EXTERNAL_SIGNAL = 19
    TERM_OTHER = 20
    TERM_REQUEUE_RC = 21
    TERM_ORPHAN_SYSTEM = 22
    TERM_WINDOW = 23
    TERM_THREADLIMIT = 24
    TERM_OUTPUTLIMIT = 25
    """Of lava: LAVA_OUTPUT_LIMIT or LAVA_OUTPUT_USER_LIMIT of a host."""
    TERM_OUTPUTDISK = 26
    """Of lava: LAVA_OUTPUT_RESERVE of a host."""


class SignalKind(StrEnum):
    """What a pending signal asks of a running attempt."""

    KILL = "kill"
    SIGNAL = "signal"
    CHECKPOINT = "checkpoint"
    REQUEUE = "requeue"
    MIGRATE = "migrate"


class HangState(StrEnum):
    """How a rank hangs or holds up the others."""

    STOPPED = "stopped"
    IDLE = "idle"
    """It is idle while the others work."""
    BEHIND = "behind"
    """It works while the others wait for it."""
    ODD = "odd"
    """All wait, and it is blocked in a different place than most ranks."""
    ALL = "all"
    """All wait, and this is one of them."""


class PreemptionAction(StrEnum):
    """How a victim gives way to the job that preempts it."""

    SUSPEND = "suspend"
    """Its slots are free at once, and its own again later."""
    SHRINK = "shrink"
    """It gives up some of its slots."""
    REQUEUE = "requeue"
    MIGRATE = "migrate"
    KILL = "kill"
    """As with REQUEUE and MIGRATE, all it has is held for the other job until it is gone."""
