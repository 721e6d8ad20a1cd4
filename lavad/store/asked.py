"""What may be asked of the store about finished jobs, and the answers: records that are made without it.

Rule: nothing of the database is imported here, so that a process that has read nothing yet need not load it.
"""

from __future__ import annotations

import msgspec

from lavad.core.job.checkpoints import CheckpointSums
from lavad.core.job.gpu_use import GpuSums
from lavad.core.lang.states import JobState

Window = tuple[float, float]


class Find(msgspec.Struct, frozen=True):
    """Filters on finished jobs; None: does not apply."""

    keys: tuple[int, ...] | None = None
    """A key without an index names the job, or every element of the array."""
    user: str | None = None
    queue: str | None = None
    project: str | None = None
    since: float | None = None
    """Finished at this time or later."""
    done_since: float | None = None
    """Those that are DONE at this time or later."""
    until: float | None = None
    """Finished before this time."""
    name: str | None = None
    """Job name, ``*`` for any text; an array's name finds its elements."""
    limit: int | None = None
    newest_first: bool = False
    """Else by job id and index."""


class Mark(msgspec.Struct, gc=False):
    """The columns of a finished job that are needed for counts; its record is not read."""

    key: int
    spec: int
    state: JobState = JobState.PEND


class Asked(msgspec.Struct, frozen=True):
    """Filters on finished jobs; empty ones do not apply."""

    users: tuple[str, ...] = ()
    but_users: tuple[str, ...] = ()
    """None of these."""
    queues: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    keys: tuple[int, ...] = ()
    """A key without an index names the job, or every element of the array."""
    names: tuple[str, ...] = ()
    states: tuple[JobState, ...] = ()
    completed: Window | None = None
    submitted: Window | None = None
    dispatched: Window | None = None


class Sums(msgspec.Struct):
    """Of the jobs asked for: how many, and (sum, maximum, minimum, mean) in seconds, or as ratios."""

    done: int = 0
    exited: int = 0
    cpu: tuple[float, ...] = (0.0,) * 4
    wait: tuple[float, ...] = (0.0,) * 4
    turnaround: tuple[float, ...] = (0.0,) * 4
    run: tuple[float, ...] = (0.0,) * 4
    hog: tuple[float, ...] = (0.0,) * 4
    expansion: tuple[float, ...] = (0.0,) * 4
    begin: float = 0.0
    """When the first of them ended."""
    end: float = 0.0
    gpus: GpuSums = GpuSums()
    checkpoints: CheckpointSums = CheckpointSums()


class Share(msgspec.Struct, frozen=True):
    """What the jobs of a user in a project and a queue held and used; times in seconds."""

    user: str
    project: str
    queue: str
    jobs: int
    slots: float
    cpu: float
    gpu_jobs: int
    gpus: GpuSums
    checkpoints: CheckpointSums = CheckpointSums()
    exited: int = 0
    wait: float = 0.0
    """Of all jobs together, from their submission to their dispatch, or their end where they never started."""
    longest_wait: float = 0.0
    first: float = 0.0
    """When the first of them ended."""
    slots_wasted: float = 0.0
    """Of each job what it held without CPU time; one that used more CPUs than it had slots takes nothing from that of others."""


class Wasteful(msgspec.Struct, frozen=True):
    """A finished job with what it held and did not use: seconds of slots, or of GPUs."""

    key: int
    user: str
    project: str
    queue: str
    name: str
    held: float
    wasted: float
