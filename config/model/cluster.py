"""The typed records of a cluster's configuration; queues and parameters have files of their own.

Rule: frozen, plain values only. Times are seconds, sizes KB, None is "not set".
"""

import msgspec

from config.model.params import Params as Params
from config.model.problems import Problem as Problem
from config.model.queue import Chkpnt as Chkpnt
from config.model.queue import CountLimit as CountLimit
from config.model.queue import JobControl as JobControl
from config.model.queue import LoadThreshold as LoadThreshold
from config.model.queue import Preemption as Preemption
from config.model.queue import QueueConfig as QueueConfig
from config.model.queue import RequeueExit as RequeueExit
from config.model.queue import Share as Share
from config.model.queue import SizeLimit as SizeLimit
from config.model.queue import TimeLimit as TimeLimit

UNLIMITED = 2**31 - 1
"""A slot count without bound (`-` in the MXJ column)."""

DEFAULT_CLUSTER = "lava"


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A host of lsf.cluster.NAME with what lsb.hosts says of it.

    `slots` None is the number of CPUs that the agent reports (`!`, and the default); UNLIMITED is `-`.
    `server` False is a submission host; `batch` False is a server that lsb.hosts leaves out.
    """

    name: str
    model: str = ""
    type: str = ""
    server: bool = True
    batch: bool = True
    slots: int | None = None
    user_job_limit: int | None = None
    dispatch_window: tuple[str, ...] = ()
    run_window: tuple[str, ...] = ()
    thresholds: tuple[LoadThreshold, ...] = ()
    resources: tuple[str, ...] = ()
    mig: int | None = None
    chkpnt: bool = False
    exit_rate: float | None = None
    rexpri: int = 0
    affinity: bool = True


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A host group or user group. `members` may hold groups, `all`, `others`, `~name`, wildcards."""

    name: str
    members: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()
    condensed: bool = False


class PartitionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A HostPartition of lsb.hosts: one share tree for the jobs of all queues on these hosts."""

    name: str
    hosts: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()


class UnitConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A ComputeUnit of lsb.hosts: hosts and groups (the finest type), or units of the next finer type."""

    name: str
    type: str
    members: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()


class UserConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A line of lsb.users' User section; `name` may be `default` or a group (`group@` is each member)."""

    name: str
    max_jobs: int | None = None
    slots_per_processor: float | None = None
    max_pend_jobs: int | None = None
    max_pend_slots: int | None = None
    priority: int | None = None


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


class ApplicationConfig(msgspec.Struct, frozen=True, kw_only=True):
    """An application profile of lsb.applications; None and "" leave the queue's value standing."""

    name: str
    description: str = ""
    cpulimit: TimeLimit = TimeLimit()
    runlimit: TimeLimit = TimeLimit()
    memlimit: SizeLimit = SizeLimit()
    swaplimit: SizeLimit = SizeLimit()
    filelimit: SizeLimit = SizeLimit()
    datalimit: SizeLimit = SizeLimit()
    stacklimit: SizeLimit = SizeLimit()
    corelimit: SizeLimit = SizeLimit()
    processlimit: CountLimit = CountLimit()
    threadlimit: CountLimit = CountLimit()
    tasklimit: CountLimit = CountLimit()
    runtime: TimeLimit = TimeLimit()
    res_req: str = ""
    gpu_req: str = ""
    nice: int | None = None
    rerunnable: bool | None = None
    chkpnt_dir: str = ""
    chkpnt_period: int | None = None
    chkpnt_initperiod: int | None = None
    chkpnt_method: str = ""
    pre_exec: str = ""
    post_exec: str = ""
    host_pre_exec: str = ""
    host_post_exec: str = ""
    job_starter: str = ""
    job_cwd: str = ""
    requeue_exit_values: RequeueExit = RequeueExit()
    success_exit_values: tuple[int, ...] = ()
    job_controls: tuple[JobControl, ...] = ()
    terminate_control: str = ""
    suspend_control: str = ""
    resume_control: str = ""
    job_warning_action: str = ""
    job_action_warning_time: int | None = None
    job_include_postproc: bool | None = None
    job_postproc_timeout: int | None = None
    job_preproc_timeout: int | None = None
    max_job_requeue: int | None = None
    mig: int | None = None
    resizable_jobs: str = "N"
    resize_notify_cmd: str = ""
    djob_resize_grace_period: int | None = None
    use_pam_creds: bool = False


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A Limit section of lsb.resources.

    Who it counts: a plain list (`users`) is counted as one; a `per_` list counts each member apart. What
    it bounds: slots, slots_per_processor, jobs, and `resources` (name, amount; mem, swp, tmp in KB). `percent`
    names those of them that are a percentage of the host's total.
    """

    name: str
    users: tuple[str, ...] = ()
    per_user: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    per_host: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    per_queue: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    per_project: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    per_app: tuple[str, ...] = ()
    slots: int | None = None
    slots_per_processor: float | None = None
    jobs: int | None = None
    resources: tuple[tuple[str, float], ...] = ()
    percent: tuple[str, ...] = ()


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the files of one folder say.

    `default_host` is what a host that no file names gets when its agent registers (`name` is "default"); None: it is
    refused. `lsf` is lsf.conf as it stands.
    """

    name: str = DEFAULT_CLUSTER
    admins: tuple[str, ...] = ()
    params: Params = Params()
    queues: tuple[QueueConfig, ...] = ()
    hosts: tuple[HostConfig, ...] = ()
    default_host: HostConfig | None = None
    host_addresses: tuple[str, ...] = ()
    """LSF_HOST_ADDR_RANGE: where a host that no file names may join from; (): from anywhere."""
    host_groups: tuple[GroupConfig, ...] = ()
    units: tuple[UnitConfig, ...] = ()
    users: tuple[UserConfig, ...] = ()
    user_groups: tuple[GroupConfig, ...] = ()
    resources: tuple[ResourceConfig, ...] = ()
    host_types: tuple[str, ...] = ()
    host_models: tuple[HostModel, ...] = ()
    applications: tuple[ApplicationConfig, ...] = ()
    limits: tuple[Limit, ...] = ()
    rusage_methods: tuple[tuple[str, str], ...] = ()
    """ReservationUsage: resource and task, job or host."""
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
