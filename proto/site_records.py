"""What programs get from lava in JSON about the cluster: hosts, queues, users; as ``proto/records.py`` has it of jobs."""

from __future__ import annotations

from proto.records import Counts, JobRow, OnHost, Record, Told


class GpuRow(Record, frozen=True):
    """A GPU of a host. Percent, MB, degrees Celsius and W; None where its driver does not tell."""

    index: int
    """On its host."""
    uuid: str
    """As its driver names it."""
    model: str
    """As its driver names it."""
    memory: int
    """MB."""
    used: int | None
    """MB in use."""
    util: int | None
    """Percent in use."""
    temperature: int | None
    """Degrees Celsius."""
    power: float | None
    """W."""
    closed: str
    """Why no job gets it, "" where jobs may."""
    jobs: list[str]
    """Ids of those that have it."""


class HostRow(Record, frozen=True):
    """A host; memory in MB."""

    name: str
    status: str
    """As bhosts has it: ok, closed_Full, closed_Adm, unavail, unreach …"""
    comment: str
    """Why it is closed."""
    slots: int
    used: int
    reserved: int
    mem: float | None
    """Free memory in MB; None: not known."""
    max_mem: int
    """Memory in MB."""
    cpu: float | None
    """Percent."""
    load: float | None
    """r1m."""
    gpus: int
    gpus_used: int
    gpus_closed: int
    """GPUs that no job gets."""
    power: float | None = None
    """W, of its GPUs whose driver tells."""


class HostPage(Record, frozen=True):
    """A page of hosts."""

    hosts: list[HostRow]
    next: str | None


class Bound(Record, frozen=True):
    """Processors of a host that the tasks of a job are bound to."""

    job: str
    cpus: str
    """Those of a task with commas, tasks with spaces between them."""


class Host(Record, frozen=True):
    """One host at length."""

    row: HostRow
    type: str
    """Host type."""
    model: str
    """Host model."""
    cpus: int
    """Processors, as LSF counts them."""
    resources: list[str]
    """Boolean resources."""
    since: float | None
    """Since when its state is as it is."""
    failures: int
    """How often it fell silent."""
    version: str
    """Of lava there."""
    jobs: list[JobRow]
    gpus: list[GpuRow]
    may_change: bool
    bound: list[Bound] = []  # noqa: RUF012 - msgspec copies it
    """Whose which cores are, of jobs that are bound to theirs."""


class Share(Record, frozen=True):
    """A user or group in a share tree, with the sums that its priority follows from."""

    path: str
    """From the root of the tree."""
    shares: int
    priority: float
    slots: int
    reserved: int
    cpu_time: float
    run_time: float
    """Seconds of running, faded."""
    gpu_time: float
    """Seconds of GPUs, faded."""


class QueueRow(Record, frozen=True):
    """A queue; slots by what their jobs do."""

    name: str
    description: str
    priority: int
    status: str
    """As bqueues has it: Open:Active …"""
    pend: int
    run: int
    susp: int
    reserved: int
    limit: int | None
    """Most slots in use."""
    may_change: bool


class Queue(Record, frozen=True):
    """One queue at length."""

    row: QueueRow
    users: list[str]
    hosts: list[str]
    """Hosts; empty: all."""
    run_limit: float | None
    shares: list[Share]
    """Its share tree, level by level; empty: it has no fair share."""


class Queues(Record, frozen=True):
    """All queues, by priority."""

    queues: list[QueueRow]
    """The highest priority first."""


class UserRow(Record, frozen=True):
    """A user who has jobs or limits; slots."""

    name: str
    pend: int
    run: int
    susp: int
    limit: int | None


class Users(Record, frozen=True):
    """All of them."""

    users: list[UserRow]
    """By name."""


class Use(Record, frozen=True):
    """What somebody held and used in a time: slot hours, CPU hours, GPU hours held and used."""

    name: str
    jobs: int
    """How many ended."""
    slot_hours: float
    """Slots times hours."""
    slot_waste_hours: float
    """Of each job what it held without CPU time."""
    cpu_hours: float
    """CPU time."""
    gpu_hours: float
    """GPUs times hours."""
    gpu_used_hours: float
    """The same times their use."""


class UseStep(Record, frozen=True):
    """What jobs that ended in a part of the time held and used."""

    begin: float
    end: float
    rows: list[Use]


class UsePage(Record, frozen=True):
    """Use by user, project or queue."""

    by: str
    """``user``, ``project`` or ``queue``."""
    begin: float
    end: float
    rows: list[Use]
    kept_since: float | None = None
    """Jobs that ended before are no longer kept, and not in it; None: all of the time asked for is."""
    steps: list[UseStep] = []  # noqa: RUF012 - msgspec copies it
    """Equal parts of the time, one after the other, where they were asked for."""


class Reason(Record, frozen=True):
    """Why jobs wait: how many for the same reason."""

    text: str
    jobs: int
    """How many wait for it."""


class Overview(Record, frozen=True):
    """The cluster now."""

    cluster: str
    version: int
    """Number of the newest event: what is the same has not changed."""
    now: float
    counts: Counts
    slots: int
    """Of hosts that are up."""
    used: int
    """Slots in use, of hosts that are up."""
    mem: float
    """MB, of hosts that are up."""
    mem_free: float
    """MB that are free, of hosts that are up."""
    gpus: int
    gpus_used: int
    hosts: list[HostRow]
    """At most 2,000; ``/hosts`` pages all."""
    host_count: int
    """All hosts."""
    hosts_by_status: dict[str, int]
    """How many hosts have which status."""
    reasons: list[Reason]
    """Most jobs first, at most ten."""
    queues: list[QueueRow]
    """The highest priority first."""


class Block(Record, frozen=True):
    """A bar of the chart: what a job has, or is to have, on a host from ``begin`` to ``end``."""

    host: str
    id: str
    """Of the job or reservation."""
    kind: str
    """``past``, ``run``, ``held`` (a waiting job's reserved start) or ``reservation`` (brsvadd)."""
    user: str
    slots: int
    begin: float
    end: float
    open: bool
    """``end`` is not known: nothing says when it ends."""


class Chart(Record, frozen=True):
    """Hosts over time."""

    now: float
    begin: float
    end: float
    hosts: list[OnHost]
    """The hosts of this page, and their slots."""
    blocks: list[Block]
    """The bars."""
    more: bool
    """There were more blocks than are shown."""
    next: str | None


class Notice(Record, frozen=True):
    """Something that is wrong, as ``lava status`` has it."""

    text: str
    """What is wrong."""
    what_to_do: str
    """What helps."""


class Health(Record, frozen=True):
    """The administrator's view."""

    master: str
    """Host of the master."""
    since: float | None
    """Since when it is the master."""
    epoch: int
    """How many masters there were up to this one."""
    is_admin: bool
    notices: list[Notice]
    """The gravest first."""
    recent: list[Told]
    """What happened to hosts, queues and masters, newest first."""


class Me(Record, frozen=True):
    """Who asks."""

    user: str
    cluster: str
    is_admin: bool
    queues: list[str]
    """Queues that the caller may submit to."""
