"""What is known for the moment only: load, usage and pend reasons. Never stored; rebuilt within a heartbeat or a cycle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event, HostLeft, JobRequeued, PartLeft
from lavad.core.job.gpu_use import GpuUse

_FORGOTTEN = frozenset((JobRequeued, PartLeft, HostLeft))
"""Events after which something is forgotten."""
SPARE_REASONS = 1000
"""Reasons of specs that the cluster no longer has which may be kept."""


class TaskUsage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One process tree of a part (a rank, or rank -1: the job process). Times in seconds, memory in KB, ``gpu_mem`` in MB."""

    rank: int
    pid: int
    cpu: float = 0.0
    rss: int = 0
    pss: int = 0
    threads: int = 0
    processes: int = 1
    state: str = "R"
    gpu_mem: int = 0
    gpu_util: int = 0
    wait_pid: int = 0
    """Of an idle or stopped rank: the process that was looked at."""
    waits: str = ""


class GpuState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How a GPU is now. Use in percent, memory in MB, power in W, PCIe traffic in MB/s; what its driver does not tell is -1."""

    uuid: str
    util: int = -1
    mem_util: int = -1
    mem_used: int = -1
    temperature: int = -1
    power: float = -1.0
    ecc: int = -1
    """Uncorrected errors since the driver was loaded."""
    pstate: int = -1
    mode: str = ""
    """The compute mode: DEFAULT, EXCLUSIVE_PROCESS, PROHIBITED."""
    pcie_sent: float = -1.0
    pcie_received: float = -1.0
    error: str = ""
    """What is wrong with it, "" if nothing is."""
    cause: str = ""
    """Of what kind that is: ``core.decide.report.gpus.Cause``."""

    @property
    def gb_used(self) -> int:
        """Whole GB of memory in use, 0 where that is not known: placement compares no finer, so that noise decides nothing."""
        return max(0, self.mem_used // 1024)


class PartUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a part uses on its host now, and its peaks. Times in seconds, memory in KB."""

    key: int
    attempt: int
    at: float
    cpu: float = 0.0
    rss: int = 0
    pss: int = 0
    swap: int = 0
    threads: int = 0
    max_mem: int = 0
    max_swap: int = 0
    avg_mem: int = 0
    pids: tuple[int, ...] = ()
    pgids: tuple[int, ...] = ()
    tasks: tuple[TaskUsage, ...] = ()
    cpu_peak: float = 0.0
    """The most CPUs that it used at a time, and when, in seconds after its start."""
    cpu_peak_after: float = 0.0
    gpus: tuple[GpuUse, ...] = ()


class WhyClass(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a class of jobs waits: (pend reason, number of hosts, a few host names) most important first."""

    reasons: tuple[tuple[int, int, tuple[str, ...]], ...]
    at: float = 0.0


class ReservedStart(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A slot reservation as users see it: when and where a waiting job is to start at the latest, and what is held for it now."""

    start: float
    """0.0: unknown, as jobs without a run limit are in its way."""
    hosts: tuple[tuple[str, int], ...]
    """Host and slots."""
    held: tuple[tuple[str, int], ...] = ()


class Soft:
    """The soft state, in the master and in each replica."""

    def __init__(self) -> None:
        self.load: dict[str, dict[str, float]] = {}
        """Host to load index to value (r15s r1m r15m ut pg io ls it tmp swp mem, and the site's)."""
        self.gpus: dict[str, dict[str, GpuState]] = {}
        """Host to the UUID of a GPU to its state."""
        self.gpu_errors: dict[str, str] = {}
        """Host to what is wrong with its GPU driver."""
        self.hosts_left = 0
        """How often a host has left, so that what was known of it was dropped."""
        self.usage: dict[int, dict[str, PartUsage]] = {}
        """Job key to host to usage."""
        self.why: dict[int, WhyClass] = {}
        """Spec number to why its jobs wait."""
        self.why_job: dict[int, int] = {}
        """Job key to a pend reason of its own."""
        self.promises: dict[int, ReservedStart] = {}
        """Waiting job to the start that its slot reservation promises."""
        self.notices: tuple[str, ...] = ()
        """What administrators should know: certificates that end soon, agents that are refused."""


class SoftUpdate(msgspec.Struct, omit_defaults=True, tag=True):
    """News for replicas about soft state."""

    load: dict[str, dict[str, float]] = {}
    gpus: dict[str, tuple[GpuState, ...]] = {}
    gpu_errors: dict[str, str] = {}
    usage: list[tuple[str, PartUsage]] = []
    why: dict[int, WhyClass] | None = None
    why_job: dict[int, int] | None = None
    promises: dict[int, ReservedStart] | None = None
    notices: tuple[str, ...] | None = None


def update(soft: Soft, news: SoftUpdate) -> None:
    """Fold news into the soft state; ``why`` replaces what was known of its classes, ``why_job`` all."""
    soft.load.update(news.load)
    for host, states in news.gpus.items():
        soft.gpus[host] = {state.uuid: state for state in states}
    for host, error in news.gpu_errors.items():
        soft.gpu_errors[host] = error
    for host, usage in news.usage:
        soft.usage.setdefault(usage.key, {})[host] = usage
    if news.why is not None:
        soft.why.update(news.why)
    if news.why_job is not None:
        soft.why_job = news.why_job
    if news.promises is not None:
        soft.promises = news.promises
    if news.notices is not None:
        soft.notices = news.notices


def joined(news: Sequence[SoftUpdate]) -> SoftUpdate:
    """One update that says all that these say, in their order."""
    if len(news) == 1:
        return news[0]
    whole = SoftUpdate()
    for one in news:
        whole.load.update(one.load)
        whole.gpus.update(one.gpus)
        whole.gpu_errors.update(one.gpu_errors)
        whole.usage += one.usage
        if one.why is not None:
            whole.why = {**(whole.why or {}), **one.why}
        whole.why_job = whole.why_job if one.why_job is None else one.why_job
        whole.promises = whole.promises if one.promises is None else one.promises
        whole.notices = whole.notices if one.notices is None else one.notices
    return whole


def all_of(soft: Soft) -> SoftUpdate:
    """The news that make a new replica know all."""
    return SoftUpdate(
        load=soft.load,
        gpus={host: tuple(states.values()) for host, states in soft.gpus.items()},
        gpu_errors=soft.gpu_errors,
        usage=[(host, use) for hosts in soft.usage.values() for host, use in hosts.items()],
        why=soft.why,
        why_job=soft.why_job,
        promises=soft.promises,
        notices=soft.notices,
    )


def forget(soft: Soft, cluster: Cluster, events: Collection[Event], finished: Iterable[int]) -> None:
    """After a commit: drop the usage of jobs that ended or wait again and of hosts that left their jobs, the load of hosts that
    left and, from time to time, the reasons of specs that the cluster no longer has.
    """
    for event in () if _FORGOTTEN.isdisjoint(map(type, events)) else events:
        if isinstance(event, JobRequeued):
            soft.usage.pop(event.key, None)
        elif isinstance(event, PartLeft):
            soft.usage.get(event.key, {}).pop(event.host, None)
        elif isinstance(event, HostLeft):
            for known in (soft.load, soft.gpus, soft.gpu_errors):
                known.pop(event.host, None)
            soft.hosts_left += 1
    for key in finished:
        soft.usage.pop(key, None)
    specs = cluster.specs.rows
    if len(soft.why) > 2 * len(specs) + SPARE_REASONS:
        # a spec that was dropped never comes back under its number
        soft.why = {number: why for number, why in soft.why.items() if number in specs}


def of_live_parts(cluster: Cluster, host: str, samples: Iterable[PartUsage]) -> list[tuple[str, PartUsage]]:
    """The samples of attempts that are on the host; a sample that comes after the end of its job would stay for ever."""
    use = cluster.use.hosts.get(host)
    here = () if use is None else use.jobs
    rows = cluster.jobs.rows
    return [
        (host, sample)
        for sample in samples
        if sample.key in here and (run := rows[sample.key].run) is not None and run.number == sample.attempt
    ]
