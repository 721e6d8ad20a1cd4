"""The typed records of a cluster's configuration; queues and parameters have files of their own.

Rule: frozen, plain values only. Times are seconds, sizes KB, None is "not set".
"""

import msgspec

from config.model.guarantees import Pool, ServiceClass
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.site_params import SiteParams
from config.model.values import Shares, Thresholds

UNLIMITED = -1
"""A slot count without bound (`-` in the MXJ column)."""

DEFAULT_CLUSTER = "lava"

GPU_RESOURCES = ("ngpus", "ngpus_physical", "ngpus_shared", "ngpus_excl_p", "gmem")
"""What a limit of lsb.resources may say of GPUs; gmem is the memory that jobs reserve on all their GPUs, in MB."""


class HostConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """A host of lsf.cluster.NAME with what lsb.hosts says of it.

    `slots` None is the number of CPUs that the agent reports (`!`, and the default); UNLIMITED is `-`.
    `server` False is a submission host; `batch` False is a server that lsb.hosts leaves out. In force, a host that runs no
    jobs has `server` False and no slots.
    """

    name: str
    slots: int | None = None
    user_job_limit: int | None = None
    """JL/U."""
    server: bool = True
    batch: bool = True
    type: str = ""
    model: str = ""
    resources: tuple[tuple[str, str], ...] = ()
    """Static boolean ("name", ""), numeric and string resources."""
    dispatch_window: str = ""
    run_window: str = ""
    thresholds: Thresholds = Thresholds()
    mig: int | None = None
    """Migration threshold in seconds."""
    exit_rate: float | None = None
    """EXIT_RATE: how many jobs may end badly within JOB_EXIT_RATE_DURATION; None: GLOBAL_EXIT_RATE."""
    affinity: bool = True
    """Whether jobs with affinity[] may run here."""


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A host group or user group. `members` may hold groups, `all`, `others`, `~name`, wildcards."""

    name: str
    members: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    shares: Shares = ()


class PartitionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A HostPartition of lsb.hosts: one share tree for the jobs of all queues on these hosts."""

    name: str
    hosts: tuple[str, ...] = ()
    shares: Shares = ()


class UnitConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A ComputeUnit of lsb.hosts: hosts and groups (the finest type), or units of the next finer type."""

    name: str
    type: str
    members: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()


class UserConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of lsb.users' User section; `name` may be `default` or a group (`group@` is each member)."""

    name: str
    max_jobs: int | None = None
    slots_per_processor: float | None = None
    max_pend_jobs: int | None = None
    max_pend_slots: int | None = None


class ResourceInstance(msgspec.Struct, frozen=True, kw_only=True):
    """One `value@[hosts]` of a ResourceMap. `per_host` is `[default]`: each host has its own."""

    value: str | None
    hosts: tuple[str, ...] = ()
    per_host: bool = False


class ResourceConfig(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str = "Boolean"
    interval: int | None = None
    increasing: bool | None = None
    consumable: bool = True
    release: bool = True
    description: str = ""
    instances: tuple[ResourceInstance, ...] = ()


class HostModel(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    cpu_factor: float = 1.0
    architectures: tuple[str, ...] = ()


class Limit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Limit section of lsb.resources.

    Whom it counts: a list is counted as one, or each member apart where `per_user` and its kin say so.
    """

    name: str
    queues: tuple[str, ...] = ()
    per_queue: bool = False
    users: tuple[str, ...] = ()
    per_user: bool = False
    hosts: tuple[str, ...] = ()
    per_host: bool = False
    projects: tuple[str, ...] = ()
    per_project: bool = False
    apps: tuple[str, ...] = ()
    per_app: bool = False
    slots: int | None = None
    slots_per_processor: float | None = None
    """Slots a CPU of each host."""
    jobs: int | None = None
    mem: float | None = None
    """MB, as rusage[] has it."""
    resources: tuple[tuple[str, float], ...] = ()
    """Others and their amounts; swp and tmp in MB."""
    percent: tuple[str, ...] = ()
    """Those of `mem` and `resources` that are a percentage of what each host has."""


class ElimRules(msgspec.Struct, frozen=True):
    """How elims are run: ELIMARGS, LSF_ELIM_BLOCKTIME (s; 0: none), LSF_ELIM_DEBUG and LSF_ELIM_RESTARTS (None: no limit)."""

    args: tuple[str, ...] = ()
    block_time: int = 0
    debug: bool = False
    restarts: int | None = None


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the files of one folder say.

    `default_host` is what a host that no file names gets when its agent registers (`name` is "default"); None: it is
    refused. `lsf` is lsf.conf as it stands.
    """

    name: str = DEFAULT_CLUSTER
    admins: tuple[str, ...] = ()
    params: SiteParams = SiteParams()
    queues: tuple[QueueConfig, ...] = ()
    hosts: tuple[HostConfig, ...] = ()
    default_host: HostConfig | None = None
    host_addresses: tuple[str, ...] = ()
    """LSF_HOST_ADDR_RANGE: where a host that no file names may join from; (): from anywhere."""
    elim: ElimRules = ElimRules()
    host_groups: tuple[GroupConfig, ...] = ()
    units: tuple[UnitConfig, ...] = ()
    users: tuple[UserConfig, ...] = ()
    user_groups: tuple[GroupConfig, ...] = ()
    resources: tuple[ResourceConfig, ...] = ()
    host_models: tuple[HostModel, ...] = ()
    applications: tuple[ApplicationConfig, ...] = ()
    limits: tuple[Limit, ...] = ()
    rusage_methods: tuple[tuple[str, str], ...] = ()
    """ReservationUsage: resource and task, job or host."""
    service_classes: tuple[ServiceClass, ...] = ()
    pools: tuple[Pool, ...] = ()
    partitions: tuple[PartitionConfig, ...] = ()
    lsf: dict[str, str] = {}
    lsb_params: tuple[tuple[str, str], ...] = ()
    """lsb.params as it stands."""
    confdir: str = ""
    time_windows: tuple[str, ...] = ()
    """What `#if time(…)` asks about: when one of them opens or closes, the files are to be read again."""

    def queue(self, name: str) -> QueueConfig | None:
        return next((queue for queue in self.queues if queue.name == name), None)

    def default_queues(self) -> tuple[str, ...]:
        """DEFAULT_QUEUE, or LSF's way without one: the queue `normal` or `default`, else the first."""
        if self.params.default_queue:
            return self.params.default_queue
        names = [queue.name for queue in self.queues]
        return next(((name,) for name in ("normal", "default") if name in names), tuple(names[:1]))
