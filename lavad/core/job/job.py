"""Records of jobs, arrays and attempts: what the master knows of each live job."""

from __future__ import annotations

import msgspec

from config.model.values import Limits
from lavad.core.job.checkpoints import Checkpoints
from lavad.core.job.depend import Depend
from lavad.core.job.gpu_use import GpuSums, GpuUse
from lavad.core.job.message import Message
from lavad.core.job.task_run import TaskRun
from lavad.core.lang.cpus import Binding
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.rusage_decay import RusageDecay
from lavad.core.lang.states import HangState, JobState, PartState, SignalKind, TermReason


class Placed(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The placement of a part of an attempt: host, slots, GPUs (UUIDs) and what it reserves there (resource name, amount)."""

    host: str
    slots: int
    """0 in a chunk for all jobs but the last, which has what they use one after the other (``core.job.chunk``)."""
    gpus: tuple[str, ...] = ()
    reserved: tuple[tuple[str, float], ...] = ()
    decays: tuple[RusageDecay, ...] = msgspec.field(name="fades", default=())
    """What of ``reserved`` ends or shrinks before the job ends."""
    roles: tuple[tuple[int, int, int], ...] = ()
    """Of a job with roles: (number of the role, index of its first task here, number of tasks)."""
    binds: tuple[Binding, ...] = ()
    """affinity[]: the processors that each of its tasks here is bound to."""


class TaskEnd(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The end of one task (rank); ``status`` is a wait status, times in seconds, memory in KB."""

    rank: int
    pid: int = 0
    status: int = 0
    utime: float = 0.0
    stime: float = 0.0
    maxrss: int = 0


class End(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a part ended on its host, as reported by its agent."""

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
    """The limit that the agent enforced, if it ended for that."""
    lost: str = ""
    """Why the end is unknown (its shepherd died); "": it is known."""
    output: str = ""
    """Where output without ``-o`` is kept on the first host."""
    post: int = 0
    """Wait status of the post-execution command, where it had ended as well."""
    cpu_peak: float = 0.0
    """The most CPUs that it used at a time, and when, in seconds after its start."""
    cpu_peak_after: float = 0.0
    note: str = ""
    """What the user should know beside how it ended."""
    gpus: tuple[GpuUse, ...] = ()
    cwd: str = ""
    """The folder that it ran in, where that is not the one of its text (a pattern, or a folder that is not there)."""
    gpu_fault: str = ""
    """Of a bad end: which GPUs of the part broke while it ran, and how."""


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attempt on one host."""

    host: str
    slots: int
    state: PartState = PartState.OFFERED
    gpus: tuple[str, ...] = ()
    reserved: tuple[tuple[str, float], ...] = ()
    address: str = ""
    """Where its shepherd listens for the other hosts (``ip:port``), once prepared."""
    attach_address: str = msgspec.field(name="door", default="")
    """Where it listens for the user of an interactive job (``ip port name``)."""
    pid: int = 0
    stopped: bool = False
    """Its agent reported that its processes are stopped."""
    post: int = 0
    """Wait status of the post-execution command."""
    end: End | None = None
    decays: tuple[RusageDecay, ...] = msgspec.field(name="fades", default=())
    roles: tuple[tuple[int, int, int], ...] = ()
    """As in ``Placed``."""
    binds: tuple[Binding, ...] = ()
    node_index: int = msgspec.field(name="seat", default=0)
    """Of a resizable job: its number among all hosts that the attempt ever had; it never changes."""
    grown: bool = False
    """It was added to a running attempt, and has a uid of its own (see ``core.job.resize``)."""
    leaving: bool = False
    """It is leaving: the attempt continues without it."""
    preempted_for: int = msgspec.field(name="lent", default=0)
    """Leaving for this job, which gets its slots."""


class PendingSignal(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A request to a running attempt that is not done yet: a pending signal, checkpoint, requeue …"""

    kind: SignalKind
    at: float
    by: str = ""
    signal: int = 0
    reason: TermReason = TermReason.NONE
    number: int = 0
    """Number of the request in its attempt, so that the agent carries each out once."""
    kill_after: bool = False
    period: int = -1
    """checkpoint: seconds between periodic checkpoints from now on; 0: none, -1: unchanged."""
    state: JobState = JobState.PEND
    """requeue: the state that the job returns to."""
    done: bool = False
    """kill: the job counts as DONE."""
    said: str = ""
    """The reason given with the request (-C)."""
    notice: int = 0
    """Seconds that the job has at most from its warning (``-wa``), or the request of a checkpoint, to its end; 0: none."""
    unless_begun: bool = False
    """requeue: of a job that waits in a chunk; one that has begun meanwhile goes on."""

    @property
    def ends(self) -> bool:
        """Whether the attempt is to end by it."""
        return self.kind in (SignalKind.KILL, SignalKind.REQUEUE, SignalKind.MIGRATE)


class Suspect(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A rank that seems to hang or to hold up the others."""

    rank: int
    host: str
    pid: int
    how: HangState
    since: float = 0.0
    waits: str = ""
    """What its process waits for, as the kernel reports it."""


class Resize(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A change of a running attempt's hosts in progress."""

    number: int
    grow: bool
    parts: tuple[Placed, ...]
    at: float
    command: str = ""
    done: bool = False
    """A shrink that does not wait for the notification command."""


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True, rename={"pending_signals": "wishes", "next_signal": "next_wish"}):
    """One run of a job. It ends only when every part is GONE or FENCED."""

    number: int
    uid: str
    dispatched: float
    parts: tuple[Part, ...]
    started: float = 0.0
    """When the process of the first part started; 0.0: not yet."""
    pending_signals: tuple[PendingSignal, ...] = ()
    next_signal: int = 1
    verdict: End | None = None
    """How the job ended, once its first part (or a failing part) has ended."""
    refused: str = ""
    """Why a host refused to start it: the job returns to PEND once every part is over."""
    refused_code: str = ""
    cwd: str = ""
    paused: float = 0.0
    """Seconds that it has been suspended so far."""
    checkpoint: int = -1
    """Generation of the newest complete checkpoint of the job; -1: none."""
    way: int = 0
    """Number of the alternative of its requirement that it was placed by."""
    alone: tuple[str, ...] = ()
    """Hosts without a part of it that no other job may use meanwhile (cu[excl])."""
    suspects: tuple[Suspect, ...] = ()
    """Ranks that seem to hang, by the last samples."""
    tasks: tuple[TaskRun, ...] = ()
    """Of a job with roles: all its tasks by rank."""
    judged: bool = False
    """The ends of its tasks have decided the verdict: the parts are to finish."""
    leave: bool = False
    """Tasks that still run then continue, and the attempt ends with the last of them."""
    again: str = ""
    """Why the whole job starts again once this attempt is over."""
    limits: Limits | None = None
    """Its limits if they were changed while it ran, or its run limit is its own; None: those of its spec."""
    soft_limit: int = 0
    """EXTENDABLE_RUNLIMIT: seconds to which it is extended; 0: BASE; -1: it is not extended, and ``limits`` says when it ends."""
    forced: bool = False
    """brun -f: neither a run window nor load suspends it."""
    signalled: int = 0
    """The last signal that somebody asked for (bkill -s)."""
    amended: tuple[tuple[str, str], ...] = ()
    """Output files and mail changed by bmod while it ran: (field of JobText, value)."""
    elastic: bool = False
    """Hosts may be added and removed while it runs."""
    next_node_index: int = msgspec.field(name="seats", default=0)
    """Of a resizable job: node index of the next host that is added."""
    resize: Resize | None = None
    resizes: int = 0
    wanted: tuple[int, int] | None = None
    """(minimum, maximum) of slots in all requested with bresize; None: it grows by itself if the job is autoresizable."""
    command: str | None = None
    """Notification command of that request."""
    grow_after: float = 0.0
    """No growth before this time, as the last one failed."""
    lease: float = 0.0
    """Seconds that it may live on without news from the master, as they were at its dispatch; 0.0: it has no lease."""
    spent: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Seconds of slots and GPUs beyond (what it has now) x (time since its start), and CPU seconds of hosts that left."""
    gpus_left: GpuSums | None = None
    """What was used of the GPUs of hosts that left; how long they were held is in ``spent``."""
    chunk: str = ""
    """The chunk that it was dispatched in; "": none."""
    ahead: tuple[int, ...] = ()
    """Of the job of a chunk that has its slot: the keys of those before it in their order, and of those to which it may pass."""
    copying: int = -1
    """The generation whose parts all of its hosts copy to the shared folder (``bsub -k "DIR stage"``); -1: none yet."""
    queue: str = ""
    """Where bswitch has moved it since: the queue whose requirement it was placed by, and still reserves for."""
    exceptions: tuple[str, ...] = ()
    """Those of which administrators have been told (``overrun``, ``idle``)."""

    @property
    def is_ending(self) -> bool:
        """Whether it was asked to end: killed, requeued or migrated."""
        return any(pending.ends for pending in self.pending_signals)


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a finished job ended."""

    at: float
    status: int = 0
    reason: TermReason = TermReason.NONE
    why: str = ""
    """One line for the user where the status is not enough (first failing rank and host, lost host)."""
    post: int = 0
    """Wait status of the post-execution command."""


class Job(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A separate job, or an element that differs from its untouched siblings."""

    key: int
    spec: int
    name: str
    submitted: float
    state: JobState = JobState.PEND
    since: float = 0.0
    """When it entered this state."""
    attempt: int = 0
    """Number of the newest attempt; 0: never dispatched."""
    run: Attempt | None = None
    position: float = 0.0
    """Rank among the jobs of its queue given by btop (negative) or bbot (positive)."""
    queue_time: float = msgspec.field(name="stand", default=0.0)
    """The submission time by which it is queued after its user's btop or bbot; 0: its own."""
    stopper: str = ""
    """Who suspended or held it last; "": the system."""
    remarks: tuple[str, str] = ("", "")
    """The reasons given with the last bstop -C and bresume -C."""
    reason: int = 0
    """Pend reason by its own history (requeued, resumed by user …); 0: none."""
    checkpoint: int = -1
    """Checkpoint generation to restart from; -1: from the beginning."""
    checkpoints: Checkpoints | None = None
    avoid: tuple[str, ...] = ()
    """Hosts not to use at the next dispatch."""
    barred: tuple[str, ...] = ()
    barred_at: tuple[float, ...] = ()
    """Hosts on which it must not start again, as it ended there with an exit code of EXCLUDE(…), and when it did."""
    failures: int = 0
    failed_why: str = ""
    """Starts in a row that failed before the command ran, and why the last of them did."""
    not_before: float = 0.0
    """Earliest next dispatch after such a failure."""
    requeues: int = 0
    """Number of requeues by REQUEUE_EXIT_VALUES."""
    before: JobState = JobState.RUN
    """In UNKWN or ZOMBI: the state before its host fell silent."""
    preempted_for: int = msgspec.field(name="lent", default=0)
    """Key of the job that it was preempted for: others may use its slots until it resumes; 0: it was not preempted."""
    preempted_for_good: bool = msgspec.field(name="lent_all", default=False)
    """Preempted by requeue, migration or kill: it gives up all that it has, once it is gone."""
    promised: tuple[Placed, ...] = ()
    """The parts held for it while it waits, until the jobs preempted for it are gone."""
    preempted: int = 0
    """How often it was preempted."""
    preempted_time: float = 0.0
    """Seconds for which preemption has suspended it; without those of a suspension that goes on."""
    deadlocked: bool = False
    """It is in a deadlock: it holds slots that others wait for, and waits for theirs (GANG=N)."""
    outcome: Outcome | None = None
    depend: Depend | None = None
    blocked: int = 0
    """State of its dependency condition: MET, BLOCKED or NEVER."""
    messages: tuple[Message, ...] = ()
    retries: int = 0
    """Of a job with roles: how often tasks, or all of it, were started again."""
    began: float = 0.0
    """When it first started, where its policy asks for it (time_limit); 0.0: it has not."""
    retried: float = 0.0
    """Time of the last restart, and why."""
    retried_why: str = ""
    gpus_before: GpuSums | None = None
    """What its earlier attempts held and used of GPUs."""


class Array(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job array: untouched elements are kept as ranges; every other live element is a ``Job`` of its own."""

    job: int
    spec: int
    name: str
    spec_text: str
    """Name with the index list, as given; ``name`` has none."""
    submitted: float
    indices: Ranges
    pending: Ranges
    held: Ranges
    """Untouched elements in PSUSP."""
    limit: int = 0
    """``%n``: how many elements may run at a time; 0: no limit."""
    done: int = 0
    exited: int = 0
    position: float = 0.0
    depend: Depend | None = None
    waiting: Ranges = EMPTY
    """Untouched elements whose condition is not met."""
    never: Ranges = EMPTY
    """Elements of ``waiting`` whose condition can never be met."""
    messages: tuple[Message, ...] = ()
    queue_time: float = msgspec.field(name="stand", default=0.0)
    stopper: str = ""
    """Who held untouched elements of it last."""
    restart: int = -1
    """Checkpoint generation that untouched elements start from (brestart of an element); -1: none."""
    retries: int = 0
    """Restarts of all its elements, where its policy counts them together (array_backoff)."""
    well: Ranges = EMPTY
    """Elements that have ended as DONE, where its policy asks which (array_success)."""
    failed: Ranges = EMPTY
    """Elements that have failed, and that nobody has ended, where its policy counts them (array_failures)."""
    began: float = 0.0
    """When its first element started, where its policy asks for it (time_limit); 0.0: none has."""

    @property
    def startable(self) -> Ranges:
        """Untouched elements that are neither held nor wait for a condition."""
        return self.pending.minus(self.waiting) if self.waiting else self.pending

    def starts(self, index: int) -> bool:
        """Whether this one is startable."""
        return index in self.pending and index not in self.waiting

    @property
    def may_start(self) -> bool:
        """Whether any is startable."""
        return not self.pending.is_within(self.waiting) if self.waiting else bool(self.pending)
