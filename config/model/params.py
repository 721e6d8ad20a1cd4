"""The cluster-wide parameters: lsb.params, and those of lsf.conf that change what lava does.

Rule: a field is the parameter's name in lower case; its default is LSF 10.1's, so that a site that moves sees no
change. (What `lava up` writes into its files is another set, see samples/.)
"""

import msgspec

from config.model.values import Backfill, RequeueExit

KILL_TIME = 6.0
"""Seconds from the end of a lease until nothing of the part is left, where its shepherd is frozen and the starter ends it."""


UNITS = ("KB", "MB", "GB", "TB", "PB", "EB")


class Params(msgspec.Struct, frozen=True, omit_defaults=True):
    """What decisions depend on, and so is part of the configuration that is stored. Times are seconds, sizes KB."""

    # --- lsb.params: queues, names, defaults of a job
    default_queue: tuple[str, ...] = ("normal",)
    default_project: str = "default"
    default_application: str = ""
    default_user_group: str = ""
    default_jobgroup: str = ""
    default_host_spec: str = ""
    default_job_cwd: str = ""
    default_job_outdir: str = ""
    max_jobid: int = 999_999
    max_job_array_size: int = 1000
    max_user_priority: int | None = None
    job_priority_over_time: tuple[int, int] | None = None
    """(steps, seconds): the priority of a pending job grows by `steps` every so many seconds."""
    max_pend_jobs: int | None = None
    max_pend_slots: int | None = None
    max_user_records: int = 100_000
    """Live jobs, arrays and elements with a record of their own that a user may have (``lavad.core.cluster.records``)."""
    sub_try_interval: int = 60
    max_job_msg_num: int = 128
    bswitch_modify_rusage: bool = False
    job_dep_last_sub: bool = False
    orphan_job_term_grace_period: int | None = None
    """Seconds; None: jobs whose condition can never be met wait until somebody ends them."""
    egroup_update_interval: int = 0
    """Seconds after which the files, and with them the site's egroup, are read again; 0: never by itself."""
    job_group_clean: bool = False
    job_position_control_by_admin: bool = False
    enable_user_resume: bool = False

    # --- the clock of the cluster
    mbd_sleep_time: int = 60
    sbd_sleep_time: int = 30
    """Seconds between two jobs that load suspends, or lets go on, on one host."""
    # LSF documents 1 and ships 0; without a file 0 holds, as load reports arrive far faster here.
    job_accept_interval: int = 0
    chunk_job_duration: int | None = None
    """Seconds: jobs with a longer limit or estimate, or with none, are not put into chunks; None: those with a longer one than
    half an hour."""
    clean_period: int = 3600
    clean_period_done: int | None = None
    """Of jobs that are DONE, where that is less."""
    job_terminate_interval: int = 10

    # --- running
    abs_runlimit: bool = False
    privileged_user_force_bkill: bool = False
    """`bkill -r` is root's and the cluster administrators'."""
    job_include_postproc: bool = False
    job_postproc_timeout: int | None = None
    job_preproc_timeout: int | None = None
    job_cwd_ttl: int | None = None
    """Hours for which the working folder that was made for a job stays after its end; None or NEVER: for good."""
    preexec_exclude_host_exit_values: RequeueExit = RequeueExit()
    """With these a pre-execution command says that its job is not for this host."""
    detect_idle_job_after: int = 1200
    job_action_warning_time: int | None = None

    # --- hosts on which jobs fail
    global_exit_rate: int | None = None
    job_exit_rate_duration: int = 300
    eadmin_trigger_duration: int = 60
    """Seconds between two looks for exceptions of jobs."""
    extend_job_exception_notification: bool = False
    exit_rate_type: tuple[str, ...] = ("JOBEXIT_NONLSF",)
    lava_chkpnt_tries: int = 3
    """Crashes after one checkpoint generation before a job goes one back, and again before it ends."""
    lava_memory_first: int = 1024 * 1024
    """-M auto: the limit (KB) of a job of which nothing is learnt and that names none."""
    lava_memory_max: int = 0
    """The most (KB) that such a limit becomes; 0: the memory of the largest host."""
    lava_shared_dirs: tuple[str, ...] = ()
    """Folders that all hosts see, with what is below them; `all`: every one."""
    lava_chkpnt_stage_dir: str = ""
    """Where `bsub -k "DIR stage"` copies generations, a folder that all hosts see and all users may write in."""
    lava_warning_max: int = 300
    """Seconds that a job has at most from its warning until the master ends it to give its slots to others; 0: none."""
    lava_host_refusals: int = 3
    lava_host_retry: int = 300

    # --- placing
    parallel_sched_by_slot: bool = False
    resource_reserve_per_task: bool = False
    compute_unit_types: tuple[str, ...] = ()
    """The finest first; `!` behind the one that cu[] means where it names none."""
    preempt_jobtype: tuple[str, ...] = ()
    preemptable_resources: tuple[str, ...] = ()
    """What jobs may be preempted for beside slots: they then give up all that they have."""

    # --- lsf.conf: commands
    lsb_bsub_parse_script: bool = False
    lava_priority_classes: str = ""
    """``name=number …``: read by ``lava run``, which knows no more of the configuration than lsf.conf."""
    lsb_stdout_direct: bool = False
    lsb_echkpnt_method: str = ""
    lsb_short_hostlist: bool = False
    lsb_display_year: bool = False
    bjobs_res_req_display: str = "BRIEF"
    """Of which requirements bjobs -l tells."""
    lsb_enable_hpc_allocation: bool = False
    lsb_bjobs_pendreason_level: int = 0
    lsb_bjobs_format: str = ""
    lsb_bhosts_format: str = ""
    lsb_bqueues_format: str = ""
    lsb_busers_format: str = ""
    lsf_lshosts_format: str = ""
    lsf_lsload_format: str = ""
    lsb_bjobs_consistent_exit_code: bool = False
    advrsv_user_limit: int = 100
    """Advance reservations of one user or group."""
    default_resreq_order: str = "r15s:pg"
    """In which order hosts are tried for a job without order[], as that has it."""
    strict_ug_control: bool = False
    """A job of ``-G`` is controlled by the administrators of that group alone."""
    enforce_one_ug_limits: bool = False
    """For a job of ``-G`` the limits of that group alone hold, of the groups that its user is in."""
    lsb_mod_all_jobs: bool = False

    # --- lsf.conf: limits and control
    lsf_unit_for_limits: str = "KB"
    lsb_resource_enforce: tuple[str, ...] = ()
    """Of "memory", "cpu", "gpu": what cgroups enforce."""
    lsb_gpu_req: str = ""
    """What a job that asks for GPUs gets where neither it nor its application or queue says anything."""
    lsb_job_memlimit: bool | None = None
    lsb_memlimit_enforce: bool = False
    lsb_requeue_to_bottom: bool = False
    lsb_stop_ignore_it: bool = False
    lsb_exclude_host_period: int | None = None
    """In MBD_SLEEP_TIME; None: for ever."""
    lsf_root_user: bool = False

    # --- lsf.conf: places
    lsb_mailto: str = ""
    lsb_postexec_send_mail: bool = False

    # --- lsf.conf: lava's own
    lava_host_timeout: int = 60
    lsf_dynamic_host_timeout: int = 0
    """Seconds after which a silent host that no file names leaves; 0: never."""
    lava_lease: int = 600
    lava_lease_margin: int = 40
    lava_backfill: Backfill = Backfill.EASY
    lava_pack_weights: tuple[tuple[str, float], ...] = ()
    """What slots, mem and gpus count in order[binpack] and order[spread]; 1 if not named. gpus 0: jobs with GPUs go by rank."""
    lava_submit_hosts: tuple[str, ...] = ("all",)
    lava_max_script: int = 4
    """The largest job script in MB."""
    lava_admin_hosts: tuple[str, ...] = ()
    """Where administrators have their rights; (): on the hosts of LSF_MASTER_LIST."""
    lava_web_user: str = ""
    """The account of the page, which may speak for users whom the site's reverse proxy has signed in; "": nobody may."""
    lava_web_admin: bool = False
    """Whether administrators whom it speaks for have their rights."""
    lava_record_days: float = 1.0
    """For how long what the scheduler decided on is kept for ``lava replay``; 0: it is not recorded."""
    lava_query_time: int = 300
    """Seconds after which a query is ended."""
    lava_user_store: int = 500
    """MB an hour that what one user asks may add to the store; 0: no limit."""
    lava_audit: str = ""
    """Where the audit file is, ``syslog``, or ``N`` for none."""
    secure_job_info_level: int = 0
    """Of whose jobs users see what: 0 (everything of all) to 5; ``queries.facts.visibility`` has the table."""
    secure_infodir_user_access: str = "N"
    """Whether bhist and bacct show everything (N), nothing (Y), or what the level says (G) to those whom it restricts."""
    enable_job_info_by_admin_role: tuple[str, ...] = ()
    """Administrators (usergroup, queue, cluster) who see the jobs that they administer in any case."""
    max_job_num: int = 0
    """Finished jobs after which lsb.events becomes lsb.events.1; 0: by its size alone."""
    acct_archive_size: int = 0
    """KB after which lsb.acct becomes lsb.acct.1; 0: any size."""
    acct_archive_age: int = 0
    """Days, as ``acct_archive_size``."""
    max_acct_archive_file: int = 0
    """Files lsb.acct.N that are kept; 0: all."""
    lava_event_files: int = 0
    """Files lsb.events.N that are kept; 0: all."""
    lava_history_days: float = 90.0
    """For how long the store keeps what is over; 0: for good."""
    lava_history_jobs: int = 0
    """How many finished jobs the store keeps at most; 0: any number."""

    @property
    def masters_lease(self) -> float:
        """Seconds of the masters' own lease on their store."""
        return max(5.0, min(20.0, float(self.lava_host_timeout)))

    @property
    def least_margin(self) -> float:
        """Seconds that a margin must have at least, so that nothing runs twice: lavad/hosts/leases.py says why."""
        return self.masters_lease + KILL_TIME

    @property
    def unit_kb(self) -> int:
        """LSF_UNIT_FOR_LIMITS in KB."""
        return int(1024 ** UNITS.index(self.lsf_unit_for_limits))

    @property
    def resreq_unit_mb(self) -> float:
        """What a plain amount of memory in a resource requirement counts in: MB, unless LSF_UNIT_FOR_LIMITS names more."""
        return max(1.0, self.unit_kb / 1024)

    @property
    def job_memlimit(self) -> bool:
        """Whether lava ends jobs that exceed their memory limit."""
        return bool(self.lsb_job_memlimit) or self.lsb_memlimit_enforce

    @property
    def run_warning(self) -> int:
        """Seconds between SIGUSR2 at the run limit and the kill."""
        return 600 if self.job_action_warning_time is None else self.job_action_warning_time

    @property
    def preempt_exclusive(self) -> bool:
        """Whether exclusive jobs preempt and are preempted."""
        return "EXCLUSIVE" in self.preempt_jobtype

    @property
    def unit_types(self) -> tuple[str, ...]:
        """Types of compute units, the finest first."""
        return tuple(word.rstrip("!") for word in self.compute_unit_types)

    @property
    def unit_type(self) -> str:
        """The type that cu[] means where it names none."""
        marked = next((word for word in self.compute_unit_types if word.endswith("!")), "")
        return marked.rstrip("!") or (self.unit_types or ("",))[0]

    def unit_type_of(self, word: str) -> str:
        """The type that a word of cu[type=] means: its name, its number from the finest on, "" the default; "": none is."""
        known = self.unit_types
        if not word or word in known:
            return word or self.unit_type
        number = int(word) if word.isascii() and word.isdigit() and len(word) < 4 else 0
        return known[number - 1] if 0 < number <= len(known) else ""
