"""What programs get from lava in JSON: the records of the query ``api``, which the page and REST pass on.

OpenAPI is made of them.
Times are seconds since the epoch, durations seconds, sizes of memory KB unless a field says else; None is "not known" or "none".
Rule: fields are only added, as programs read them.
"""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all."""


class Counts(Record, frozen=True):
    """Elements or jobs by state."""

    pend: int = 0
    """Waiting."""
    psusp: int = 0
    """Held before they started."""
    run: int = 0
    """Running."""
    ssusp: int = 0
    """Suspended by the system."""
    ususp: int = 0
    """Suspended by a user."""
    unknown: int = 0
    """On hosts that are silent."""
    done: int = 0
    """Ended with 0."""
    exit: int = 0
    """Failed or killed."""


class OnHost(Record, frozen=True):
    """What a job has on a host."""

    host: str
    slots: int


class JobRow(Record, frozen=True):
    """A job, an element of an array, or (``kind`` is ``array``) an array with its elements by state."""

    id: str
    """``123`` or ``123[4]``."""
    kind: str
    """``job``, ``element`` or ``array``."""
    name: str
    user: str
    """Its owner."""
    queue: str
    project: str
    state: str
    """LSF's: PEND, PSUSP, RUN, USUSP, SSUSP, DONE, EXIT, UNKWN, ZOMBI; of an array what most of its elements do."""
    slots: int
    gpus: int
    """GPUs that it asked for, or has; of all its hosts."""
    hosts: list[OnHost]
    """At most the first eight."""
    host_count: int
    """How many hosts it has."""
    submitted: float
    """When it was submitted."""
    started: float | None
    """When it started; None: it has not."""
    ended: float | None
    """When it ended; None: it has not."""
    run_limit: float | None
    exit_code: int | None
    """128 and the number of the signal where one ended it; None: it has not ended, or well."""
    why: str
    """Why it waits, is suspended or ended; "" where there is nothing to say."""
    elements: Counts | None
    """Of an array."""


class JobPage(Record, frozen=True):
    """A page of jobs. ``next`` is the cursor of the page after it, None on the last."""

    jobs: list[JobRow]
    next: str | None


class Task(Record, frozen=True):
    """A process tree of a job on a host; rank -1 is the job's own process."""

    rank: int
    """Of MPI and roles; -1: the job's own process."""
    pid: int
    """On its host."""
    cpu: float
    mem: int
    state: str
    """Of the process, as ps has it (R, S, D …), or how it ended."""
    gpu_util: int
    """Percent of its GPUs."""
    gpu_mem: int
    """MB."""


class JobPart(Record, frozen=True):
    """A job on one of its hosts."""

    host: str
    slots: int
    state: str
    """Of this part: STARTING, RUNNING, GONE …"""
    gpus: list[str]
    """``0``, ``1``: indices on the host, or UUIDs where the host no longer has them."""
    cpus: str
    """Processors that its tasks are bound to, "" where they are not."""
    reserved_mem: float | None
    """MB."""
    cpu: float
    mem: int
    max_mem: int
    tasks: list[Task]
    """Its process trees, where they are known."""


class Told(Record, frozen=True):
    """A line of a job's story."""

    at: float
    text: str


class Sample(Record, frozen=True):
    """What a job used at a time: CPUs in use, memory, and the mean use of its GPUs in percent (-1: it has none)."""

    at: float
    cpus: float
    """CPUs in use."""
    mem: int
    gpu: float
    """Mean use of its GPUs in percent; -1: it has none."""


class Job(Record, frozen=True):
    """One job at length."""

    row: JobRow
    command: str
    """The command, or the whole script."""
    cwd: str
    output: str
    """File of -o."""
    error: str
    """File of -e."""
    input: str
    """File of -i."""
    resreq: str
    """Requirement (-R)."""
    dependency: str
    """Condition (-w)."""
    description: str
    application: str
    """Application profile (-app)."""
    group: str
    """Job group (-g)."""
    user_group: str
    """User group (-G)."""
    from_host: str
    """Where it was submitted."""
    mem_limit: int | None
    """Memory limit (-M); None: there is none."""
    parts: list[JobPart]
    """What it has on each of its hosts."""
    reasons: list[str]
    """Why it waits or is suspended, most important first."""
    story: list[Told]
    """What happened to it, oldest first."""
    seconds: dict[str, int]
    """Seconds in each state."""
    cpu_time: float
    max_mem: int
    cpu_efficiency: float | None
    """Percent of its slots; None before it was measured."""
    mem_efficiency: float | None
    """Percent of the memory that it reserves."""
    samples: list[Sample]
    """What it used over time, while it runs."""
    may_change: bool
    """Whether the caller may kill, stop or change it."""


class Change(Record, frozen=True):
    """A change that would start a job now."""

    text: str
    """The change in words, with the option that makes it."""


class Why(Record, frozen=True):
    """Why a job waits, the smallest changes that would start it now, and when it may start."""

    id: str
    state: str
    reasons: list[str]
    """Most important first."""
    position: int | None
    """Its place in its queue, from 1; None: it is not in line."""
    waiting: int | None
    """Jobs in that line."""
    starts_now: bool
    """Nothing keeps it: it starts with the next cycle."""
    changes: list[Change]
    """Smallest first."""
    soonest: float | None
    """When it may start at the earliest; None: not known."""
    latest: float | None
    """When it will have started, by the run limits of those before it; None: not known."""


class Elements(Record, frozen=True):
    """The elements of an array as runs: (first index, last index, state)."""

    id: str
    name: str
    user: str
    queue: str
    limit: int
    counts: Counts
    runs: list[tuple[int, int, str]]
    """First index, last index, state."""


class Happened(Record, frozen=True):
    """An event of a job, host or queue. ``state``: the job's after it, "" of others."""

    version: int
    """Number of the event."""
    at: float
    kind: str
    """``JobSubmitted``, ``JobDispatched``, ``JobFinished``, ``HostUp`` …"""
    id: str = ""
    """Of the job; empty of others."""
    user: str = ""
    queue: str = ""
    host: str = ""
    state: str = ""


class News(Record, frozen=True):
    """What has happened since the last news: at most 200 events, and how many more there were."""

    version: int
    events: list[Happened]
    """Oldest first."""
    more: int = 0
    """How many more there were."""
