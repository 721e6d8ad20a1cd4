"""The configuration as the core and the scheduler use it: queues, hosts, groups and parameters with defaults filled in.

Built from the site's files by ``lavad.configure``; one ``Configured`` event carries the whole, so that replicas and a replay
decide with the very same values.
"""

from __future__ import annotations

import msgspec

from lavad.core.spec import Limits


class Thresholds(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Load thresholds: index name to value, for dispatch (sched) and for suspending (stop)."""

    sched: tuple[tuple[str, float], ...] = ()
    stop: tuple[tuple[str, float], ...] = ()


class QueueConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """One queue of lsb.queues; None is unlimited."""

    name: str
    description: str = ""
    priority: int = 1
    nice: int = 0
    users: tuple[str, ...] = ("all",)
    hosts: tuple[str, ...] = ("all",)
    admins: tuple[str, ...] = ()
    max_slots: int | None = None
    user_limit: int | None = None
    processor_limit: float | None = None
    host_limit: int | None = None
    min_slots: int = 1
    default_slots: int = 1
    job_max_slots: int | None = None
    limits: Limits = Limits()
    """The most a job may ask for."""
    defaults: Limits = Limits()
    """What a job gets that asks for nothing."""
    resreq: str = ""
    gpu: str = ""
    exclusive: bool = False
    interactive: str = "yes"
    """``yes``, ``no`` or ``only``."""
    rerunnable: bool = False
    checkpoint: str = ""
    run_window: str = ""
    dispatch_window: str = ""
    pre_exec: str = ""
    post_exec: str = ""
    job_starter: str = ""
    requeue_exit_values: str = ""
    thresholds: Thresholds = Thresholds()
    stop_cond: str = ""
    resume_cond: str = ""
    backfill: bool = False
    slot_reserve: int = 0
    preemption: str = ""
    fairshare: str = ""
    job_accept_interval: int | None = None
    new_job_delay: int = 0
    lease: float | None = None
    host_timeout: float | None = None
    job_controls: str = ""
    terminate_when: str = ""
    migrate_after: int | None = None


class HostConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """One host of lsf.cluster and lsb.hosts."""

    name: str
    slots: int | None = None
    """MXJ; None: as many as it has CPUs; -1: unlimited."""
    user_limit: int | None = None
    server: bool = True
    type: str = ""
    model: str = ""
    resources: tuple[tuple[str, str], ...] = ()
    """Static boolean ("name", ""), numeric and string resources."""
    dispatch_window: str = ""
    run_window: str = ""
    thresholds: Thresholds = Thresholds()
    submit: bool = True


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


class Params(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of lsb.params and lsf.conf that change what is decided. Times in seconds."""

    default_queues: tuple[str, ...] = ("normal",)
    default_project: str = "default"
    max_jobid: int = 999_999
    max_array: int = 1000
    clean_period: int = 3600
    terminate_interval: int = 10
    max_user_priority: int | None = None
    abs_runlimit: bool = False
    parallel_by_slot: bool = False
    unit_kb: int = 1
    """LSF_UNIT_FOR_LIMITS in KB."""
    unit_name: str = "KB"
    enforce: tuple[str, ...] = ()
    """LSB_RESOURCE_ENFORCE."""
    job_memlimit: bool = False
    sequential_signal: bool = False
    root_jobs: bool = False
    parse_script: bool = False
    stdout_direct: bool = False
    run_warning: int = 600
    """Seconds between SIGUSR2 at the run limit and the kill."""
    host_timeout: float = 60.0
    lease: float = 600.0
    margin: float = 30.0
    pend_level: int = 0
    short_hostlist: bool = False
    hpc_allocation: bool = False
    mod_all_jobs: bool = False
    rusage_per_task: bool = False
    max_pend_jobs: int | None = None
    bjobs_format: str = ""
    submit_hosts: tuple[str, ...] = ()


class LimitConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Limit section of lsb.resources."""

    name: str
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    per_user: bool = False
    hosts: tuple[str, ...] = ()
    per_host: bool = False
    projects: tuple[str, ...] = ()
    slots: int | None = None
    jobs: int | None = None
    mem: float | None = None
    resources: tuple[tuple[str, float], ...] = ()


class UserConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """Limits of a user or group in lsb.users."""

    name: str
    max_slots: int | None = None
    processor_limit: float | None = None
    max_pend: int | None = None


class Conf(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole configuration in force."""

    cluster: str = "lava"
    admins: tuple[str, ...] = ()
    params: Params = Params()
    queues: tuple[QueueConf, ...] = (QueueConf(name="normal", priority=30),)
    hosts: tuple[HostConf, ...] = ()
    host_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    user_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    users: tuple[UserConf, ...] = ()
    resources: tuple[ResourceConf, ...] = ()
    limits: tuple[LimitConf, ...] = ()
    models: tuple[tuple[str, float], ...] = ()
    """Model name and CPU factor."""


class QueueAdmin(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What administrators did to a queue."""

    name: str
    open: bool = True
    active: bool = True
    by: str = ""
    comment: str = ""
