"""The facts: everything that ever changes a cluster. Only these are stored; ``apply`` folds them.

Every event has ``at`` (seconds since the epoch) and is encoded by msgspec with its class name as tag, so an event of an older
version decodes as long as fields are only added, with defaults.
"""

from __future__ import annotations

from lavad.core.events.base import Event as Event
from lavad.core.events.base import JobEvent as JobEvent
from lavad.core.events.resize import JobGrew as JobGrew
from lavad.core.events.resize import JobResized as JobResized
from lavad.core.events.resize import JobShrank as JobShrank
from lavad.core.events.resize import PartLeft as PartLeft
from lavad.core.events.resize import ResizeAsked as ResizeAsked
from lavad.core.events.site import Configured as Configured
from lavad.core.events.site import GroupDropped as GroupDropped
from lavad.core.events.site import GroupSet as GroupSet
from lavad.core.events.site import HostDown as HostDown
from lavad.core.events.site import HostJoined as HostJoined
from lavad.core.events.site import HostLeft as HostLeft
from lavad.core.events.site import HostSwitched as HostSwitched
from lavad.core.events.site import HostUp as HostUp
from lavad.core.events.site import MasterStarted as MasterStarted
from lavad.core.events.site import QueueSwitched as QueueSwitched
from lavad.core.events.site import ReservationEnded as ReservationEnded
from lavad.core.events.site import ReservationSet as ReservationSet
from lavad.core.events.site import SpecAdded as SpecAdded
from lavad.core.events.task import JobJudged as JobJudged
from lavad.core.events.task import TaskEnded as TaskEnded
from lavad.core.events.task import TaskRetried as TaskRetried
from lavad.core.events.task import TaskStarted as TaskStarted
from lavad.core.job.depend import Depend, Ended
from lavad.core.job.job import Array, End, Job, Message, Placed, Suspect, Wish
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason


class JobSubmitted(JobEvent, frozen=True):
    """A job or (with ``indices``) an array was accepted. ``key`` has no index."""

    spec: int
    name: str
    held: bool = False
    indices: Ranges | None = None
    limit: int = 0
    spec_text: str = ""
    by: str = ""
    restart: int = -1
    """Checkpoint generation to start from (brestart)."""
    depend: Depend | None = None
    ended: tuple[tuple[int, Ended], ...] = ()
    """Jobs that its condition names, with what of them has finished."""


class ElementsHeld(JobEvent, frozen=True):
    """Untouched elements of an array: PEND to PSUSP. ``why``: what bstop -C says."""

    elements: Ranges
    by: str = ""
    why: str = ""


class ElementsReleased(JobEvent, frozen=True):
    """Untouched elements of an array: PSUSP to PEND. ``why``: what bresume -C says."""

    elements: Ranges
    by: str = ""
    why: str = ""


class ElementsKilled(JobEvent, frozen=True):
    """Untouched elements of an array ended before they ever ran."""

    elements: Ranges
    by: str = ""
    reason: TermReason = TermReason.TERM_OWNER


class ElementSplit(JobEvent, frozen=True):
    """An untouched element becomes a job of its own (``key`` has its index), in the state it was in."""


class JobHeld(JobEvent, frozen=True):
    """PEND to PSUSP."""

    by: str = ""
    why: str = ""


class JobReleased(JobEvent, frozen=True):
    """PSUSP to PEND."""

    by: str = ""
    why: str = ""


class JobModified(JobEvent, frozen=True):
    """bmod: another spec and perhaps name; ``changes`` are bhist's lines (what, to what)."""

    spec: int
    name: str
    by: str = ""
    changes: tuple[str, ...] = ()
    limit: int = -1
    reserved: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    """Of a job that runs and reserves other amounts now: host to what it reserves there."""
    depends: bool = False
    """Whether it has another condition now: ``depend``."""
    depend: Depend | None = None
    ended: tuple[tuple[int, Ended], ...] = ()
    amended: tuple[tuple[str, str], ...] = ()
    """Of a job that runs: fields of its text that its first host must know of, as they are now."""


class JobSwitched(JobEvent, frozen=True):
    """bswitch: another queue."""

    spec: int
    queue: str
    by: str = ""


class JobMoved(JobEvent, frozen=True):
    """btop or bbot."""

    position: float
    by: str = ""
    top: bool = True
    place: int = 1
    stand: float = 0.0


class JobDispatched(JobEvent, frozen=True):
    """PEND to RUN: an attempt is offered to its hosts. ``key`` may be an untouched element."""

    attempt: int
    uid: str
    parts: tuple[Placed, ...]
    way: int = 0
    """Which of the alternatives of its requirement it was placed by."""
    alone: tuple[str, ...] = ()
    """Hosts without a part of it that no other job may use meanwhile (cu[excl])."""
    forced: bool = False
    """brun -f: run windows and load do not suspend it."""
    afresh: bool = False
    """brun -b: not from its checkpoint."""


class ReservationFaded(JobEvent, frozen=True):
    """rusage[duration=,decay=]: from now on less is reserved for an attempt than before."""

    attempt: int


class PartPrepared(JobEvent, frozen=True):
    """A host has all in place for its part of a gang."""

    attempt: int
    host: str
    address: str = ""
    door: str = ""
    """Where the user of an interactive job comes in."""


class GangReleased(JobEvent, frozen=True):
    """Every host is prepared: all parts are told to go."""

    attempt: int


class PartStarted(JobEvent, frozen=True):
    """A part runs on its host; of the first part it is the start of the job."""

    attempt: int
    host: str
    pid: int = 0
    started: float = 0.0
    cwd: str = ""


class PartStopped(JobEvent, frozen=True):
    """The processes of a part are stopped (or go on)."""

    attempt: int
    host: str
    stopped: bool


class PartEnded(JobEvent, frozen=True):
    """The job process of a part ended; something of it may still be there."""

    attempt: int
    host: str
    end: End


class PartRefused(JobEvent, frozen=True):
    """A host would not start its part; nothing of it is there."""

    attempt: int
    host: str
    code: str
    why: str


class PartGone(JobEvent, frozen=True):
    """Nothing of a part is left on its host."""

    attempt: int
    host: str
    post: int = 0
    """Wait status of the post-execution command."""


class PartFenced(JobEvent, frozen=True):
    """A silent host's lease and margin have passed: nothing of the part can be left there."""

    attempt: int
    host: str


class JobWished(JobEvent, frozen=True):
    """Something was asked of a running attempt."""

    wish: Wish
    beneficiary: int = 0
    """The job that gets what this one has, as soon as it is gone (preemption by requeue); 0: none."""


class WishGranted(JobEvent, frozen=True):
    """A wish was carried out (or can no longer be)."""

    number: int
    attempt: int
    ok: bool = True
    why: str = ""


class JobSuspended(JobEvent, frozen=True):
    """RUN to USUSP (by a user) or SSUSP (by the system)."""

    state: JobState = JobState.USUSP
    by: str = ""
    why: str = ""
    beneficiary: int = 0
    """The job that gets its slots (preemption); 0: it keeps them."""


class SlotsReserved(JobEvent, frozen=True):
    """What the jobs preempted for a waiting job have is held for it until they are gone. ``key`` may be an untouched element."""

    parts: tuple[Placed, ...]


class JobDeadlocked(JobEvent, frozen=True):
    """It and ``others`` (keys) hold slots and wait for each other's (GANG=N)."""

    others: tuple[int, ...] = ()


class DependencyJudged(JobEvent, frozen=True):
    """The condition of a waiting job, or of untouched elements of an array (None: all), is met, not yet, or can never be."""

    stands: int
    """MET, BLOCKED or NEVER of ``core.job.depend``."""
    elements: Ranges | None = None


class JobRevived(JobEvent, frozen=True):
    """brequeue of a finished job: it waits again. ``array``: of an element whose array had left memory, its last record."""

    job: Job
    array: Array | None = None
    done: bool = False
    """Whether it had ended as DONE."""
    by: str = ""


class MessagePosted(JobEvent, frozen=True):
    """bpost: a message to a job, an array or an element."""

    message: Message


class SlotsReleased(JobEvent, frozen=True):
    """Nothing is held for a waiting job any more."""

    why: str = ""


class JobResumed(JobEvent, frozen=True):
    """USUSP or SSUSP to RUN."""

    by: str = ""
    why: str = ""


class JobLost(JobEvent, frozen=True):
    """A host of the attempt is silent: RUN (or suspended) to UNKWN."""

    host: str


class JobFound(JobEvent, frozen=True):
    """Its silent host speaks again and still has it: UNKWN to what it was."""

    state: JobState


class CheckpointMade(JobEvent, frozen=True):
    """A whole checkpoint of the job is on disk."""

    attempt: int
    generation: int


class RanksSuspected(JobEvent, frozen=True):
    """Ranks of an attempt seem to hang or to hold up the others; none: they no longer do."""

    attempt: int
    suspects: tuple[Suspect, ...] = ()


class JobRequeued(JobEvent, frozen=True):
    """The attempt is over and the job waits again (``state`` PEND or PSUSP)."""

    reason: int = 0
    why: str = ""
    state: JobState = JobState.PEND
    avoid: tuple[str, ...] = ()
    failures: int = 0
    not_before: float = 0.0
    barred: tuple[str, ...] = ()
    """Hosts that it never goes back to (EXCLUDE of REQUEUE_EXIT_VALUES)."""
    end: End | None = None
    top: bool = False
    requeues: int = 0
    """Of an exit value: how often it has happened to the job now."""


class JobFinished(JobEvent, frozen=True):
    """DONE or EXIT: the attempt, if any, is over on every host."""

    state: JobState
    status: int = 0
    reason: TermReason = TermReason.NONE
    why: str = ""
    end: End | None = None
    """The end of the only part, where no PartEnded went before."""
    by: str = ""
    post: int = 0
    """Wait status of the post-execution command."""


AnyEvent = (
    MasterStarted | Configured | SpecAdded | HostJoined | HostUp | HostDown | HostLeft | HostSwitched | QueueSwitched
    | JobSubmitted | ElementsHeld | ElementsReleased | ElementsKilled | ElementSplit | JobHeld | JobReleased
    | JobModified | JobSwitched | JobMoved | JobDispatched | PartPrepared | GangReleased | PartStarted | PartStopped
    | PartEnded | PartRefused | PartGone | PartFenced | JobWished | WishGranted | JobSuspended | JobResumed
    | JobLost | JobFound | CheckpointMade | JobRequeued | JobFinished | SlotsReserved | SlotsReleased
    | DependencyJudged | MessagePosted | GroupSet | GroupDropped | JobRevived | ReservationFaded
    | RanksSuspected
    | TaskStarted | TaskEnded | TaskRetried | JobJudged
    | JobGrew | JobShrank | JobResized | PartLeft | ResizeAsked
    | ReservationSet | ReservationEnded | JobDeadlocked
)  # fmt: skip
