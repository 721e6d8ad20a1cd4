"""Records of jobs, arrays and attempts: what the master knows of each live job."""

from __future__ import annotations

import msgspec

from config.model.values import Limits
from lavad.core.job.depend import Depend
from lavad.core.lang.cpus import Binding
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.rusage_decay import RusageDecay
from lavad.core.lang.states import JobState, PartState, TaskState, TermReason

AVOIDED = 60.0
"""Seconds in which a job that waits again goes to no host of its ``avoid``; then it prefers the others."""


class Placed(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a part of an attempt goes: host, slots, GPUs (UUIDs) and what it reserves there (resource name, amount)."""

    host: str
    slots: int
    gpus: tuple[str, ...] = ()
    reserved: tuple[tuple[str, float], ...] = ()
    fades: tuple[RusageDecay, ...] = ()
    """Which of ``reserved`` is not for the whole life of the job."""
    roles: tuple[tuple[int, int, int], ...] = ()
    """Of a job with roles: (number of the role, index of its first task here, how many)."""
    binds: tuple[Binding, ...] = ()
    """affinity[]: what each of its tasks here is bound to."""


class TaskEnd(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The end of one task (rank); ``status`` is a wait status, times in seconds, memory in KB."""

    rank: int
    pid: int = 0
    status: int = 0
    utime: float = 0.0
    stime: float = 0.0
    maxrss: int = 0


class End(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a part ended on its host, as its agent reported it."""

    status: int = 0
    """Wait status of the job process, or of the rank that failed first."""
    at: float = 0.0
    started: float = 0.0
    utime: float = 0.0
    stime: float = 0.0
    max_mem: int = 0
    max_swap: int = 0
    max_processes: int = 0
    max_threads: int = 0
    avg_mem: int = 0
    tasks: tuple[TaskEnd, ...] = ()
    first_rank: int = -1
    first_reason: str = ""
    limit: TermReason = TermReason.NONE
    """The limit that the agent enforced, if that is why it ended."""
    lost: str = ""
    """Why the end is unknown (its shepherd died); "" when it is known."""
    output: str = ""
    """Where output without ``-o`` is kept on the first host."""
    post: int = 0
    """Wait status of the post-execution command, where that was over too."""
    cpu_peak: float = 0.0
    """The most CPUs that it used at a time, and when, in seconds after its start."""
    cpu_peak_after: float = 0.0


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attempt on one host."""

    host: str
    slots: int
    state: PartState = PartState.OFFERED
    gpus: tuple[str, ...] = ()
    reserved: tuple[tuple[str, float], ...] = ()
    address: str = ""
    """Where its shepherd listens for the other hosts (``ip:port``), once prepared."""
    door: str = ""
    """Where it listens for the user of an interactive job (``ip port name``)."""
    pid: int = 0
    stopped: bool = False
    """The agent said that its processes are stopped."""
    post: int = 0
    """Wait status of the post-execution command."""
    end: End | None = None
    fades: tuple[RusageDecay, ...] = ()
    roles: tuple[tuple[int, int, int], ...] = ()
    """As in ``Placed``."""
    binds: tuple[Binding, ...] = ()
    seat: int = 0
    """Of a resizable job: its number among all hosts that the attempt ever had; it never changes."""
    grown: bool = False
    """It was added to a running attempt: a part of its own uid (see ``core.job.resize``)."""
    leaving: bool = False
    """It is to be gone, and the attempt goes on without it."""
    preempted_for: int = msgspec.field(name="lent", default=0)
    """Leaving for this job, which gets its slots."""


class TaskRun(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One task of a job with roles: its place among the attempt's tasks is its rank, for the job's life."""

    role: int
    index: int
    place: int = 0
    """Which part it is in."""
    number: int = 1
    """Counts its starts in this attempt."""
    state: TaskState = TaskState.WAITING
    late: bool = False
    """It starts when all that are not late run."""
    delay: float = 0.0
    """Seconds that its next start waits."""
    status: int = 0
    """Wait status of its last end."""
    at: float = 0.0
    """When it came into this state."""
    pid: int = 0


class Wish(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Something asked of a running attempt and not yet done."""

    kind: str
    """``kill``, ``signal``, ``checkpoint``, ``requeue`` or ``migrate``."""
    at: float
    by: str = ""
    signal: int = 0
    reason: TermReason = TermReason.NONE
    number: int = 0
    """Counts wishes of an attempt, so that the agent does each one once."""
    kill_after: bool = False
    period: int = -1
    """checkpoint: seconds between periodic ones from now on, 0: none; -1: as it is."""
    state: JobState = JobState.PEND
    """requeue: the state the job goes to."""
    done: bool = False
    """kill: the job counts as DONE."""
    said: str = ""
    """The reason that its asker gave (-C)."""


class Suspect(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A rank that seems to hang, or to hold up the others."""

    rank: int
    host: str
    pid: int
    how: str
    """``stopped``; ``idle`` while the others work; ``behind``: they wait for it; all wait: ``odd`` (it for something else
    than most) or ``all`` (one of them)."""
    since: float = 0.0
    waits: str = ""
    """What its process waits for, as its kernel has it."""


class Resize(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A change of a running attempt's hosts that is under way."""

    number: int
    grow: bool
    parts: tuple[Placed, ...]
    at: float
    command: str = ""
    done: bool = False
    """A shrink that did not wait for its command."""


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run of a job. It ends only when every part is GONE or FENCED."""

    number: int
    uid: str
    dispatched: float
    parts: tuple[Part, ...]
    started: float = 0.0
    """When the first part's process started; 0: not yet."""
    wishes: tuple[Wish, ...] = ()
    next_wish: int = 1
    verdict: End | None = None
    """How the job ended, once its first part (or a failing one) has."""
    refused: str = ""
    """Why a host refused to start it: it goes back to PEND when every part is over."""
    refused_code: str = ""
    cwd: str = ""
    paused: float = 0.0
    """Seconds for which it was suspended so far."""
    checkpoint: int = -1
    """Generation of the newest whole checkpoint of the job, -1: none."""
    way: int = 0
    """Which of the alternatives of its requirement it was placed by."""
    alone: tuple[str, ...] = ()
    """Hosts without a part of it that no other job may use meanwhile (cu[excl])."""
    suspects: tuple[Suspect, ...] = ()
    """Ranks that seem to hang, as the samples had it last."""
    tasks: tuple[TaskRun, ...] = ()
    """Of a job with roles: all its tasks by rank."""
    judged: bool = False
    """The tasks' ends have made the verdict: the parts are to finish."""
    leave: bool = False
    """Tasks that still run then are let alone, and the attempt ends with the last of them."""
    again: str = ""
    """Why the whole job starts again once this attempt is over."""
    limits: Limits | None = None
    """Its limits, where they were changed while it ran."""
    forced: bool = False
    """brun -f: neither a run window nor load suspends it."""
    amended: tuple[tuple[str, str], ...] = ()
    """Output files and mail of bmod while it ran: names of the text's fields and what they are now."""
    elastic: bool = False
    """Hosts may join it and leave it."""
    seats: int = 0
    resize: Resize | None = None
    resizes: int = 0
    wanted: tuple[int, int] | None = None
    """(least, most) slots in all that were asked for by hand; None: by itself, if the job is autoresizable."""
    command: str | None = None
    """Notification command of that request."""
    grow_after: float = 0.0
    """No growth before this: the last one failed."""
    spent: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Seconds of slots and GPUs beyond (what it has now) x (time since its start), and CPU seconds of hosts that left."""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a finished job ended."""

    at: float
    status: int = 0
    reason: TermReason = TermReason.NONE
    why: str = ""
    """One line for the user where a status does not say enough (first failing rank and host, lost host)."""
    post: int = 0
    """Wait status of the post-execution command."""


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What somebody posted to a job (bpost): LSF keeps the newest of each number."""

    number: int
    text: str
    at: float
    by: str = ""
    body: str = ""
    """The attached data (``bpost -a``), as text."""


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """A separate job, or an element that differs from its untouched siblings."""

    key: int
    spec: int
    name: str
    submitted: float
    state: JobState = JobState.PEND
    since: float = 0.0
    """When it came into this state."""
    attempt: int = 0
    """Number of the newest attempt; 0: never dispatched."""
    run: Attempt | None = None
    position: float = 0.0
    """Rank among the jobs of its queue given by btop (negative) or bbot (positive)."""
    queue_time: float = msgspec.field(name="stand", default=0.0)
    """The submission time by which it is queued after its user's btop or bbot; 0: its own."""
    stopper: str = ""
    """Who suspended or held it last; "" for the system."""
    remarks: tuple[str, str] = ("", "")
    """The reasons given with the last bstop -C and bresume -C."""
    reason: int = 0
    """Pend reason that its own history gives it (requeued, resumed by user …), 0: none."""
    checkpoint: int = -1
    """Generation to restart from, -1: from the beginning."""
    avoid: tuple[str, ...] = ()
    """Hosts not to use at the next dispatch."""
    barred: tuple[str, ...] = ()
    """Hosts on which it ended with an exit code of EXCLUDE(…): it never goes there again."""
    failures: int = 0
    """Starts in a row that failed before the command ran."""
    not_before: float = 0.0
    """Earliest next dispatch after such a failure."""
    requeues: int = 0
    """How often an exit value has made it wait again."""
    before: JobState = JobState.RUN
    """UNKWN or ZOMBI: the state it had when its host was last heard."""
    preempted_for: int = msgspec.field(name="lent", default=0)
    """Key of the job that it was preempted for: others may use its slots until it resumes; 0: it was not preempted."""
    preempted_for_good: bool = msgspec.field(name="lent_all", default=False)
    """Preempted by requeue, migration or kill: it gives up all that it has, once it is gone."""
    promised: tuple[Placed, ...] = ()
    """What is held for it while it waits, until the jobs that were preempted for it are gone."""
    preempted: int = 0
    """How often it was preempted."""
    deadlocked: bool = False
    """It holds what others wait for, and they what it waits for (GANG=N)."""
    outcome: Outcome | None = None
    depend: Depend | None = None
    blocked: int = 0
    """How it stands to its condition: MET, BLOCKED or NEVER."""
    messages: tuple[Message, ...] = ()
    retries: int = 0
    """Of a job with roles: how often tasks, or all of it, were started again."""
    retried: float = 0.0
    """When that was last, and why."""
    retried_why: str = ""


class Array(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job array: its untouched elements are ranges; every other live element is a ``Job`` of its own."""

    job: int
    spec: int
    name: str
    """Name without the index list."""
    spec_text: str
    """Name with the index list, as given."""
    submitted: float
    indices: Ranges
    pending: Ranges
    held: Ranges
    """Untouched elements in PSUSP."""
    limit: int = 0
    """``%n``: how many may run at a time, 0: no limit."""
    done: int = 0
    exited: int = 0
    position: float = 0.0
    depend: Depend | None = None
    waiting: Ranges = EMPTY
    """Untouched elements whose condition is not met."""
    never: Ranges = EMPTY
    """Those of them whose condition can never be met."""
    messages: tuple[Message, ...] = ()
    queue_time: float = msgspec.field(name="stand", default=0.0)
    stopper: str = ""
    """Who held untouched elements of it last."""

    @property
    def startable(self) -> Ranges:
        """Untouched elements that may start now, as far as the array itself knows."""
        return self.pending.minus(self.waiting) if self.waiting else self.pending

    def starts(self, index: int) -> bool:
        """Whether this one is startable."""
        return index in self.pending and index not in self.waiting

    @property
    def may_start(self) -> bool:
        """Whether any is startable."""
        return not self.pending.is_within(self.waiting) if self.waiting else bool(self.pending)
