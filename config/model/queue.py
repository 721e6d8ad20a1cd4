"""The record of one queue of lsb.queues, and the small records that its values are made of.

Rule: a field is the parameter's name in lower case; its default is LSF's.
"""

import msgspec


class TimeLimit(msgspec.Struct, frozen=True):
    """`[default] maximum`, seconds; normalised by the CPU factor of `host_spec` where one is named."""

    default: int | None = None
    maximum: int | None = None
    host_spec: str = ""


class SizeLimit(msgspec.Struct, frozen=True):
    """`[default] maximum`, KB."""

    default: int | None = None
    maximum: int | None = None


class CountLimit(msgspec.Struct, frozen=True):
    """`[minimum [default]] maximum`, or `[default] maximum` for PROCESSLIMIT and THREADLIMIT."""

    minimum: int | None = None
    default: int | None = None
    maximum: int | None = None


class LoadThreshold(msgspec.Struct, frozen=True):
    """`r1m = 0.7/2.0`: no job starts beyond `sched`, jobs are suspended beyond `stop`."""

    index: str
    sched: float | None = None
    stop: float | None = None


class Chkpnt(msgspec.Struct, frozen=True):
    """`period` in seconds; None: only when asked."""

    dir: str
    period: int | None = None


class Share(msgspec.Struct, frozen=True):
    """`[name, shares]`; name may be a user, a group, `group@`, `default` or `others`."""

    name: str
    shares: int


class Aps(msgspec.Struct, frozen=True):
    """APS_PRIORITY: (factor, number); grace periods in seconds."""

    weights: tuple[tuple[str, float], ...]
    limits: tuple[tuple[str, float], ...] = ()
    graces: tuple[tuple[str, float], ...] = ()


class Preemption(msgspec.Struct, frozen=True):
    """`preempts` and `preempted_by` name queues (with `+n` preferences); empty with True means any."""

    preemptive: bool = False
    preemptable: bool = False
    preempts: tuple[str, ...] = ()
    preempted_by: tuple[str, ...] = ()


class RequeueExit(msgspec.Struct, frozen=True):
    """REQUEUE_EXIT_VALUES: `all` but `never`, or `values`; `excluding` also avoids the host of the failure."""

    all: bool = False
    values: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    excluding: tuple[int, ...] = ()


class JobControl(msgspec.Struct, frozen=True):
    """`action` is SUSPEND, RESUME or TERMINATE; `what` a signal's name, CHKPNT, or a command."""

    action: str
    what: str


class QueueConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A queue. Limits None are unlimited; windows are checked texts (`config.text.units.window` parses them)."""

    name: str
    description: str = ""
    priority: int = 1
    nice: int = 0
    administrators: tuple[str, ...] = ()
    users: tuple[str, ...] = ("all",)
    hosts: tuple[str, ...] = ("all",)

    qjob_limit: int | None = None
    ujob_limit: int | None = None
    pjob_limit: float | None = None
    hjob_limit: int | None = None
    run_window: tuple[str, ...] = ()
    dispatch_window: tuple[str, ...] = ()
    new_job_sched_delay: int = 0
    job_accept_interval: int | None = None
    dispatch_by_queue: bool = False

    runlimit: TimeLimit = TimeLimit()
    cpulimit: TimeLimit = TimeLimit()
    memlimit: SizeLimit = SizeLimit()
    swaplimit: SizeLimit = SizeLimit()
    filelimit: SizeLimit = SizeLimit()
    datalimit: SizeLimit = SizeLimit()
    stacklimit: SizeLimit = SizeLimit()
    corelimit: SizeLimit = SizeLimit()
    processlimit: CountLimit = CountLimit()
    threadlimit: CountLimit = CountLimit()
    tasklimit: CountLimit = CountLimit()
    hostlimit_per_job: int | None = None
    default_host_spec: str = ""

    res_req: str = ""
    gpu_req: str = ""
    thresholds: tuple[LoadThreshold, ...] = ()
    stop_cond: str = ""
    resume_cond: str = ""
    mig: int | None = None

    exclusive: bool = False
    interactive: str = "YES"
    rerunnable: bool = False
    chkpnt: Chkpnt | None = None
    pre_exec: str = ""
    post_exec: str = ""
    host_pre_exec: str = ""
    host_post_exec: str = ""
    pre_post_exec_user: str = ""
    job_starter: str = ""
    requeue_exit_values: RequeueExit = RequeueExit()
    max_job_requeue: int | None = None
    local_max_preexec_retry: int | None = None
    local_max_preexec_retry_action: str = ""
    success_exit_values: tuple[int, ...] = ()
    job_controls: tuple[JobControl, ...] = ()
    terminate_when: tuple[str, ...] = ()
    job_warning_action: str = ""
    job_action_warning_time: int | None = None

    job_overrun: int | None = None
    job_underrun: int | None = None
    job_idle: float | None = None

    fairshare: tuple[Share, ...] = ()
    hist_hours: float | None = None
    cpu_time_factor: float | None = None
    run_time_factor: float | None = None
    run_job_factor: float | None = None
    gpu_run_time_factor: float | None = None
    committed_run_time_factor: float | None = None
    enable_hist_run_time: bool | None = None
    enable_gpu_hist_run_time: bool | None = None
    run_time_decay: bool | None = None
    fairshare_queues: tuple[str, ...] = ()
    queue_group: tuple[str, ...] = ()
    dispatch_order: str = ""
    """`QUEUE` or nothing."""
    round_robin_policy: bool = False
    dominant_resources: tuple[str, ...] = ()
    """lava's own: fair share by the dominant share of these (slots, mem, gpus)."""
    aps_priority: Aps | None = None
    preemption: Preemption = Preemption()
    preempt_delay: int | None = None
    no_preempt_interval: int | None = None
    no_preempt_run_time: int | None = None
    """Seconds, or minus percent of the run limit; as the next one."""
    no_preempt_finish_time: int | None = None
    max_job_preempt: int | None = None
    scheduler: str = ""
    """lava's own: fcfs, fair, gang, shortest, smallest, largest, or the file of a site's own policy."""
    gang: bool = True
    """lava's own; False: a job takes its slots one by one as they come."""
    weight: int | None = None
    """lava's own, after Volcano: its part of the slots, in proportion; with `capability` (at most), `guarantee` (always)."""
    capability: int | None = None
    guarantee: int = 0
    reclaimable: bool = True
    slot_reserve: int | None = None
    """MAX_RESERVE_TIME: how many MBD_SLEEP_TIME periods slots are held for a big job."""
    resource_reserve: int | None = None
    backfill: bool = False
    ignore_deadline: bool = False
    impt_jobbklg: int | None = None
    max_rsched_time: int | None = None
    jobs_per_sched_cycle: int | None = None

    lease: int | None = None
    """Seconds; None: LAVA_LEASE."""
    lease_margin: int | None = None
    host_timeout: int | None = None
