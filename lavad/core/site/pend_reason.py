"""Why a job waits: LSF's reason codes, and the texts that ``bjobs -p`` prints.

Rule: what is shown is the very value that a check returned. A reason about one resource is a base code plus the resource's
number in ``index_names``; a reason about a limit of lsb.resources is a base code plus the limit's place in that file.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from config.model.cluster import Limit
from config.model.values import LOAD_INDICES
from lavad.core.site.conf import Conf


class ReasonClass(Enum):
    """What a reason says of a job, or of a host, beside that the job waits."""

    WAITS = "waits"
    INELIGIBLE = "ineligible"
    """The job would not start on an empty cluster either (bjobs -pi)."""
    NO_CANDIDATE = "no candidate"
    """The host could not take the job even if it were free (non-candidate hosts of bjobs -p3)."""


class PendReason(IntEnum):
    """A code with its text and class. Codes and texts are LSF's; those from 9001 on are lava's own."""

    text: str
    kind: ReasonClass

    def __new__(cls, code: int, text: str, kind: ReasonClass = ReasonClass.WAITS) -> PendReason:
        """A member with its attributes."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.text, member.kind = text, kind
        return member

    JOB_NEW = 1, "New job is waiting for scheduling"
    JOB_START_TIME = 2, "The job has a specified start time", ReasonClass.INELIGIBLE
    JOB_DEPEND = 3, "Job dependency condition not satisfied", ReasonClass.INELIGIBLE
    JOB_DEP_INVALID = 4, "Dependency condition invalid or never satisfied", ReasonClass.INELIGIBLE
    JOB_MIG = 5, "Migrating job is waiting for rescheduling"
    JOB_PRE_EXEC = 6, "The job's pre-exec command exited with non-zero status", ReasonClass.INELIGIBLE
    JOB_NO_FILE = 7, "Unable to access job file"
    JOB_ENV = 8, "Unable to set job's environment variables"
    JOB_PATHS = 9, "Unable to determine job's home/working directories"
    JOB_OPEN_FILES = 10, "Unable to open job's I/O buffers"
    JOB_EXEC_INIT = 11, "Job execution initialization failed"
    JOB_RESTART_FILE = 12, "Unable to copy restarting job's checkpoint files"
    JOB_DELAY_SCHED = 13, "The schedule of the job is postponed for a while", ReasonClass.INELIGIBLE
    JOB_SWITCH = 14, "Waiting for re-scheduling after switching queue"
    JOB_DEP_REJECT = 15, "Event is rejected by eeventd due to syntax error"
    JOB_NO_PASSWD = 17, "Failed to get user password"
    JOB_MODIFY = 19, "Waiting for re-scheduling after parameters have been changed"
    JOB_REQUEUED = 23, "Requeue the job for the next run"
    SYS_UNABLE = 35, "System is unable to schedule the job"
    JOB_ARRAY_LIMIT = 38, "The job array has reached its job slot limit"
    JOB_PREEMPTED = 40, "Job was preempted and is waiting for rescheduling"
    JGROUP_LIMIT = 41, "The specified job group has reached its job limit"
    QUE_INACT = 301, "The queue is inactivated by the administrator", ReasonClass.INELIGIBLE
    QUE_WINDOW = 302, "The queue is inactivated by its time windows", ReasonClass.INELIGIBLE
    QUE_JOB_LIMIT = 303, "The queue has reached its job slot limit"
    QUE_USR_JLIMIT = 304, "User has reached the per-user job slot limit of the queue"
    QUE_USR_PJLIMIT = 305, "Not enough per-user job slots of the queue for the parallel job"
    QUE_PRE_FAIL = 306, "The queue's pre-exec command exited with non-zero status"
    SYS_NOT_READY = 310, "System is not ready for scheduling after reconfiguration"
    SBD_JOB_REQUEUE = 311, "Requeued job is waiting for rescheduling"
    JOB_SPREAD_TASK = 312, "Not enough hosts to meet the job's spanning requirement"
    QUE_SPREAD_TASK = 313, "Not enough hosts to meet the queue's spanning requirement"
    QUE_PJOB_LIMIT = 314, "The queue has not enough job slots for the parallel job"
    QUE_WINDOW_WILL_CLOSE = 315, "Job will not finish before queue's run window is closed"
    RES_LIMIT = 317, "Resource limit defined in lsb.resources has been reached"
    USER_JOB_LIMIT = 601, "The user has reached his/her job slot limit"
    UGRP_JOB_LIMIT = 602, "One of the user's groups has reached its job slot limit"
    USER_PJOB_LIMIT = 603, "The user has not enough job slots for the parallel job"
    UGRP_PJOB_LIMIT = 604, "One of user's groups has not enough job slots for the parallel job"
    USER_RESUME = 605, "Waiting for scheduling after resumed by user"
    USER_STOP = 607, "The job was suspended by the user while pending", ReasonClass.INELIGIBLE
    NO_MAPPING = 608, "Unable to determine user account for execution"
    RMT_PERMISSION = 609, "The user has no permission to run the job on remote host/cluster"
    ADMIN_STOP = 610, "The job was suspended by LSF admin or root while pending", ReasonClass.INELIGIBLE
    HOST_RES_REQ = 1001, "Job's resource requirements not satisfied", ReasonClass.NO_CANDIDATE
    HOST_NONEXCLUSIVE = 1002, "Job's requirement for exclusive execution not satisfied"
    HOST_JOB_SSUSP = 1003, "Higher or equal priority jobs suspended by host load"
    SBD_GETPID = 1005, "Unable to get the PID of the restarting job"
    SBD_LOCK = 1006, "Unable to lock host for exclusively executing the job"
    SBD_ZOMBIE = 1007, "Cleaning up zombie job"
    SBD_ROOT = 1008, "Can't run jobs submitted by root"
    HOST_WIN_WILL_CLOSE = 1009, "Job will not finish on the host before queue's run window is closed"
    HOST_MISS_DEADLINE = 1010, "Job will not finish on the host before job's termination deadline"
    HOST_DISABLED = 1301, "Closed by LSF administrator", ReasonClass.NO_CANDIDATE
    HOST_LOCKED = 1302, "Host is locked by LSF administrator"
    HOST_LESS_SLOTS = 1303, "Not enough job slot(s)"
    HOST_WINDOW = 1304, "Dispatch windows closed"
    HOST_JOB_LIMIT = 1305, "Job slot limit reached"
    QUE_PROC_JLIMIT = 1306, "Queue's per-CPU job slot limit reached"
    QUE_HOST_JLIMIT = 1307, "Queue's per-host job slot limit reached"
    USER_PROC_JLIMIT = 1308, "User's per-CPU job slot limit reached"
    HOST_USR_JLIMIT = 1309, "Host's per-user job slot limit reached"
    HOST_QUE_MEMB = 1310, "Not usable to the queue", ReasonClass.NO_CANDIDATE
    HOST_USR_SPEC = 1311, "Not specified in job submission", ReasonClass.NO_CANDIDATE
    HOST_PART_USER = 1312, "User has no access to the host partition"
    HOST_NO_USER = 1313, "There is no such user account", ReasonClass.NO_CANDIDATE
    HOST_ACCPT_ONE = 1314, "Just started a job recently"
    LOAD_UNAVAIL = 1315, "Load information unavailable", ReasonClass.NO_CANDIDATE
    HOST_NO_LIM = 1316, "LIM is unreachable now", ReasonClass.NO_CANDIDATE
    HOST_QUE_RESREQ = 1318, "Queue's resource requirements not satisfied", ReasonClass.NO_CANDIDATE
    HOST_SCHED_TYPE = 1319, "Not the same type as the submission host", ReasonClass.NO_CANDIDATE
    JOB_NO_SPAN = 1320, "Not enough processors to meet the job's spanning requirement"
    QUE_NO_SPAN = 1321, "Not enough processors to meet the queue's spanning requirement"
    HOST_EXCLUSIVE = 1322, "Running an exclusive job"
    UGRP_PROC_JLIMIT = 1324, "User group's per-CPU job slot limit reached"
    HOST_LESS_RSVSLOTS = 1328, "Not enough reserved job slots at this time for specified reservation ID"
    HOST_LESS_DURATION = 1329, "Not enough slots or resources for whole duration of the job"
    HOST_NO_RSVID = 1330, "Specified reservation has expired or has been deleted"
    HOST_ADRSV_ACTIVE = 1332, "Not enough job slot(s) while advance reservation is active"
    HOST_RSV = 1335, "Host does not belong to the specified advance reservation"
    SBD_UNREACH = 1601, "Unable to reach slave batch server", ReasonClass.NO_CANDIDATE
    SBD_JOB_QUOTA = 1602, "Number of jobs exceeds quota"
    JOB_START_FAIL = 1603, "Failed in talking to server to start the job"
    JOB_START_UNKNWN = 1604, "Failed in receiving the reply from server when starting the job"
    SBD_NO_MEM = 1605, "Unable to allocate memory to run job"
    SBD_NO_PROCESS = 1606, "Unable to fork process to run job"
    SBD_SOCKETPAIR = 1607, "Unable to communicate with job process"
    SBD_JOB_ACCEPT = 1608, "Slave batch server failed to accept job"
    NEVER_SLOTS = 9001, "There are no suitable hosts for the job: no host can ever give it its slots: all together have fewer"
    NO_SUITABLE_HOST = 9002, "There are no suitable hosts for the job: no host can ever take it"
    GPU_NONE = 9003, "Host does not have the GPUs that the job requires", ReasonClass.NO_CANDIDATE
    GPU_BUSY = 9004, "Job's requirements for reserving resource (ngpus_physical) not satisfied"
    NEVER_HOST_SLOTS = 9005, "There are no suitable hosts for the job: no host can ever give it so many slots"
    QUE_GONE = 9006, "The queue was removed from the configuration"
    SLOTS_HELD = 9007, "Waiting for the jobs that are preempted for it to end"
    GPU_CLOSED = 9057, "GPUs that the job requires are closed"
    HOST_NO_CPUS = 9008, "Not enough processor units to satisfy the job's affinity requirement"
    HOST_NO_TOPOLOGY = 9009, "Affinity is not enabled on the host, or its processors are not known"
    NEVER_GPUS = 9013, "There are no suitable hosts for the job: no host can ever give it the GPUs that it requires"
    NEVER_GPU_MODEL = 9051, "There are no suitable hosts for the job: no host can ever give it so many GPUs of its model (gmodel)"
    NEVER_GPU_MEM = 9052, "There are no suitable hosts for the job: no host can ever give it so much GPU memory (gmem, gmodel)"
    NEVER_GPU_LINKS = 9053, "There are no suitable hosts for the job: no host can ever give it so many GPUs with NVLink (glink)"
    NEVER_GPU_TILES = 9054, "There are no suitable hosts for the job: no host can ever give it GPUs that are spread so (gtile)"
    NEVER_GPU_MIG = 9055, "There are no suitable hosts for the job: no host can ever give it MIG instances of that size (mig)"
    NEVER_GPU_WHOLE = 9056, "There are no suitable hosts for the job: no host can ever give it GPUs that are not split (MIG)"
    NEVER_GPUS_TOGETHER = 9058, "There are no suitable hosts for the job: all together have fewer GPUs than its tasks require"
    NEVER_CPUS = 9030, "There are no suitable hosts for the job: no host can ever give a task the processors that it requires"
    NEVER_SLOTS_BY_CPU = 9059, "There are no suitable hosts for the job: parallel jobs are placed by CPUs, and hosts have too few"
    QUE_DESERVED = 9014, "The queue has the slots that it deserves, and other queues wait for theirs"
    QUE_GUARANTEE = 9015, "The slots that are left are guaranteed to other queues"
    QUE_GPUS_DESERVED = 9041, "The queue has the GPUs that it deserves, and other queues wait for theirs"
    QUE_GPUS_GUARANTEE = 9042, "The GPUs that are left are guaranteed to other queues"
    QUE_GPU_CAPABILITY = 9043, "The queue has the most GPUs that it may have (CAPABILITY)"
    SLA_OPTIMUM = 9060, "As many jobs of the service class run as its goals need now"
    SLOTS_ONE_BY_ONE = 9016, "Waiting for more job slots, as its queue has GANG=N"
    JOB_DEADLOCK = 9017, "Deadlock: the job holds slots that other waiting jobs need, and waits for those that they hold"


NEVER_ENOUGH_SLOTS = (PendReason.NEVER_SLOTS, PendReason.NEVER_HOST_SLOTS, PendReason.NEVER_SLOTS_BY_CPU)
NEVER_GPU = (
    PendReason.NEVER_GPUS,
    PendReason.NEVER_GPU_MODEL,
    PendReason.NEVER_GPU_MEM,
    PendReason.NEVER_GPU_LINKS,
    PendReason.NEVER_GPU_TILES,
    PendReason.NEVER_GPU_MIG,
    PendReason.NEVER_GPU_WHOLE,
    PendReason.NEVER_GPUS_TOGETHER,
)
"""No host can ever give a job its GPUs, and why."""

LOAD = 2001
QUE_RUSAGE = 2301
JOB_RUSAGE = 2601
NEVER_RUSAGE = 2901
NEVER_TOGETHER = 3201
_PER_BASE = 300
NEVER_RESOURCE = range(NEVER_RUSAGE, NEVER_TOGETHER + _PER_BASE)
"""No host, or all together, can ever have what a job reserves of some resource."""
LIMIT_SLOTS = 10_000
LIMIT_JOBS = 20_000
LIMIT_RESOURCE = 30_000
POOL = 40_000
"""What is left of a guaranteed resource pool is kept for others: plus the pool's place in lsb.resources."""
_PER_LIMIT = 10_000


def index_names(conf: Conf) -> tuple[str, ...]:
    """Resources in the order in which reasons number them: LSF's load indices, then those of lsf.shared."""
    return LOAD_INDICES + tuple(resource.name for resource in conf.resources)


def about(base: int, name: str, names: tuple[str, ...]) -> int:
    """The reason ``base`` (LOAD, QUE_RUSAGE, JOB_RUSAGE, NEVER_RUSAGE, NEVER_TOGETHER) about the resource ``name``."""
    return base + (names.index(name) if name in names else _PER_BASE - 1)


_LOAD_TEXTS = (
    "The 15s effective CPU queue length (r15s) is beyond threshold",
    "The 1 minute effective CPU queue length (r1m) is beyond threshold",
    "The 15 minute effective CPU queue length (r15m) is beyond threshold",
    "The CPU utilization (ut) is beyond threshold",
    "The paging rate (pg) is beyond threshold",
    "The disk IO rate (io) is beyond threshold",
    "There are too many login users (ls)",
    "The idle time (it) is not long enough",
    "The available /tmp space (tmp) is low",
    "The available swap space (swp) is low",
    "The available memory (mem) is low",
)


def find_reason(code: int) -> PendReason | None:
    """The reason with this code; None for one about a resource or a limit, and for an unknown code."""
    return PendReason._value2member_map_.get(code)  # type: ignore[return-value]


def is_of_pool(code: int) -> bool:
    """Whether what keeps a job waiting is a guaranteed resource pool."""
    return POOL <= code < POOL + _PER_LIMIT


def text(code: int, conf: Conf) -> str:
    """What ``bjobs -p`` says of a reason, without host counts; "": the code is unknown."""
    if is_of_pool(code):
        named = f" (Pool Name: {conf.pools[code - POOL].name})" if code - POOL < len(conf.pools) else ""
        return f"The resources that are left are guaranteed to service classes{named}"
    if code >= LIMIT_SLOTS:
        return _limit_text(code, conf)
    names = index_names(conf)
    for base in (LOAD, QUE_RUSAGE, JOB_RUSAGE, NEVER_RUSAGE, NEVER_TOGETHER):
        if base <= code < base + _PER_BASE:
            at = code - base
            return _resource_text(base, at, names[at] if at < len(names) else "resource")
    reason = find_reason(code)
    return "" if reason is None else reason.text


def _resource_text(base: int, at: int, name: str) -> str:
    if base == QUE_RUSAGE:
        return f"Queue requirements for reserving resource ({name}) not satisfied"
    if base == NEVER_RUSAGE:
        return f"There are no suitable hosts for the job: no host can ever have the {name} that it reserves"
    if base == NEVER_TOGETHER:
        return f"There are no suitable hosts for the job: all together can never have the {name} that its slots reserve"
    if base == JOB_RUSAGE:
        return f"Job requirements for reserving resource ({name}) not satisfied"
    return _LOAD_TEXTS[at] if at < len(_LOAD_TEXTS) else f"Load index ({name}) is beyond threshold"


def _slots_of(limit: Limit) -> str:
    each = [] if limit.slots_per_processor is None else [f"{limit.slots_per_processor:g} per processor"]
    return " and ".join((*([] if limit.slots is None else [str(limit.slots)]), *each))


def _limit_text(code: int, conf: Conf) -> str:
    base = code // _PER_LIMIT * _PER_LIMIT
    at = code - base
    if at >= len(conf.limits):
        return PendReason.RES_LIMIT.text
    limit = conf.limits[at]
    given = (
        ("host(s) and/or host group", limit.hosts),
        ("user(s) and/or user group", limit.users or limit.per_user),
        ("queue", limit.queues),
        ("project", limit.projects),
        ("application", limit.apps),
    )
    where = " and ".join(word for word, has in given if has) or "cluster"
    if base == LIMIT_JOBS:
        return f"JOBS limit defined on {where} has been reached (Limit Name: {limit.name}, Limit Value: {limit.jobs})"
    if base == LIMIT_SLOTS:
        return (
            f"Resource (slot) limit defined on {where} has been reached"
            f" (Limit Name: {limit.name}, Limit Value: {_slots_of(limit)})"
        )
    amounts = (*limit.resources, *((("mem", limit.mem),) if limit.mem is not None else ()))
    if len(amounts) > 1:
        return f"Resource limit defined on {where} has been reached (Limit Name: {limit.name})"
    [(name, most)] = amounts
    value = f"{most:g}{'%' if name in limit.percent else ''}"
    return f"Resource ({name}) limit defined on {where} has been reached (Limit Name: {limit.name}, Limit Value: {value})"
