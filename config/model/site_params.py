"""All parameters of lsb.params and lsf.conf, those that are no part of the stored configuration too.

Rule: as of ``config.model.params``.
"""

from config.model.params import Params


class SiteParams(Params, frozen=True):
    """All that the files say: also how daemons and commands work, places, and what is checked only."""

    default_queue: tuple[str, ...] = ()
    """Not set: LSF's own choice (`ClusterConfig.default_queues`)."""
    # --- lsb.params: queues, names, defaults of a job

    # --- the clock of the cluster
    mbd_refresh_time: int = 5
    job_scheduling_interval: float = 1.0
    max_sbd_fail: int = 3
    pend_reason_update_interval: int = 60
    condense_pending_reasons: bool = False

    # --- running
    max_preexec_retry: int | None = None
    local_max_preexec_retry: int | None = None
    local_max_preexec_retry_action: str = ""
    max_job_requeue: int | None = None
    pg_susp_it: int = 180
    job_spool_dir: str = ""
    # LSF has these two on queues and applications only; here they are also the default of all queues.
    job_warning_action: str = ""

    # --- placing
    use_susp_slots: bool = True
    preempt_for: tuple[str, ...] = ()
    preemption_wait_time: int = 300
    preempt_delay: int | None = None
    no_preempt_interval: int | None = None
    no_preempt_run_time: int | None = None
    """Seconds, or minus percent of the run limit; as the next one."""
    no_preempt_finish_time: int | None = None
    max_job_preempt: int | None = None
    max_total_time_preempt: int | None = None
    estimated_runtime: int | None = None
    relax_job_dispatch_order: bool = False

    # --- fair share
    hist_hours: float = 5.0
    cpu_time_factor: float = 0.7
    run_time_factor: float = 0.7
    run_job_factor: float = 3.0
    fairshare_adjustment_factor: float = 0.0
    gpu_run_time_factor: float = 0.0
    enable_hist_run_time: bool = False
    enable_gpu_hist_run_time: bool = False
    run_time_decay: bool = False
    committed_run_time_factor: float = 0.0

    # --- lsf.conf: commands
    lsf_interactive_stderr: bool = False
    lsb_subk_show_exec_host: bool = False
    lsb_subk_show_jobid: bool = False
    lsf_remote_copy_cmd: str = ""
    lsb_default_jobmaxsize: str = ""
    lsb_set_tmpdir: bool | str = False
    """A text is the variable that is set in the place of TMPDIR."""
    lsb_job_tmpdir: str = ""
    """The folder of the folders of jobs, with %H for the host; "": that of lsf_tmpdir."""
    lsb_echkpnt_method_dir: str = ""
    lsb_echkpnt_keep_output: bool = False
    lsb_esub_method: str = ""
    lsb_jobmsg_num: int | None = None
    lsb_keep_sysdef_rlimit: bool = False
    lsf_compat_version: str = ""
    lsf_tmpdir: str = "/tmp"

    # --- lsf.conf: limits and control
    lsb_job_cpulimit: bool | None = None
    lsb_use_sequential_signal: bool = False
    lsb_sigstop: str = ""
    """The number of a signal; "": the usual ones."""

    # --- lsf.conf: places
    lsf_master_list: tuple[str, ...] = ()
    lsb_sharedir: str = ""
    lsf_confdir: str = ""
    lsb_confdir: str = ""
    lsf_logdir: str = ""
    lsf_log_mask: str = "LOG_INFO"
    lava_log_format: str = "TEXT"
    lsf_bindir: str = ""
    lsf_serverdir: str = ""
    lsf_libdir: str = ""
    lsf_mandir: str = ""
    lsf_top: str = ""
    lsf_strip_domain: tuple[str, ...] = ()
    lsb_mailprog: str = ""
    lsb_mailserver: str = ""
    lsf_local_resources: str = ""
    lsb_mailsize_limit: int | None = None
    """KB of output that a mail brings."""
    lsb_job_report_mail: bool = True
    lsb_disable_rerun_post_exec: bool = False
    lsf_cgroup_core_auto_create: bool = False
    """Jobs of queues that say nothing of affinity[] have a core for each slot."""

    # --- lsf.conf: lava's own
    lava_rundir: str = "/run/lava"
    lava_spooldir: str = "/var/lib/lava-master"
    """lavad's own: the folders of root's daemons on the same host are named by their units."""
    lava_database_url: str = ""
    lava_database_url_file: str = ""
    """A file that only the daemon can read, for a URL with a password: every user reads lsf.conf."""
    lsf_dynamic_host_wait_time: int = 0
    lava_heartbeat: int = 10
    lava_sample_period: int = 10
    lava_metrics_address: str = ""
    lava_traces: str = ""
    """``Y``, or the address of a collector."""
    lava_web_address: str = ""
    """``[HOST:]PORT`` of the page."""
    lava_web_url: str = ""
    lava_web_cert: str = ""
    lava_web_key: str = ""
    lava_web_proxies: tuple[str, ...] = ()
    lava_web_proxy_header: str = ""
    lava_web_proxy_secret_file: str = ""
    lava_hang_time: int = 600
    """Seconds after which a rank that hangs, or holds up all others, is named; 0: never."""
    lava_gpu_health: str = ""
    """A program that says whether a GPU is well."""
    lava_health: str = ""
    """The site's program that says whether a host is fit for jobs."""
    lava_health_period: float = 60
    lava_health_timeout: float = 30
    """Seconds, as the one before."""
    lava_port: int = 16879
    lava_tls_dir: str = ""
    lava_cert_warn_days: int = 30
    """Days before the end of a certificate from which on it is told of."""
    lava_tls_master_name: str = ""
    """The name in the masters' certificate, where agents dial them by another."""
    lava_fence: str = ""
    lava_key_file: str = ""
    lava_outputdir: str = ""
    """Where hosts keep output that no file was named for; empty: ``output`` in LAVA_SPOOLDIR."""
    lava_output_limit: int = 0
    """MB, 0: none, as for the two that follow; None: a share of the file system (``agent.core.kept_output``)."""
    lava_output_user_limit: int | None = None
    lava_output_reserve: int | None = None
    lava_output_days: float = 7.0
    """For how long output that no file was named for is kept; 0: for good."""
    lava_job_pids: int = 16384
    """Processes and threads of a job on a host; 0: no limit."""
    lava_chkpnt_copy_dir: str = ""
    """Where agents hold checkpoints of jobs of other hosts; "": they hold none."""
    lava_chkpnt_copy_max: int = 0
    """MB of these for each user on a host; 0: as much as the disk has."""
    lava_chkpnt_copy_wait: int = 300
    """Seconds for which a start waits for a host that holds the newest one."""
    lava_chkpnt_keep: int = 2
    """Checkpoint generations that lava keeps where it writes them itself."""
    lava_chkpnt_timeout: int = 600
    """Seconds that one checkpoint may take."""
    lava_criu: str = ""
    """The program of checkpoint method criu; empty: ``criu``."""
    lava_mpi_interface: str = ""
    """The network interface that jobs of several hosts use; empty: found from the host's address."""
    lava_gpus: int = 0
    """Simulated GPUs on each host; for trying things out on a laptop."""
