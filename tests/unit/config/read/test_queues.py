"""A realistic lsb.queues with some fifty parameters, and each parameter's forms."""

import msgspec
import pytest

from config.model.values import (
    Chkpnt,
    Interactive,
    JobAction,
    JobControl,
    Limits,
    Preemption,
    RequeueExit,
    TaskLimit,
    TerminateWhen,
    Thresholds,
)
from config.read.load import load

BIG = r"""
# the queue of the engineers
Begin Queue
QUEUE_NAME     = big             # a comment
PRIORITY       = 70
NICE           = 5
ADMINISTRATORS = ann bob
USERS          = all ~mallory dev/
HOSTS          = hostA+1 hostB others
QJOB_LIMIT     = 200
UJOB_LIMIT     = 20
PJOB_LIMIT     = 1.5
HJOB_LIMIT     = 8
RUN_WINDOW     = 5:19:00-1:8:30 20:00-8:30
DISPATCH_WINDOW = 18:00-7:00
NEW_JOB_SCHED_DELAY = 2
JOB_ACCEPT_INTERVAL = 1
RUNLIMIT       = 1:00 24:00/Pent
CPULIMIT       = 600
MEMLIMIT       = 5000 10000
SWAPLIMIT      = 20000
FILELIMIT      = 20000
DATALIMIT      = 20000 20000
STACKLIMIT     = 2048
CORELIMIT      = 0
PROCESSLIMIT   = 5 20
THREADLIMIT    = 50
PROCLIMIT      = 2 4 64
HOSTLIMIT_PER_JOB = 16
RES_REQ        = select[type==any && mem>100] \
                 rusage[mem=100]
GPU_REQ        = "num=2:mode=exclusive_process"
r1m            = 0.7/2.0
ut             = 0.9
mem            = /20
swp            = 10/-
it             = -
STOP_COND      = select[((!cs && it < 5) || (cs && mem < 15 && swp < 50))]
RESUME_COND    = (it > 5)
MIG            = 10
EXCLUSIVE      = Y
INTERACTIVE    = NO
RERUNNABLE     = yes
CHKPNT         = /share/chk 30
PRE_EXEC       = /usr/local/pre -x "a # b"
POST_EXEC      = /usr/local/post | grep -v "Hello"
PRE_POST_EXEC_USER = root
JOB_STARTER    = csh -c "%USRCMD;sleep 10"
REQUEUE_EXIT_VALUES = all ~1 ~2 EXCLUDE(9)
SUCCESS_EXIT_VALUES = 3 4
MAX_JOB_REQUEUE = 3
JOB_CONTROLS   = SUSPEND[CHKPNT] TERMINATE[kill -9 $LSB_JOBPIDS; echo [gone]]
TERMINATE_WHEN = WINDOW LOAD
JOB_WARNING_ACTION = URG
JOB_ACTION_WARNING_TIME = 2
FAIRSHARE      = USER_SHARES[[dev, 10] [ann bob, 5] [default, 1]]
HIST_HOURS     = 8
PREEMPTION     = PREEMPTIVE[low+1] PREEMPTABLE
SLOT_RESERVE   = MAX_RESERVE_TIME[20]
BACKFILL       = Y
IGNORE_DEADLINE = y
IMPT_JOBBKLG   = 50
MAX_RSCHED_TIME = 20
DEFAULT_HOST_SPEC = Pent
LEASE          = 5m
LEASE_MARGIN   = 50
HOST_TIMEOUT   = 30
DESCRIPTION    = For big jobs, \
 on two lines.
End Queue
Begin Queue
QUEUE_NAME     = low
End Queue
"""

EXPECTED = {
    "priority": 70,
    "nice": 5,
    "administrators": ("ann", "bob"),
    "users": ("all", "~mallory", "dev/"),
    "hosts": ("hostA+1", "hostB", "others"),
    "qjob_limit": 200,
    "ujob_limit": 20,
    "pjob_limit": 1.5,
    "hjob_limit": 8,
    "run_window": "5:19:00-1:8:30 20:00-8:30",
    "dispatch_window": "18:00-7:00",
    "new_job_sched_delay": 2,
    "job_accept_interval": 1,
    "defaults": Limits(run=3600, mem=5000, data=20000, processes=5),
    "limits": Limits(86400, 36000, 10000, 20000, 20000, 20000, 2048, 0, 20, 50),
    "tasklimit": TaskLimit(2, 4, 64),
    "hostlimit_per_job": 16,
    "gpu_req": "num=2:mode=exclusive_process",
    "thresholds": Thresholds(sched=(("r1m", 0.7), ("ut", 0.9), ("swp", 10.0)), stop=(("r1m", 2.0), ("mem", 20.0))),
    "stop_cond": "select[((!cs && it < 5) || (cs && mem < 15 && swp < 50))]",
    "resume_cond": "it > 5",
    "mig": 600,
    "exclusive": True,
    "interactive": Interactive.NO,
    "rerunnable": True,
    "chkpnt": Chkpnt("/share/chk", 1800),
    "pre_exec": '/usr/local/pre -x "a # b"',
    "post_exec": '/usr/local/post | grep -v "Hello"',
    "pre_post_exec_user": "root",
    "job_starter": 'csh -c "%USRCMD;sleep 10"',
    "requeue_exit_values": RequeueExit(all=True, never=(1, 2), excluding=(9,)),
    "success_exit_values": (3, 4),
    "max_job_requeue": 3,
    "job_controls": (
        JobControl(JobAction.SUSPEND, "CHKPNT"),
        JobControl(JobAction.TERMINATE, "kill -9 $LSB_JOBPIDS; echo [gone]"),
    ),
    "terminate_when": (TerminateWhen.WINDOW, TerminateWhen.LOAD),
    "job_warning_action": "URG",
    "job_action_warning_time": 120,
    "fairshare": (("dev", 10), ("ann", 5), ("bob", 5), ("default", 1)),
    "hist_hours": 8.0,
    "preemption": Preemption(preemptive=True, preemptable=True, preempts=(("low", 1),)),
    "slot_reserve": 20,
    "backfill": True,
    "ignore_deadline": True,
    "default_host_spec": "Pent",
    "lease": 300,
    "lease_margin": 50,
    "host_timeout": 30,
}


@pytest.fixture
def queue_of(tmp_path):
    def read(text):
        (tmp_path / "lsb.queues").write_text(text)
        loaded = load(str(tmp_path))
        return loaded.config.queues[0], loaded.problems

    return read


def test_a_big_queue_is_read_whole(queue_of):
    queue, problems = queue_of(BIG)
    assert not any(problem.fatal for problem in problems)
    found = msgspec.structs.asdict(queue)
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    assert queue.description.split() == ["For", "big", "jobs,", "on", "two", "lines."]
    assert queue.res_req.split() == ["select[type==any", "&&", "mem>100]", "rusage[mem=100]"]


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        ("TASKLIMIT = 8", "tasklimit", TaskLimit(1, 1, 8)),
        ("TASKLIMIT = 2 8", "tasklimit", TaskLimit(2, 2, 8)),
        ("RUNLIMIT = 30", "limits", Limits(run=1800)),
        ("CHKPNT = dir", "chkpnt", Chkpnt("dir")),
        ("REQUEUE_EXIT_VALUES = 3 EXCLUDE(20 21)", "requeue_exit_values", RequeueExit(values=(3,), excluding=(20, 21))),
        ("PREEMPTION = PREEMPTABLE", "preemption", Preemption(preemptable=True)),
        ("UJOB_LIMIT = -", "ujob_limit", None),
        ("UJOB_LIMIT = 0", "ujob_limit", 0),
        ("INTERACTIVE = Y", "interactive", Interactive.YES),
        ("INTERACTIVE = only", "interactive", Interactive.ONLY),
        (
            "HOSTS = node[01-03,7]+2 ~gw[1-2] others",
            "hosts",
            ("node01+2", "node02+2", "node03+2", "node7+2", "~gw1", "~gw2", "others"),
        ),
        ("cpu = 1/2", "thresholds", Thresholds((("r1m", 1.0),), (("r1m", 2.0),))),
        ("USERS = (a b)", "users", ("a", "b")),
    ],
)
def test_forms(queue_of, line, field, expected):
    queue, problems = queue_of(f"Begin Queue\nQUEUE_NAME = q\n{line}\nEnd Queue\n")
    assert problems == ()
    assert getattr(queue, field) == expected


@pytest.mark.parametrize(
    "line",
    [
        "PRIORITY = 0",
        "PRIORITY = 1.5",
        "TASKLIMIT = 8 2",
        "TASKLIMIT = 0",
        "TASKLIMIT = 1 2 3 4",
        "RUNLIMIT = 20 10",
        "RUNLIMIT = 1 2 3",
        "RUNLIMIT = 10/",
        "MEMLIMIT = 4X",
        "CHKPNT = a b c",
        "CHKPNT = \u00a0",
        "CHKPNT = a 0",
        "RERUNNABLE = perhaps",
        "FAIRSHARE = all",
        "FAIRSHARE = USER_SHARES[[a]]",
        "FAIRSHARE = USER_SHARES[[]]",
        "PREEMPTION = SOMETIMES",
        "SLOT_RESERVE = 20",
        "REQUEUE_EXIT_VALUES = 256",
        "JOB_CONTROLS = SUSPEND[",
        "JOB_CONTROLS = STOP[x]",
        "TERMINATE_WHEN = NOON",
        "EXCLUSIVE = CUBE",
        "LEASE = 0",
        "r1m = 1/2/3",
        "DISPATCH_WINDOW = 8",
        "NICE = 50",
        "JOB_ACTION_WARNING_TIME = soon",
        "INTERACTIVE = MAYBE",
    ],
)
def test_what_is_wrong_is_an_error_on_its_line_and_leaves_the_default(queue_of, line):
    queue, [problem] = queue_of(f"Begin Queue\nQUEUE_NAME = q\n{line}\nEnd Queue\n")
    assert (problem.line, problem.fatal) == (3, True)
    assert problem.text.startswith(f"queue q: {line.split()[0]}: ")
    assert queue == queue_of("Begin Queue\nQUEUE_NAME = q\nEnd Queue\n")[0]


@pytest.mark.parametrize(
    ("conf", "cores"),
    [
        ("LSB_RESOURCE_ENFORCE=memory cpu\nLSF_CGROUP_CORE_AUTO_CREATE=Y\n", True),
        ("LSB_RESOURCE_ENFORCE=memory cpu\nLSF_CGROUP_CORE_AUTO_CREATE=N\n", False),
        ("LSB_RESOURCE_ENFORCE=memory cpu\n", False),
        ("LSB_RESOURCE_ENFORCE=memory\nLSF_CGROUP_CORE_AUTO_CREATE=Y\n", False),
    ],
)
def test_each_slot_has_a_core_where_the_site_wants_it(tmp_path, conf: str, cores: bool):
    named = ["", "rusage[mem=5]", "affinity[thread(2)]", "affinity [core(2)]", "{2*{}} + {{}}"]
    queues = [f"Begin Queue\nQUEUE_NAME = q{at}\nRES_REQ = {text}\nEnd Queue\n" for at, text in enumerate(named)]
    (tmp_path / "lsf.conf").write_text(conf)
    (tmp_path / "lsb.queues").write_text("".join(queues))
    found = load(str(tmp_path))
    added = ["affinity[core(1)]", "rusage[mem=5] affinity[core(1)]"] if cores else named[:2]
    assert [queue.res_req for queue in found.config.queues] == [*added, *named[2:]]
    told = [problem.text for problem in found.problems if "AUTO_CREATE" in problem.text]
    useless = "Y" in conf and "cpu" not in conf
    assert told == ["LSF_CGROUP_CORE_AUTO_CREATE has no effect: LSB_RESOURCE_ENFORCE has no cpu"] * useless
