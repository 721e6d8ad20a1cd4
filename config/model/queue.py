"""One queue of lsb.queues and one application profile of lsb.applications, as readers, scheduler and listings use them.

Rule: a field is the parameter's name in lower case; its default is LSF's. RUNLIMIT to THREADLIMIT are `defaults` and `limits`.
Windows are checked texts. A queue in force has its gaps filled from lsb.params (``lavad.configure.resolve``).
"""

import msgspec

from config.model.container import Container
from config.model.values import (
    Aps,
    Chkpnt,
    ExtendableRunlimit,
    FairShare,
    Interactive,
    JobAction,
    JobControl,
    Limits,
    Preemption,
    RequeueExit,
    Resizable,
    Shares,
    TaskLimit,
    TerminateWhen,
    Thresholds,
)


class JobProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters that lsb.queues and lsb.applications have in common."""

    name: str
    description: str = ""
    limits: Limits = Limits()
    """The most a job may ask for."""
    defaults: Limits = Limits()
    """What a job gets that asks for nothing."""
    default_host_spec: str = ""
    """The host or model that time limits without one are given for: DEFAULT_HOST_SPEC (of a queue), else that of RUNLIMIT or
    CPULIMIT."""
    tasklimit: TaskLimit = TaskLimit()
    res_req: str = ""
    gpu_req: str = ""
    chkpnt: Chkpnt | None = None
    pre_exec: str = ""
    post_exec: str = ""
    host_pre_exec: str = ""
    """Run on each host of a job, before all else."""
    host_post_exec: str = ""
    job_starter: str = ""
    requeue_exit_values: RequeueExit = RequeueExit()
    success_exit_values: tuple[int, ...] = ()
    max_job_requeue: int | None = None
    """How often an exit value may make a job wait again."""
    local_max_preexec_retry: int | None = None
    """After so many failures of its pre-execution command in a row a job is held."""
    local_max_preexec_retry_action: str = ""
    """`EXIT`: it ends instead."""
    mig: int | None = None
    """Migration threshold in seconds."""
    job_controls: tuple[JobControl, ...] = ()
    job_warning_action: str = ""
    job_action_warning_time: int | None = None
    container: Container | None = None
    """In which its jobs run."""
    chunk_job_size: int | None = None
    """The most jobs that are dispatched together, to run one after the other in one slot."""

    preempt_delay: int | None = None
    """Its jobs preempt others only when they have waited for so long."""
    no_preempt_interval: int | None = None
    """Its jobs are left alone when they started or were resumed less than so long ago."""
    no_preempt_run_time: int | None = None
    """They have run for so long: seconds, or minus percent of the run limit."""
    no_preempt_finish_time: int | None = None
    """They end so soon: seconds, or minus percent of the run limit."""
    max_job_preempt: int | None = None
    """They have been preempted so often."""
    max_total_time_preempt: int | None = None
    """They have been suspended by preemption for so many seconds in all."""
    estimated_runtime: int | None = None
    """Seconds that its jobs are taken to run, where they do not say (-We)."""
    job_size_list: tuple[int, ...] = ()
    """The numbers of slots that a job may ask for, first that of one that does not say; (): any."""
    pend_time_limit: int = 0
    """Seconds that its jobs should wait at most (-ptl); 0: not said."""
    eligible_pend_time_limit: int = 0
    """The same of the time in which they could start (-eptl)."""
    extendable_runlimit: ExtendableRunlimit | None = None

    def control(self, action: JobAction) -> str:
        """What JOB_CONTROLS says for an action, "" where it does not name it."""
        return next((control.what for control in self.job_controls if control.action is action), "")


class QueueConfig(JobProfile, frozen=True, omit_defaults=True):
    """A queue. Limits None are unlimited."""

    priority: int = 1
    nice: int = 0
    administrators: tuple[str, ...] = ()
    users: tuple[str, ...] = ("all",)
    hosts: tuple[str, ...] = ("all",)

    qjob_limit: int | None = None
    ujob_limit: int | None = None
    pjob_limit: float | None = None
    hjob_limit: int | None = None
    hostlimit_per_job: int | None = None
    run_window: str = ""
    dispatch_window: str = ""
    new_job_sched_delay: int = 0
    job_accept_interval: int | None = None

    thresholds: Thresholds = Thresholds()
    stop_cond: str = ""
    resume_cond: str = ""

    exclusive: bool = False
    interactive: Interactive = Interactive.YES
    rerunnable: bool = False
    pre_post_exec_user: str = ""
    terminate_when: tuple[TerminateWhen, ...] = ()

    job_overrun: int | None = None
    job_underrun: int | None = None
    job_idle: float | None = None
    """CPU time over run time below which a job is idle."""

    fairshare: Shares = ()
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
    share: FairShare | None = None
    """Of a queue in force: the policy that the parameters above and lsb.params make, in whose place it stands; None: first
    come, first served."""
    aps_priority: Aps | None = None

    preemption: Preemption = Preemption()

    scheduler: str = ""
    """lava's own: fcfs, fair, gang, shortest, smallest, largest, or the file of a site's own policy; in force, one of the last
    four or "" (``sched.order.policy``)."""
    gang: bool = True
    """lava's own; False: a job takes its slots one by one as they come, and starts when it has all."""
    weight: int | None = None
    """lava's own, after Volcano: its part of the slots, in proportion; None: 1, where another queue has one or a guarantee."""
    capability: int | None = None
    """The most slots that it may have."""
    guarantee: int = 0
    """Slots that are kept for it even when it asks for none."""
    gpu_weight: int | None = None
    """The same three of GPUs: `WEIGHT = slots:2 gpus:3`; a plain WEIGHT is of both, the others are of slots."""
    gpu_capability: int | None = None
    gpu_guarantee: int = 0
    reclaimable: bool = True
    sla_guarantees_ignore: bool = False
    """Its jobs take what is guaranteed to service classes, and may preempt jobs of these."""
    slot_reserve: int = 0
    """MAX_RESERVE_TIME: for how many periods of MBD_SLEEP_TIME free slots are held for its first job that does not fit; 0:
    none are; FOR_EVER: as long as it takes."""
    resource_reserve: int = 0
    """The same of slots, memory and other resources."""
    backfill: bool = False
    interruptible_backfill: int = 0
    """Its jobs may start in what is held for others if that is theirs for so many seconds, and end with it; 0: they do not."""
    resrsv_limit: tuple[tuple[str, float, float], ...] = ()
    """(resource, least and most) that a job may reserve with rusage[]; in force sizes are in MB."""
    ignore_deadline: bool = False
    """A job starts even if its run limit ends after the run window does."""

    lease: float | None = None
    lease_margin: float | None = None
    host_timeout: float | None = None


FOR_EVER = 100_000
"""SLOT_RESERVE=MAX_RESERVE_TIME without a number of periods."""


class ApplicationConfig(JobProfile, frozen=True, omit_defaults=True):
    """An application profile; None and "" leave the queue's value standing."""

    runtime: int = 0
    """Seconds that a job of it is taken to run; 0: not known."""
    memlimit_type: tuple[str, ...] = ()
    """With `JOB` the memory limit of its jobs is of all their processes on a host, and lava ends what exceeds it."""
    abs_runlimit: bool = False
    """Run limits and estimates of its jobs are wall clock time, also where lsb.params does not say so."""
    nice: int | None = None
    rerunnable: bool | None = None
    job_cwd: str = ""
    env_vars: tuple[tuple[str, str], ...] = ()
    """Variables of its jobs, which those of the submission stand before."""
    job_include_postproc: bool | None = None
    job_postproc_timeout: int | None = None
    job_preproc_timeout: int | None = None
    job_cwd_ttl: int | None = None
    resizable_jobs: Resizable = Resizable.NO
    resize_notify_cmd: str = ""
    djob_resize_grace_period: int | None = None
    djob_env_script: str = ""
    """Run with `setup` before a parallel job and with `cleanup` after it, as a part of it; a name alone is in LSF_BINDIR."""
    djob_commfail_action: str = ""
    djob_hb_interval: int | None = None
    djob_ru_interval: int | None = None
    djob_disabled: bool = False
    """Its jobs have no blaunch."""
    rtask_gone_action: tuple[str, ...] = ()
    """What the end of a task of blaunch does to its job."""
