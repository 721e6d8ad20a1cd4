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
    psusp: int = 0
    run: int = 0
    ssusp: int = 0
    ususp: int = 0
    unknown: int = 0
    done: int = 0
    exit: int = 0


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
    queue: str
    project: str
    state: str
    """LSF's: PEND, PSUSP, RUN, USUSP, SSUSP, DONE, EXIT, UNKWN, ZOMBI; of an array what most of its elements do."""
    slots: int
    gpus: int
    hosts: list[OnHost]
    """At most the first eight."""
    host_count: int
    submitted: float
    started: float | None
    ended: float | None
    run_limit: float | None
    exit_code: int | None
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
    pid: int
    cpu: float
    mem: int
    state: str
    gpu_util: int
    gpu_mem: int
    """MB."""


class JobPart(Record, frozen=True):
    """A job on one of its hosts."""

    host: str
    slots: int
    state: str
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


class Told(Record, frozen=True):
    """A line of a job's story."""

    at: float
    text: str


class Sample(Record, frozen=True):
    """What a job used at a time: CPUs in use, memory, and the mean use of its GPUs in percent (-1: it has none)."""

    at: float
    cpus: float
    mem: int
    gpu: float


class Job(Record, frozen=True):
    """One job at length."""

    row: JobRow
    command: str
    cwd: str
    output: str
    error: str
    input: str
    resreq: str
    dependency: str
    description: str
    application: str
    group: str
    user_group: str
    from_host: str
    mem_limit: int | None
    parts: list[JobPart]
    reasons: list[str]
    """Why it waits or is suspended, most important first."""
    story: list[Told]
    seconds: dict[str, int]
    """Seconds in each state."""
    cpu_time: float
    max_mem: int
    cpu_efficiency: float | None
    """Percent of its slots; None before it was measured."""
    mem_efficiency: float | None
    """Percent of the memory that it reserves."""
    samples: list[Sample]
    may_change: bool
    """Whether the caller may kill, stop or change it."""


class Change(Record, frozen=True):
    """A change that would start a job now."""

    text: str


class Why(Record, frozen=True):
    """Why a job waits, the smallest changes that would start it now, and when it may start."""

    id: str
    state: str
    reasons: list[str]
    position: int | None
    """Its place in its queue, from 1; None: it is not in line."""
    waiting: int | None
    """Jobs in that line."""
    starts_now: bool
    changes: list[Change]
    soonest: float | None
    latest: float | None


class Elements(Record, frozen=True):
    """The elements of an array as runs: (first index, last index, state)."""

    id: str
    name: str
    user: str
    queue: str
    limit: int
    counts: Counts
    runs: list[tuple[int, int, str]]


class Happened(Record, frozen=True):
    """An event of a job, host or queue. ``state``: the job's after it, "" of others."""

    version: int
    at: float
    kind: str
    """``JobSubmitted``, ``JobDispatched``, ``JobFinished``, ``HostUp`` …"""
    id: str = ""
    user: str = ""
    queue: str = ""
    host: str = ""
    state: str = ""


class News(Record, frozen=True):
    """What has happened since the last news: at most 200 events, and how many more there were."""

    version: int
    events: list[Happened]
    more: int = 0
