"""One queue of lsb.queues as the core and the scheduler use it, and the small records that it is made of."""

from __future__ import annotations

import msgspec

from lavad.core.job.spec import Limits


class Thresholds(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Load thresholds: index name to value, for dispatch (sched) and for suspending (stop)."""

    sched: tuple[tuple[str, float], ...] = ()
    stop: tuple[tuple[str, float], ...] = ()


Shares = tuple[tuple[str, int], ...]
"""USER_SHARES: user, group, ``group@``, ``default`` or ``others``, and its shares."""


class ShareConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the jobs of a queue share out what there is; what lsb.queues leaves open is filled in from lsb.params."""

    shares: Shares = ()
    queues: tuple[str, ...] = ()
    """FAIRSHARE_QUEUES (or QUEUE_GROUP): the other queues that this policy rules."""
    by_queue: bool = False
    """DISPATCH_ORDER=QUEUE: queue priority goes before the users' priority."""
    hist_hours: float = 5.0
    cpu_factor: float = 0.7
    run_factor: float = 0.7
    job_factor: float = 3.0
    gpu_factor: float = 0.0
    committed_factor: float = 0.0
    hist_run: bool = False
    """ENABLE_HIST_RUN_TIME: run time of finished jobs counts."""
    hist_gpu: bool = False
    run_decay: bool = False
    """RUN_TIME_DECAY: run time of running jobs decays as well."""
    dominant: tuple[str, ...] = ()
    """DOMINANT_RESOURCES: the priority is by the dominant share of these (slots, mem, gpus)."""
    turns: bool = False
    """ROUND_ROBIN_POLICY: users take turns."""


class ApsConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """APS_PRIORITY: (factor or subfactor, number) of each kind; grace periods in seconds."""

    weights: tuple[tuple[str, float], ...] = ()
    limits: tuple[tuple[str, float], ...] = ()
    graces: tuple[tuple[str, float], ...] = ()


class ExceptionConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a job is told apart as an exception (JOB_OVERRUN and its kin). Times in seconds; None: never."""

    overrun: int | None = None
    underrun: int | None = None
    idle: float | None = None
    """CPU time over run time below which a job is idle."""
    idle_after: int = 1200
    """DETECT_IDLE_JOB_AFTER."""


class Spared(msgspec.Struct, frozen=True, omit_defaults=True):
    """When jobs of a queue are not preempted. Times in seconds, or minus a percentage of the run limit."""

    ran: int = 0
    """NO_PREEMPT_RUN_TIME: they have run for so long; 0: it does not matter."""
    ends: int = 0
    """NO_PREEMPT_FINISH_TIME: they end so soon."""
    interval: int = 0
    """NO_PREEMPT_INTERVAL: they started or went on so lately."""
    most: int | None = None
    """MAX_JOB_PREEMPT: they have been preempted so often."""
    delay: int = 0
    """PREEMPT_DELAY: its own jobs preempt others only when they have waited for so long."""


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
    host_pre_exec: str = ""
    """HOST_PRE_EXEC: run on each host of a job, before all else."""
    host_post_exec: str = ""
    job_starter: str = ""
    requeue_exit_values: str = ""
    thresholds: Thresholds = Thresholds()
    stop_cond: str = ""
    resume_cond: str = ""
    backfill: bool = False
    slot_reserve: int = 0
    """For how many periods of ``Params.sleep`` free slots are held for its first job that does not fit; 0: none are."""
    resource_reserve: int = 0
    """The same of slots, memory and other resources."""
    ignore_deadline: bool = False
    """IGNORE_DEADLINE: a job starts even if its run limit ends after the run window does."""
    preemption: str = ""
    spared: Spared = Spared()
    scheduler: str = ""
    """A policy of ``sched.order.policy``: shortest, smallest, largest, or the file of a site's own."""
    gang: bool = True
    """GANG=N: a job takes its slots one by one as they come, and starts when it has all."""
    weight: int | None = None
    """Its part of the slots, in proportion (``ownership``); None: 1, where another queue has one or a guarantee."""
    capability: int | None = None
    """The most slots that it may have."""
    guarantee: int = 0
    """Slots that are kept for it even when it asks for none."""
    reclaimable: bool = True
    fairshare: str = ""
    share: ShareConf | None = None
    aps: ApsConf | None = None
    job_accept_interval: int | None = None
    new_job_delay: int = 0
    lease: float | None = None
    host_timeout: float | None = None
    job_controls: str = ""
    terminate_when: str = ""
    migrate_after: int | None = None
    limit_host: str = ""
    """DEFAULT_HOST_SPEC: the host or model that time limits without one are given for."""
    hosts_a_job: int | None = None
    """HOSTLIMIT_PER_JOB."""
    success_exit_values: str = ""
    max_requeue: int | None = None
    """MAX_JOB_REQUEUE: how often an exit value may make a job wait again."""
    max_preexec: int | None = None
    """LOCAL_MAX_PREEXEC_RETRY: after so many failures of its pre-execution command in a row a job is held."""
    preexec_exit: bool = False
    """LOCAL_MAX_PREEXEC_RETRY_ACTION=EXIT: it ends instead."""
    pre_post_user: str = ""
    """PRE_POST_EXEC_USER."""
    warn_before: int | None = None
    """JOB_ACTION_WARNING_TIME in seconds."""
    warning_action: str = ""
    """JOB_WARNING_ACTION."""
    exceptions: ExceptionConf | None = None
