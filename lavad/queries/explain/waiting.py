"""Every pend reason: what it means, and what to do."""

from __future__ import annotations

from lavad.core.rules.avoided_hosts import STAYS_AWAY
from lavad.core.site.pend_reason import (
    JOB_RUSAGE,
    LIMIT_JOBS,
    LIMIT_RESOURCE,
    LIMIT_SLOTS,
    LOAD,
    NEVER_RUSAGE,
    NEVER_TOGETHER,
    POOL,
    QUE_RUSAGE,
    PendReason,
)
from lavad.queries.explain.entry import Entry, Kind

_R = PendReason
_ASK_FOR_LESS = "lava why JOB says the smallest change of the job that would start it; bmod makes it"
_WAIT = "nothing: it starts by itself"
_ADMIN = "ask an administrator"
_NEVER = "lshosts and bhosts -l show what hosts have; bmod asks for less or for another kind of host"
_GPUS = "lshosts -gpu shows the GPUs of hosts; bmod -gpu asks for others"

_SAID: dict[PendReason, tuple[str, str]] = {
    _R.JOB_NEW: ("The scheduler has not looked at it yet.", _WAIT),
    _R.JOB_START_TIME: ("It was submitted with a start time (-b) that has not come.", "bmod -bn JOB takes the time away"),
    _R.JOB_DEPEND: (
        "Its condition (-w) names jobs that have not got so far.",
        "bjdepinfo JOB shows which; bmod -wn JOB takes the condition away",
    ),
    _R.JOB_DEP_INVALID: (
        "Its condition (-w) can no longer be met: a job that it names has ended in another way.",
        "bmod -w CONDITION JOB gives another one, bmod -wn JOB takes it away; else bkill JOB",
    ),
    _R.JOB_MIG: (
        "It was migrated (bmig, or its queue's MIG) and waits for other hosts; where none can run it, those that it left may "
        f"again after {STAYS_AWAY:g} seconds.",
        _WAIT,
    ),
    _R.JOB_PRE_EXEC: (
        "Its pre-execution command (-E, or the queue's PRE_EXEC) failed on a host; it is tried again after a while.",
        "read what the command says (bhist -l JOB), mend it, or bmod -E COMMAND JOB",
    ),
    _R.JOB_DELAY_SCHED: (
        "A host did not start it, or it has failed lately; it is tried again after a delay that doubles up to 5 minutes.",
        "bhist -l JOB says what the host said; mend that",
    ),
    _R.JOB_SWITCH: ("It was moved to another queue.", _WAIT),
    _R.JOB_REQUEUED: (
        "It ran, was put back in its queue (brequeue, REQUEUE_EXIT_VALUES, a lost host), and waits to run again.",
        "bhist -l JOB says why",
    ),
    _R.SYS_UNABLE: ("The scheduler cannot plan it; the log of lavad says why.", _ADMIN),
    _R.JOB_ARRAY_LIMIT: (
        "As many elements of its array run as %LIMIT of its name allows.",
        'bmod -J "%LIMIT" JOB raises the limit; %0 takes it away',
    ),
    _R.JGROUP_LIMIT: ("Its job group (-g) runs as many jobs as it may.", "bgmod -L NUMBER GROUP raises the limit"),
    _R.QUE_INACT: ("Its queue was made inactive (badmin qinact): jobs are accepted and wait.", f"bswitch QUEUE JOB, or {_ADMIN}"),
    _R.QUE_WINDOW: (
        "Its queue starts jobs in its windows of time only.",
        "bqueues -l shows the windows; wait, or bswitch QUEUE JOB",
    ),
    _R.QUE_JOB_LIMIT: ("Its queue uses all the slots that it may (QJOB_LIMIT).", "wait, or bswitch QUEUE JOB"),
    _R.QUE_USR_JLIMIT: (
        "Your jobs use all the slots of its queue that a user may have (UJOB_LIMIT).",
        "wait, or bswitch QUEUE JOB",
    ),
    _R.QUE_USR_PJLIMIT: (
        "It asks for more slots than a user has left in its queue (UJOB_LIMIT).",
        "wait until your other jobs end, or bmod -n FEWER JOB",
    ),
    _R.JOB_SPREAD_TASK: ("span[ptile] or span[hosts] asks for more hosts with room than there are.", _ASK_FOR_LESS),
    _R.QUE_PJOB_LIMIT: ("Its queue has too few slots left for it (QJOB_LIMIT).", "wait, bmod -n FEWER JOB, or bswitch QUEUE JOB"),
    _R.QUE_WINDOW_WILL_CLOSE: (
        "It would not end before the run window of its queue closes, by its run limit.",
        "bmod -W LESS JOB if it takes less; else wait for the next window, or bswitch QUEUE JOB",
    ),
    _R.USER_JOB_LIMIT: ("Your jobs use all the slots that you may have (lsb.users).", "wait; busers shows the limit"),
    _R.UGRP_JOB_LIMIT: (
        "A group of yours uses all the slots that it may have (lsb.users).",
        "wait; busers GROUP shows the limit",
    ),
    _R.USER_PJOB_LIMIT: ("It asks for more slots than you have left (lsb.users).", "wait, or bmod -n FEWER JOB"),
    _R.UGRP_PJOB_LIMIT: ("It asks for more slots than a group of yours has left (lsb.users).", "wait, or bmod -n FEWER JOB"),
    _R.USER_STOP: ("It was held while it waited (bstop, or bsub -H).", "bresume JOB releases it"),
    _R.ADMIN_STOP: (
        "An administrator, of the cluster, its queue or a user group, held it while it waited.",
        f"{_ADMIN}, who releases it; with ENABLE_USER_RESUME (lsb.params) you may, by bresume JOB",
    ),
    _R.HOST_RES_REQ: (
        "The hosts are not of the kind that its requirement (-R select) asks for.",
        "lshosts and lsload show what hosts are; bmod -R REQUIREMENT JOB",
    ),
    _R.HOST_NONEXCLUSIVE: ("It wants hosts for itself (-x), and other jobs run there.", "wait, or bmod -xn JOB"),
    _R.HOST_MISS_DEADLINE: (
        "It would not end before its termination time (-t), by its run limit.",
        "bmod -t TIME JOB, or bmod -W LESS JOB if it takes less",
    ),
    _R.HOST_DISABLED: ("An administrator closed the hosts (badmin hclose).", f"bhosts -l HOST says why; {_ADMIN}"),
    _R.HOST_LESS_SLOTS: ("The hosts have too few free slots.", _ASK_FOR_LESS),
    _R.HOST_WINDOW: ("The hosts start jobs in their windows of time only.", "bhosts -l HOST shows the windows; wait"),
    _R.HOST_JOB_LIMIT: ("The hosts run as many jobs as they have slots (MXJ).", _ASK_FOR_LESS),
    _R.QUE_PROC_JLIMIT: ("Its queue uses all that it may of each processor (PJOB_LIMIT).", "wait, or bswitch QUEUE JOB"),
    _R.QUE_HOST_JLIMIT: ("Its queue uses all the slots of each host that it may (HJOB_LIMIT).", "wait, or bswitch QUEUE JOB"),
    _R.USER_PROC_JLIMIT: ("Your jobs use all that you may of each processor (JL/P of lsb.users).", "wait"),
    _R.HOST_USR_JLIMIT: (
        "Your jobs use all the slots of a host that a user may (JL/U of lsb.hosts).",
        "wait, or other hosts (-m)",
    ),
    _R.HOST_QUE_MEMB: (
        "Its queue does not use these hosts (HOSTS of lsb.queues).",
        "bqueues -l QUEUE shows its hosts; bswitch QUEUE JOB",
    ),
    _R.HOST_USR_SPEC: ("It named other hosts (-m).", "bmod -mn JOB lets it run anywhere"),
    _R.HOST_ACCPT_ONE: ("A host takes the next job a while after the last (JOB_ACCEPT_INTERVAL).", _WAIT),
    _R.LOAD_UNAVAIL: (
        "The hosts do not report their load: their agents do not run or cannot reach the master.",
        f"lsload; {_ADMIN}",
    ),
    _R.HOST_QUE_RESREQ: (
        "The hosts are not of the kind that RES_REQ of its queue asks for.",
        "bqueues -l QUEUE shows it; bswitch QUEUE JOB",
    ),
    _R.HOST_SCHED_TYPE: (
        "The hosts are of another type than the one it was submitted from.",
        'bmod -R "select[type==any]" JOB if the program runs there, too',
    ),
    _R.JOB_NO_SPAN: ("No host, or no set of hosts, has room for span[] of the job.", _ASK_FOR_LESS),
    _R.QUE_NO_SPAN: ("No host, or no set of hosts, has room for span[] of its queue.", "wait, or bswitch QUEUE JOB"),
    _R.HOST_EXCLUSIVE: ("A job that has the hosts for itself (-x) runs there.", _WAIT),
    _R.UGRP_PROC_JLIMIT: ("A group of yours uses all that it may of each processor (JL/P of lsb.users).", "wait"),
    _R.HOST_LESS_RSVSLOTS: (
        "Its advance reservation (-U) has too few free slots now.",
        "brsvs shows them; wait, or bmod -n FEWER JOB",
    ),
    _R.HOST_LESS_DURATION: (
        "Slots are free now, but others were promised them before it would end, by its run limit.",
        "bmod -W LESS JOB if it takes less: it may then run before them",
    ),
    _R.HOST_NO_RSVID: ("Its advance reservation (-U) is over or was deleted.", "bmod -Un JOB runs it without"),
    _R.HOST_ADRSV_ACTIVE: ("An advance reservation of others has the slots now.", "brsvs shows until when; wait"),
    _R.HOST_RSV: ("The hosts are not those of its advance reservation (-U).", "brsvs shows its hosts"),
    _R.SBD_UNREACH: ("The master has no news of these hosts.", f"bhosts; {_ADMIN}: is lava-agent running there?"),
    _R.JOB_START_FAIL: (
        "A host did not start it, and it is tried again, elsewhere if possible.",
        "what the host said stands behind the reason, and in bhist -l JOB; mend that",
    ),
    _R.NEVER_SLOTS: ("It asks for more slots than all hosts that it may use have together.", _NEVER),
    _R.NO_SUITABLE_HOST: ("No host could ever take it, even an empty one.", _NEVER),
    _R.GPU_NONE: ("The hosts have no GPUs such as it asks for.", _GPUS),
    _R.GPU_BUSY: ("The GPUs that it could have are in use.", "bhosts -gpu shows who has them; wait, or bmod -gpu for fewer"),
    _R.NEVER_HOST_SLOTS: ("It asks for more slots on a host than any has.", _NEVER),
    _R.NEVER_SLOTS_BY_CPU: (
        "Hosts have the slots, but give a parallel job no more than one for each of their CPUs.",
        f"bmod -n FEWER JOB; {_ADMIN}: PARALLEL_SCHED_BY_SLOT=Y in lsb.params places by slots",
    ),
    _R.QUE_GONE: ("Its queue is no longer configured.", "bswitch QUEUE JOB"),
    _R.SLOTS_HELD: ("Jobs that it preempts are ending; their slots are held for it.", _WAIT),
    _R.GPU_CLOSED: (
        "GPUs that it could have were closed: by an administrator, or as they are broken.",
        "bhosts -gpu -l HOST says why; an administrator opens them with badmin gpuopen",
    ),
    _R.HOST_NO_CPUS: ("The hosts have too few free processors for affinity[] of the job.", _ASK_FOR_LESS),
    _R.HOST_NO_TOPOLOGY: (
        "The hosts bind no processors, or theirs are not known.",
        "bhosts -aff shows which do; -m names such hosts",
    ),
    _R.NEVER_GPUS: ("No host has so many GPUs for it.", _GPUS),
    _R.NEVER_GPUS_TOGETHER: ("The hosts that it may use have fewer GPUs together than its tasks ask for.", _GPUS),
    _R.NEVER_GPU_MODEL: ("No host has so many GPUs of that model.", _GPUS),
    _R.NEVER_GPU_MEM: ("No GPU has so much memory.", _GPUS),
    _R.NEVER_GPU_LINKS: (
        "No host has so many GPUs that are linked by NVLink.",
        "lsload -gpuload and lshosts -gpu; leave glink out",
    ),
    _R.NEVER_GPU_TILES: ("No host has GPUs spread over its sockets in that way.", "leave gtile out, or ask for another"),
    _R.NEVER_GPU_MIG: ("No GPU is split into instances of that size.", "lshosts -gpu -mig shows the sizes"),
    _R.NEVER_GPU_WHOLE: ("The GPUs are split (MIG), and it asks for whole ones.", "ask for mig=SIZE"),
    _R.NEVER_CPUS: ("No host has so many processors for one task (affinity[]).", "bhosts -aff; ask for fewer a task"),
    _R.QUE_DESERVED: ("Its queue has its share of the slots, and others wait for theirs.", "wait, or bswitch QUEUE JOB"),
    _R.QUE_GUARANTEE: (
        "The free slots are guaranteed to other queues.",
        "bresources -g shows the guarantees; wait, or bswitch QUEUE JOB",
    ),
    _R.QUE_GPUS_DESERVED: ("Its queue has its share of the GPUs, and others wait for theirs.", "wait, or bswitch QUEUE JOB"),
    _R.QUE_GPUS_GUARANTEE: ("The free GPUs are guaranteed to other queues.", "bresources -g; wait, or bswitch QUEUE JOB"),
    _R.QUE_GPU_CAPABILITY: ("Its queue has all the GPUs that it may ever have.", "wait, or bswitch QUEUE JOB"),
    _R.SLA_OPTIMUM: (
        "Its service class has a goal in time, and as many of its jobs have slots as that needs.",
        "bsla CLASS shows the goal and its optimum; wait, or bmod -slan JOB",
    ),
    _R.SLOTS_ONE_BY_ONE: ("Its queue gives slots one by one (GANG=N), and it has not all of them.", _WAIT),
    _R.JOB_DEADLOCK: (
        "It and other jobs of queues with GANG=N hold slots that each other needs.",
        "bkill or brequeue one of them; an administrator sets GANG=Y",
    ),
}
_BASES = (
    (
        LOAD,
        "LOAD",
        "… is beyond threshold",
        "The load of the hosts is above the threshold of the queue or of the requirement.",
        "lsload shows it; wait, or other hosts (-m)",
    ),
    (
        QUE_RUSAGE,
        "QUE_RUSAGE",
        "Queue requirements for reserving resource (…) not satisfied",
        "The hosts have too little left of what each job of its queue reserves.",
        "wait, or bswitch QUEUE JOB",
    ),
    (
        JOB_RUSAGE,
        "JOB_RUSAGE",
        "Job requirements for reserving resource (…) not satisfied",
        "The hosts have too little left of what it reserves (-R rusage, -M).",
        _ASK_FOR_LESS,
    ),
    (
        NEVER_RUSAGE,
        "NEVER_RUSAGE",
        "There are no suitable hosts for the job: no host can ever have the … that it reserves",
        "It reserves more than any host has.",
        _NEVER,
    ),
    (
        NEVER_TOGETHER,
        "NEVER_TOGETHER",
        "There are no suitable hosts for the job: all together can never have the … that its slots reserve",
        "It reserves so much for each slot that the hosts which it may use have room for fewer slots, even when they are empty.",
        _NEVER,
    ),
    (
        LIMIT_SLOTS,
        "LIMIT_SLOTS",
        "Resource (slot) limit defined on … has been reached",
        "A limit of lsb.resources on slots, which the text names.",
        "blimits shows its use; wait, or bmod -n FEWER JOB",
    ),
    (
        LIMIT_JOBS,
        "LIMIT_JOBS",
        "JOBS limit defined on … has been reached",
        "A limit of lsb.resources on jobs, which the text names.",
        "blimits shows its use; wait",
    ),
    (
        LIMIT_RESOURCE,
        "LIMIT_RESOURCE",
        "Resource (…) limit defined on … has been reached|Resource limit defined on … has been reached",
        "A limit of lsb.resources on memory or another resource, which the text names.",
        "blimits shows its use; wait, or reserve less",
    ),
    (
        POOL,
        "POOL",
        "The resources that are left are guaranteed to service classes (…)",
        "What is free in a guaranteed resource pool is kept for the service classes that it is guaranteed to.",
        "bresources -g shows the pool, bsla the classes; wait, other hosts (-m), or bmod -sla CLASS JOB",
    ),
)


def entries() -> list[Entry]:
    """All of them, by code: LSF's that lava does not give as well, as scripts know them."""
    found = []
    for reason in PendReason:
        means, do = _SAID.get(reason, ("A code of LSF; in lava nothing leads to it.", "-"))
        found.append(Entry(Kind.PEND, reason.name, int(reason), reason.text, means, do))
    found += [Entry(Kind.PEND, name, base, text, means, do) for base, name, text, means, do in _BASES]
    return sorted(found, key=lambda entry: entry.code or 0)


def given() -> frozenset[PendReason]:
    """Those that lava gives."""
    return frozenset(_SAID)
