"""What is exchanged with agents and is no record of the core: greetings, heartbeats, questions about output, orders to start."""

from __future__ import annotations

import msgspec

from lavad.core.job.spec import JobText, Spec
from lavad.core.plan.volatile import GpuState, PartUsage
from lavad.core.rules.run_settings import RunSettings
from lavad.core.site.host import Facts


class PartStatus(msgspec.Struct, frozen=True, gc=False):
    """A part that a host has, or whose end it does not know to be committed. ``state``: the agent's word for where it is."""

    key: int
    attempt: int
    uid: str
    state: str


class Hello(msgspec.Struct, frozen=True):
    """An agent's greeting: the master that it obeyed last, the highest start order that it has seen, and all that it has."""

    host: str
    incarnation: str
    epoch: int
    sequence: int
    facts: Facts
    parts: tuple[PartStatus, ...]
    protocol: int = 0
    """Of proto/version.py; 0: the side is older than the exchange of numbers."""
    gpus_unknown: bool = False
    """That ``facts`` has no GPUs says nothing: their driver does not answer."""
    unpacks: bool = False
    """It reads what an order says packed."""


class Welcome(msgspec.Struct, frozen=True):
    """The answer to a greeting; ``heartbeat`` and ``sample`` are periods in seconds."""

    epoch: int
    incarnation: str
    heartbeat: float
    sample: float
    cluster: str
    protocol: int
    copies_key: bytes = b""
    """Of this host, where it holds copies of checkpoints: its key, its certificate, and with what lavad signs tokens for it."""
    copies_cert: bytes = b""
    copies_secret: bytes = b""
    restored: float = 0.0
    """Not 0: the store was restored from a backup, made at that time, of the store that the agent obeyed."""


class Heartbeat(msgspec.Struct, frozen=True):
    """``sent``: on the agent's own clock; ``load``: load index to value; ``health``: what is wrong with the host."""

    sent: float
    load: dict[str, float]
    usage: tuple[PartUsage, ...]
    health: str = ""
    gpus: tuple[GpuState, ...] = ()
    gpu_error: str = ""
    """What is wrong with the driver of its GPUs."""


class Peek(msgspec.Struct, frozen=True, kw_only=True):
    """A question for a piece of a job's output: at most ``limit`` bytes from ``offset``, read as ``user``.

    Without ``path`` it is the output of the live attempt ``uid``, or its standard error.
    """

    id: int = 0
    key: int
    uid: str
    user: str
    path: str = ""
    offset: int = 0
    limit: int = 0
    stderr: bool = False


class PeekData(msgspec.Struct, frozen=True):
    """The answer: ``size`` is that of the whole file, ``error`` one line in place of data."""

    id: int
    data: bytes
    size: int
    error: str


class KillOrder(msgspec.Struct, frozen=True, gc=False):
    """End all of a part. ``leaves``: the job goes on without this host; SIGKILL follows SIGTERM after ``grace`` seconds."""

    key: int
    attempt: int
    uid: str
    leaves: bool = False
    grace: float = 0.0
    why: str = ""
    """What befell another host of the job."""
    status: int = 0
    """The job's wait status then."""


class Holder(msgspec.Struct, frozen=True):
    """A host that holds copies of a job's checkpoints, and what opens it to this job."""

    host: str
    address: str
    port: int
    print: str
    """SHA-256 of its certificate."""
    token: str
    generations: tuple[int, ...] = ()
    """Those that it has been given."""


class Copies(msgspec.Struct, frozen=True):
    """Of which jobs a host holds copies of checkpoints: ``USER/JOB``."""

    jobs: tuple[str, ...]


class WorkFolders(msgspec.Struct, frozen=True):
    """Jobs whose working folders a host made and may have to remove."""

    jobs: tuple[int, ...]


class StartOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order to start a part, or to prepare it (``two_phase``)."""

    key: int
    attempt: int
    uid: str
    sequence: int
    """Counts the start orders of a host; its starter refuses one that is not after the last."""
    text: int
    """The number under which the job's text was sent on this stream."""
    two_phase: bool
    place: int
    """Which of the attempt's hosts this one is."""
    expires: float
    """Seconds since the epoch after which the order is not to be obeyed."""
    lease: float
    """Seconds for which the part may run without news of the master, 0: for ever."""
    restart: int
    """Generation of the checkpoint to restart from, -1: none."""
    go_back: bool = False
    """Generations above it are set aside."""
    restart_count: int
    name: str
    token: str
    chunk: str = ""
    """Its chunk, of whose jobs one runs at a time; "": it is in none."""
    key_pem: bytes = b""
    cert_pem: bytes = b""
    holders: tuple[Holder, ...] = ()
    """Hosts that have copies of its checkpoints."""


class TextOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is equal for a job's parts, and for the elements of an array, but for its environment; ``id``: its number there."""

    id: int
    job: int
    name: str
    submitted: float
    spec: Spec
    text: JobText
    settings: RunSettings
    array_end: int = 0
    """LSB_JOBINDEX_END and LSB_JOBINDEX_STEP; 0 for a job that is no array."""
    array_step: int = 0
