"""The configuration as the core and the scheduler use it: queues, hosts, groups and parameters with defaults filled in.

Queues, profiles, hosts and limits are the records of ``config.model``; ``lavad.configure.resolve`` makes it. One ``Configured``
event carries the whole, so that replicas and a replay decide with the very same values.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from config.model.cluster import HostConfig, Limit, UserConfig
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import FairShare, Shares


class ResourceConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """A resource of lsf.shared."""

    name: str
    kind: str = "boolean"
    """``boolean``, ``numeric`` or ``string``."""
    increasing: bool = True
    interval: int = 0
    consumable: bool = False
    description: str = ""
    locations: tuple[tuple[float, tuple[str, ...]], ...] = ()
    """Shared instances: amount and the hosts that share it."""


class UnitConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compute unit: a rack, a switch …; its hosts are those of the host group of its name."""

    name: str
    type: str


class Params(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of lsb.params and lsf.conf that change what is decided. Times in seconds."""

    default_queues: tuple[str, ...] = ("normal",)
    default_project: str = "default"
    max_jobid: int = 999_999
    max_array: int = 1000
    clean_period: int = 3600
    terminate_interval: int = 10
    max_user_priority: int | None = None
    priority_growth: tuple[int, int] | None = None
    """JOB_PRIORITY_OVER_TIME: (steps, seconds)."""
    abs_runlimit: bool = False
    parallel_by_slot: bool = False
    unit_kb: int = 1
    """LSF_UNIT_FOR_LIMITS in KB."""
    unit_name: str = "KB"
    resreq_unit_mb: float = 1.0
    """What a plain amount of memory in a -R counts in: LSF_UNIT_FOR_LIMITS, MB where a site does not set it."""
    enforce: tuple[str, ...] = ()
    """LSB_RESOURCE_ENFORCE."""
    job_memlimit: bool = False
    root_jobs: bool = False
    parse_script: bool = False
    stdout_direct: bool = False
    run_warning: int = 600
    """Seconds between SIGUSR2 at the run limit and the kill."""
    host_timeout: float = 60.0
    mail_to: str = ""
    """LSB_MAILTO."""
    dynamic_timeout: float = 0.0
    """LSF_DYNAMIC_HOST_TIMEOUT: how long a silent host that no file names stays; 0: for good."""
    open_hosts: bool = False
    """Whether hosts that no file names may join."""
    host_addresses: tuple[str, ...] = ()
    """LSF_HOST_ADDR_RANGE: where those may join from; (): from anywhere."""
    lease: float = 600.0
    margin: float = 30.0
    pend_level: int = 0
    short_hostlist: bool = False
    hpc_allocation: bool = False
    mod_all_jobs: bool = False
    rusage_per_task: bool = False
    rusage_methods: tuple[tuple[str, str], ...] = ()
    """ReservationUsage of lsb.resources: resource and what rusage[] of it is for: task, job or host."""
    user_group_admins: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """GROUP_ADMIN of lsb.users: they control the jobs of the group's members."""
    host_group_admins: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """GROUP_ADMIN and ADMINS of lsb.hosts: they open and close the group's hosts."""
    whole_groups: tuple[str, ...] = ()
    """Host groups whose members are all hosts: bmgroup says so instead of naming each."""
    time_windows: tuple[str, ...] = ()
    """When one of these opens or closes, the site's files say something else (``#if time(…)``)."""
    max_pend_jobs: int | None = None
    sleep: int = 60
    """MBD_SLEEP_TIME: what JOB_ACCEPT_INTERVAL and MAX_RESERVE_TIME count."""
    accept_interval: int = 0
    """JOB_ACCEPT_INTERVAL in periods of ``sleep``."""
    preempt_exclusive: bool = False
    """PREEMPT_JOBTYPE=EXCLUSIVE: exclusive jobs preempt and are preempted."""
    backfill: str = "easy"
    """``easy``: the first job that waits with a reservation is promised a start; ``conservative``: all of them are."""
    bjobs_format: str = ""
    default_app: str = ""
    dep_last_sub: bool = False
    """JOB_DEP_LAST_SUB: a name in a dependency condition means the newest job of that name."""
    submit_hosts: tuple[str, ...] = ()
    record_days: float = 1.0
    """For how long what plans were decided on is kept; 0: it is not recorded."""
    default_host_spec: str = ""
    default_group: str = ""
    """DEFAULT_JOBGROUP."""
    default_user_group: str = ""
    default_cwd: str = ""
    default_outdir: str = ""
    positions_by_admin: bool = False
    """JOB_POSITION_CONTROL_BY_ADMIN: btop and bbot are for administrators."""
    max_messages: int = 128
    """MAX_JOB_MSG_NUM: numbers of messages to a job."""
    pre_timeout: int = 0
    """JOB_PREPROC_TIMEOUT in seconds, 0: none."""
    post_timeout: int = 0
    include_post: bool = False
    """JOB_INCLUDE_POSTPROC: a job runs until its post-execution command has ended."""
    user_resume: bool = False
    """ENABLE_USER_RESUME: users resume their own jobs that somebody else suspended."""
    group_clean: bool = False
    """JOB_GROUP_CLEAN: groups that only jobs made go with their last job."""
    consistent_exit: bool = False
    """LSB_BJOBS_CONSISTENT_EXIT_CODE."""
    architectures: tuple[tuple[str, str], ...] = ()
    """Host model and the architectures that lsf.shared gives it."""
    detect_idle_job_after: int = 1200
    """Seconds that a job must have run to be taken for idle."""
    pack_weights: tuple[tuple[str, float], ...] = ()
    """What slots, mem and gpus count in order[binpack]; 1 if not named."""
    unit_types: tuple[str, ...] = ()
    """COMPUTE_UNIT_TYPES, the finest first."""
    unit_type: str = ""
    """The one that cu[] means where it names none."""
    units: tuple[UnitConf, ...] = ()
    """The ComputeUnit sections of lsb.hosts."""

    def rusage_per(self, name: str, own: str) -> str:
        """What an amount of rusage[] is for: what it says itself, else as its resource has it, "" for the default."""
        return own or dict(self.rusage_methods).get(name, "") or ("task" if self.rusage_per_task else "")


class PartitionConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """A HostPartition of lsb.hosts: one share tree for the jobs of all queues on its hosts."""

    name: str
    hosts: tuple[str, ...] = ()
    share: FairShare = FairShare()


class Conf(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """The whole configuration in force."""

    cluster: str = "lava"
    admins: tuple[str, ...] = ()
    params: Params = Params()
    queues: tuple[QueueConfig, ...] = (QueueConfig(name="normal", priority=30),)
    hosts: tuple[HostConfig, ...] = ()
    host_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    user_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    group_shares: tuple[tuple[str, Shares], ...] = ()
    """User group to the shares of its members (USER_SHARES of lsb.users)."""
    partitions: tuple[PartitionConf, ...] = ()
    users: tuple[UserConfig, ...] = ()
    resources: tuple[ResourceConf, ...] = ()
    limits: tuple[Limit, ...] = ()
    apps: tuple[ApplicationConfig, ...] = ()
    models: tuple[tuple[str, float], ...] = ()
    """Model name and CPU factor."""
    site_params: tuple[tuple[str, str], ...] = ()
    """lsb.params as it stands: names and values, for ``bparams``."""

    @cached_property
    def app_conf(self) -> dict[str, ApplicationConfig]:
        """Application profiles by name."""
        return {app.name: app for app in self.apps}


class QueueAdmin(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What administrators did to a queue."""

    name: str
    open: bool = True
    active: bool = True
    by: str = ""
    comment: str = ""
