"""Parameters that are read and checked and change nothing: those of no use here, and those that lava has not yet.

Rule: the first kind is a note of `badmin ckconfig`, the second a warning; a parameter that comes to work leaves its list.
"""

_NEEDLESS_CONF = """
LSF_DYNAMIC_HOST_WAIT_TIME LSF_MANDIR LSF_STRIP_DOMAIN LSF_TOP LSB_DEFAULT_JOBMAXSIZE LSB_JOB_CPULIMIT
LAVA_GPUS
"""
_NEEDLESS_PARAMS = """
CONDENSE_PENDING_REASONS JOB_SCHEDULING_INTERVAL JOB_SPOOL_DIR MAX_JOB_NUM MAX_PREEXEC_RETRY MAX_SBD_FAIL MBD_REFRESH_TIME
PEND_REASON_UPDATE_INTERVAL PG_SUSP_IT SUB_TRY_INTERVAL
ACCT_ARCHIVE_AGE ACCT_ARCHIVE_SIZE ACCT_ARCHIVE_TIME DIAGNOSE_LOGDIR ENABLE_DIAGNOSE ENABLE_EVENT_STREAM EVENT_STREAM_FILE
JOB_DISPATCH_PACK_SIZE MAX_ACCT_ARCHIVE_FILE MAX_CONCURRENT_QUERY MAX_EVENT_STREAM_FILE_NUM MAX_EVENT_STREAM_SIZE MAX_INFO_DIRS
MAX_PEND_UPDATE_SIZE MAX_SBD_CONNS MBD_QUERY_CPUS MIN_REFRESH_TIME MIN_SWITCH_PERIOD NEWJOB_REFRESH PEND_REASON_MAX_JOBS
SCHED_METRIC_ENABLE SCHED_METRIC_SAMPLE_PERIOD SCHEDULER_THREADS
"""
_NEEDLESS_CLUSTER = "ADJUST_DURATION FLOAT_CLIENTS FLOAT_CLIENTS_ADDR_RANGE MASTER_INACTIVITY_LIMIT PRODUCTS REXPRI"
_NEEDLESS_QUEUES = "CHUNK_JOB_SIZE DISPATCH_BY_QUEUE IMPT_JOBBKLG JOBS_PER_SCHED_CYCLE MAX_RSCHED_TIME"

NEEDLESS = {
    "lsf.conf": frozenset(_NEEDLESS_CONF.split()),
    "lsb.params": frozenset(_NEEDLESS_PARAMS.split()),
    "lsb.queues": frozenset(_NEEDLESS_QUEUES.split()),
    "lsb.hosts": frozenset(("CHKPNT", "CONDENSE")),
    "lsb.applications": frozenset(("CHUNK_JOB_SIZE",)),
    "lsf.cluster": frozenset(_NEEDLESS_CLUSTER.split()),
    "lsb.resources": frozenset(("RESERVE",)),
}
"""They tune daemons, or name files, that lava does not have."""

BECAUSE = {
    "CHUNK_JOB_SIZE": "short jobs start one by one as fast as chunks of them, and none is ever in state WAIT",
}
"""Why one of these is not needed, where users of LSF would look for what it does."""

_CONF = "LAVA_FENCE LAVA_KEY_FILE LSB_KEEP_SYSDEF_RLIMIT LSB_MAILSIZE_LIMIT"
_PARAMS = """
DEFAULT_RESREQ_ORDER ENFORCE_ONE_UG_LIMITS FAIRSHARE_ADJUSTMENT_FACTOR
PREEMPTABLE_RESOURCES PREEMPTION_WAIT_TIME RELAX_JOB_DISPATCH_ORDER STRICT_UG_CONTROL USE_SUSP_SLOTS
"""
_HOSTS = "EXIT_RATE"
_USERS = "PRIORITY"
_QUEUES = "HOST_TIMEOUT LEASE LEASE_MARGIN PRE_POST_EXEC_USER"
_APPLICATIONS = """
USE_PAM_CREDS
"""

MISSING = {
    "lsf.conf": frozenset(_CONF.split()),
    "lsb.params": frozenset(_PARAMS.split()),
    "lsb.queues": frozenset(_QUEUES.split()),
    "lsb.hosts": frozenset(_HOSTS.split()),
    "lsb.users": frozenset(_USERS.split()),
    "lsf.shared": frozenset(("RELEASE",)),
    "lsb.applications": frozenset(_APPLICATIONS.split()),
}
"""The site that sets one of these is told."""
