"""Why a job waits: LSF's reason codes, and the texts that ``bjobs -p`` prints.

Rule: a reason is the very value that a check gave back. Reasons about one resource are a base code plus the number of
the resource in ``index_names``; reasons about a limit of lsb.resources are a base code plus the limit's place there.
"""

from __future__ import annotations

from enum import IntEnum

from lavad.core.site.conf import Conf, LimitConf


class PendReason(IntEnum):
    """LSF's codes; those from 9001 on are lava's own."""

    JOB_NEW = 1
    JOB_START_TIME = 2
    JOB_DEPEND = 3
    JOB_DEP_INVALID = 4
    JOB_MIG = 5
    JOB_PRE_EXEC = 6
    JOB_NO_FILE = 7
    JOB_ENV = 8
    JOB_PATHS = 9
    JOB_OPEN_FILES = 10
    JOB_EXEC_INIT = 11
    JOB_RESTART_FILE = 12
    JOB_DELAY_SCHED = 13
    JOB_SWITCH = 14
    JOB_DEP_REJECT = 15
    JOB_NO_PASSWD = 17
    JOB_MODIFY = 19
    JOB_REQUEUED = 23
    SYS_UNABLE = 35
    JOB_ARRAY_LIMIT = 38
    JOB_PREEMPTED = 40
    JGROUP_LIMIT = 41
    QUE_INACT = 301
    QUE_WINDOW = 302
    QUE_JOB_LIMIT = 303
    QUE_USR_JLIMIT = 304
    QUE_USR_PJLIMIT = 305
    QUE_PRE_FAIL = 306
    SYS_NOT_READY = 310
    SBD_JOB_REQUEUE = 311
    JOB_SPREAD_TASK = 312
    QUE_SPREAD_TASK = 313
    QUE_PJOB_LIMIT = 314
    QUE_WINDOW_WILL_CLOSE = 315
    RES_LIMIT = 317
    USER_JOB_LIMIT = 601
    UGRP_JOB_LIMIT = 602
    USER_PJOB_LIMIT = 603
    UGRP_PJOB_LIMIT = 604
    USER_RESUME = 605
    USER_STOP = 607
    NO_MAPPING = 608
    RMT_PERMISSION = 609
    ADMIN_STOP = 610
    HOST_RES_REQ = 1001
    HOST_NONEXCLUSIVE = 1002
    HOST_JOB_SSUSP = 1003
    SBD_GETPID = 1005
    SBD_LOCK = 1006
    SBD_ZOMBIE = 1007
    SBD_ROOT = 1008
    HOST_WIN_WILL_CLOSE = 1009
    HOST_MISS_DEADLINE = 1010
    HOST_DISABLED = 1301
    HOST_LOCKED = 1302
    HOST_LESS_SLOTS = 1303
    HOST_WINDOW = 1304
    HOST_JOB_LIMIT = 1305
    QUE_PROC_JLIMIT = 1306
    QUE_HOST_JLIMIT = 1307
    USER_PROC_JLIMIT = 1308
    HOST_USR_JLIMIT = 1309
    HOST_QUE_MEMB = 1310
    HOST_USR_SPEC = 1311
    HOST_PART_USER = 1312
    HOST_NO_USER = 1313
    HOST_ACCPT_ONE = 1314
    LOAD_UNAVAIL = 1315
    HOST_NO_LIM = 1316
    HOST_QUE_RESREQ = 1318
    HOST_SCHED_TYPE = 1319
    JOB_NO_SPAN = 1320
    QUE_NO_SPAN = 1321
    HOST_EXCLUSIVE = 1322
    UGRP_PROC_JLIMIT = 1324
    HOST_LESS_RSVSLOTS = 1328
    HOST_LESS_DURATION = 1329
    HOST_NO_RSVID = 1330
    HOST_ADRSV_ACTIVE = 1332
    HOST_RSV = 1335
    SBD_UNREACH = 1601
    SBD_JOB_QUOTA = 1602
    JOB_START_FAIL = 1603
    JOB_START_UNKNWN = 1604
    SBD_NO_MEM = 1605
    SBD_NO_PROCESS = 1606
    SBD_SOCKETPAIR = 1607
    SBD_JOB_ACCEPT = 1608
    NEVER_SLOTS = 9001
    NO_SUITABLE_HOST = 9002
    GPU_NONE = 9003
    GPU_BUSY = 9004
    NEVER_HOST_SLOTS = 9005
    QUE_GONE = 9006
    SLOTS_HELD = 9007
    HOST_NO_CPUS = 9008
    HOST_NO_TOPOLOGY = 9009
    NEVER_GPUS = 9013
    NEVER_CPUS = 9030
    QUE_DESERVED = 9014
    QUE_GUARANTEE = 9015
    SLOTS_ONE_BY_ONE = 9016
    JOB_DEADLOCK = 9017


LOAD = 2001
QUE_RUSAGE = 2301
JOB_RUSAGE = 2601
NEVER_RUSAGE = 2901
_PER_BASE = 300
LIMIT_SLOTS = 10_000
LIMIT_JOBS = 20_000
LIMIT_RESOURCE = 30_000
_PER_LIMIT = 10_000

INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")


def index_names(conf: Conf) -> tuple[str, ...]:
    """Names of resources in the order in which reasons number them: LSF's load indices, then the site's resources."""
    return INDICES + tuple(resource.name for resource in conf.resources)


def about(base: int, name: str, names: tuple[str, ...]) -> int:
    """The reason code ``base`` (LOAD, QUE_RUSAGE, JOB_RUSAGE, NEVER_RUSAGE) about the resource ``name``."""
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

_R = PendReason
_TEXTS = {
    _R.JOB_NEW: "New job is waiting for scheduling",
    _R.JOB_START_TIME: "The job has a specified start time",
    _R.JOB_DEPEND: "Job dependency condition not satisfied",
    _R.JOB_DEP_INVALID: "Dependency condition invalid or never satisfied",
    _R.JOB_MIG: "Migrating job is waiting for rescheduling",
    _R.JOB_PRE_EXEC: "The job's pre-exec command exited with non-zero status",
    _R.JOB_NO_FILE: "Unable to access job file",
    _R.JOB_ENV: "Unable to set job's environment variables",
    _R.JOB_PATHS: "Unable to determine job's home/working directories",
    _R.JOB_OPEN_FILES: "Unable to open job's I/O buffers",
    _R.JOB_EXEC_INIT: "Job execution initialization failed",
    _R.JOB_RESTART_FILE: "Unable to copy restarting job's checkpoint files",
    _R.JOB_DELAY_SCHED: "The schedule of the job is postponed for a while",
    _R.JOB_SWITCH: "Waiting for re-scheduling after switching queue",
    _R.JOB_DEP_REJECT: "Event is rejected by eeventd due to syntax error",
    _R.JOB_NO_PASSWD: "Failed to get user password",
    _R.JOB_MODIFY: "Waiting for re-scheduling after parameters have been changed",
    _R.JOB_REQUEUED: "Requeue the job for the next run",
    _R.SYS_UNABLE: "System is unable to schedule the job",
    _R.JOB_ARRAY_LIMIT: "The job array has reached its job slot limit",
    _R.JOB_PREEMPTED: "Job was preempted and is waiting for rescheduling",
    _R.JGROUP_LIMIT: "The specified job group has reached its job limit",
    _R.QUE_INACT: "The queue is inactivated by the administrator",
    _R.QUE_WINDOW: "The queue is inactivated by its time windows",
    _R.QUE_JOB_LIMIT: "The queue has reached its job slot limit",
    _R.QUE_USR_JLIMIT: "User has reached the per-user job slot limit of the queue",
    _R.QUE_USR_PJLIMIT: "Not enough per-user job slots of the queue for the parallel job",
    _R.QUE_PRE_FAIL: "The queue's pre-exec command exited with non-zero status",
    _R.SYS_NOT_READY: "System is not ready for scheduling after reconfiguration",
    _R.SBD_JOB_REQUEUE: "Requeued job is waiting for rescheduling",
    _R.JOB_SPREAD_TASK: "Not enough hosts to meet the job's spanning requirement",
    _R.QUE_SPREAD_TASK: "Not enough hosts to meet the queue's spanning requirement",
    _R.QUE_PJOB_LIMIT: "The queue has not enough job slots for the parallel job",
    _R.QUE_WINDOW_WILL_CLOSE: "Job will not finish before queue's run window is closed",
    _R.RES_LIMIT: "Resource limit defined in lsb.resources has been reached",
    _R.USER_JOB_LIMIT: "The user has reached his/her job slot limit",
    _R.UGRP_JOB_LIMIT: "One of the user's groups has reached its job slot limit",
    _R.USER_PJOB_LIMIT: "The user has not enough job slots for the parallel job",
    _R.UGRP_PJOB_LIMIT: "One of user's groups has not enough job slots for the parallel job",
    _R.USER_RESUME: "Waiting for scheduling after resumed by user",
    _R.USER_STOP: "The job was suspended by the user while pending",
    _R.NO_MAPPING: "Unable to determine user account for execution",
    _R.RMT_PERMISSION: "The user has no permission to run the job on remote host/cluster",
    _R.ADMIN_STOP: "The job was suspended by LSF admin or root while pending",
    _R.HOST_RES_REQ: "Job's resource requirements not satisfied",
    _R.HOST_NONEXCLUSIVE: "Job's requirement for exclusive execution not satisfied",
    _R.HOST_JOB_SSUSP: "Higher or equal priority jobs suspended by host load",
    _R.SBD_GETPID: "Unable to get the PID of the restarting job",
    _R.SBD_LOCK: "Unable to lock host for exclusively executing the job",
    _R.SBD_ZOMBIE: "Cleaning up zombie job",
    _R.SBD_ROOT: "Can't run jobs submitted by root",
    _R.HOST_WIN_WILL_CLOSE: "Job will not finish on the host before queue's run window is closed",
    _R.HOST_MISS_DEADLINE: "Job will not finish on the host before job's termination deadline",
    _R.HOST_DISABLED: "Closed by LSF administrator",
    _R.HOST_LOCKED: "Host is locked by LSF administrator",
    _R.HOST_LESS_SLOTS: "Not enough job slot(s)",
    _R.HOST_WINDOW: "Dispatch windows closed",
    _R.HOST_JOB_LIMIT: "Job slot limit reached",
    _R.QUE_PROC_JLIMIT: "Queue's per-CPU job slot limit reached",
    _R.QUE_HOST_JLIMIT: "Queue's per-host job slot limit reached",
    _R.USER_PROC_JLIMIT: "User's per-CPU job slot limit reached",
    _R.HOST_USR_JLIMIT: "Host's per-user job slot limit reached",
    _R.HOST_QUE_MEMB: "Not usable to the queue",
    _R.HOST_USR_SPEC: "Not specified in job submission",
    _R.HOST_PART_USER: "User has no access to the host partition",
    _R.HOST_NO_USER: "There is no such user account",
    _R.HOST_ACCPT_ONE: "Just started a job recently",
    _R.LOAD_UNAVAIL: "Load information unavailable",
    _R.HOST_NO_LIM: "LIM is unreachable now",
    _R.HOST_QUE_RESREQ: "Queue's resource requirements not satisfied",
    _R.HOST_SCHED_TYPE: "Not the same type as the submission host",
    _R.JOB_NO_SPAN: "Not enough processors to meet the job's spanning requirement",
    _R.QUE_NO_SPAN: "Not enough processors to meet the queue's spanning requirement",
    _R.HOST_EXCLUSIVE: "Running an exclusive job",
    _R.UGRP_PROC_JLIMIT: "User group's per-CPU job slot limit reached",
    _R.HOST_LESS_RSVSLOTS: "Not enough reserved job slots at this time for specified reservation ID",
    _R.HOST_LESS_DURATION: "Not enough slots or resources for whole duration of the job",
    _R.HOST_NO_RSVID: "Specified reservation has expired or has been deleted",
    _R.HOST_ADRSV_ACTIVE: "Not enough job slot(s) while advance reservation is active",
    _R.HOST_RSV: "Host does not belong to the specified advance reservation",
    _R.SBD_UNREACH: "Unable to reach slave batch server",
    _R.SBD_JOB_QUOTA: "Number of jobs exceeds quota",
    _R.JOB_START_FAIL: "Failed in talking to server to start the job",
    _R.JOB_START_UNKNWN: "Failed in receiving the reply from server when starting the job",
    _R.SBD_NO_MEM: "Unable to allocate memory to run job",
    _R.SBD_NO_PROCESS: "Unable to fork process to run job",
    _R.SBD_SOCKETPAIR: "Unable to communicate with job process",
    _R.SBD_JOB_ACCEPT: "Slave batch server failed to accept job",
    _R.NEVER_SLOTS: "There are no suitable hosts for the job: no host can ever give it its slots: all together have fewer",
    _R.NO_SUITABLE_HOST: "There are no suitable hosts for the job: no host can ever take it",
    _R.GPU_NONE: "Host does not have the GPUs that the job requires",
    _R.GPU_BUSY: "Job's requirements for reserving resource (ngpus_physical) not satisfied",
    _R.NEVER_HOST_SLOTS: "There are no suitable hosts for the job: no host can ever give it so many slots",
    _R.SLOTS_HELD: "Waiting for the jobs that are preempted for it to end",
    _R.HOST_NO_CPUS: "Not enough processor units to satisfy the job's affinity requirement",
    _R.HOST_NO_TOPOLOGY: "Affinity is not enabled on the host, or its processors are not known",
    _R.SLOTS_ONE_BY_ONE: "Waiting for more job slots, as its queue has GANG=N",
    _R.JOB_DEADLOCK: "Deadlock: the job holds slots that other waiting jobs need, and waits for those that they hold",
    _R.NEVER_CPUS: "There are no suitable hosts for the job: no host can ever give a task the processors that it requires",
    _R.NEVER_GPUS: "There are no suitable hosts for the job: no host can ever give it the GPUs that it requires",
    _R.QUE_DESERVED: "The queue has the slots that it deserves, and other queues wait for theirs",
    _R.QUE_GUARANTEE: "The slots that are left are guaranteed to other queues",
    _R.QUE_GONE: "The queue was removed from the configuration",
}


def text(code: int, conf: Conf) -> str:
    """What ``bjobs -p`` says for a reason, without host counts; "" for a code that is unknown."""
    if code >= LIMIT_SLOTS:
        return _limit_text(code, conf)
    names = index_names(conf)
    for base in (LOAD, QUE_RUSAGE, JOB_RUSAGE, NEVER_RUSAGE):
        if base <= code < base + _PER_BASE:
            at = code - base
            return _resource_text(base, at, names[at] if at < len(names) else "resource")
    return _TEXTS[_R(code)] if code in _TEXTS else ""


def _resource_text(base: int, at: int, name: str) -> str:
    if base == QUE_RUSAGE:
        return f"Queue requirements for reserving resource ({name}) not satisfied"
    if base == NEVER_RUSAGE:
        return f"There are no suitable hosts for the job: no host can ever have the {name} that it reserves"
    if base == JOB_RUSAGE:
        return f"Job requirements for reserving resource ({name}) not satisfied"
    return _LOAD_TEXTS[at] if at < len(_LOAD_TEXTS) else f"Load index ({name}) is beyond threshold"


def _slots_of(limit: LimitConf) -> str:
    return f"{limit.processor_slots:g} per processor" if limit.slots is None and limit.processor_slots else str(limit.slots)


def _limit_text(code: int, conf: Conf) -> str:
    base = code // _PER_LIMIT * _PER_LIMIT
    at = code - base
    if at >= len(conf.limits):
        return _TEXTS[_R.RES_LIMIT]
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
    return f"Resource limit defined on {where} has been reached (Limit Name: {limit.name})"
