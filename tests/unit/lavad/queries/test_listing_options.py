"""Options of LSF 10's listings, and the paragraphs of bqueues -l and bparams -l."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

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
)
from lavad.core import events as ev
from lavad.core.job.job import End, Placed, TaskEnd
from lavad.core.job.message import Message
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import ReservedStart, WhyClass
from lavad.core.site.reservation import Reservation
from tests.support.worlds.query_cluster import ADMIN, ALICE, QueryCluster, at


def with_queue(c: QueryCluster, name: str, **fields: object) -> None:
    conf = c.cluster.conf
    queues = tuple(replace(queue, **fields) if queue.name == name else queue for queue in conf.queues)
    c.feed(ev.Configured(at=at("11:39:00"), conf=replace(conf, queues=queues)))


def waiting() -> QueryCluster:
    c = QueryCluster()
    c.submit(1, name="held", held=True)
    c.submit(2, name="full", text={"description": "nightly run"})
    c.submit(3, name="big", resreq="rusage[scratch=5]", slots=2, max_slots=2)
    for job, code in ((2, 303), (3, 2)):
        c.soft.why[c.cluster.jobs.rows[job].spec] = WhyClass(((code, 0, ()),))
    return c


def names(c: QueryCluster, *words: str, **options: Any) -> list[str]:
    return c.ask("bjobs", *words, o="job_name", noheader=True, **options)[0].split()


def test_eligible_and_ineligible_jobs() -> None:
    assert names(waiting(), pe=True) == ["full"]
    assert names(waiting(), pi=True) == ["held", "big"]
    assert " The queue" in waiting().ask("bjobs", pe=True)[0]


def test_jobs_by_description_and_by_the_resources_they_ask_for() -> None:
    assert names(waiting(), Jd="night*") == ["full"]
    assert names(waiting(), rusage="scratch") == ["big"]
    assert names(waiting(), rusage="scratch,mem") == []  # all of them in one alternative
    assert waiting().ask("bjobs", rusage=" ")[2] == 255


@pytest.mark.parametrize(
    "option",
    [{"Lp": "p"}, {"fwd": True}, {"plan": True}, {"x": True}, {"data": True}, {"ss": True}],
)
def test_what_no_job_has_finds_none(option: dict[str, Any]) -> None:
    assert waiting().ask("bjobs", **option)[::2] == ("", 0)


def test_a_long_name_with_a_value_is_no_bundle_of_flags() -> None:
    assert waiting().ask("bjobs", dal="x")[1:] == ("bjobs: option -dal is not supported by lava\n", 255)


def test_pend_reasons_summed_up() -> None:
    lines = waiting().ask("bjobs", psum=True)[0].splitlines()
    assert lines[1] == "Summarizing 3 pending jobs in cluster (openlava):"
    assert any(line.split() == ["The", "job", "has", "a", "specified", "start", "time:", "1", "jobs"] for line in lines), lines


def test_jobs_that_run_too_long_do_nothing_or_ended_too_soon() -> None:
    c = QueryCluster(detect_idle_job_after=60)
    c.submit(1, name="long")
    c.start(1, "11:20:00")
    c.submit(2, name="short")
    c.start(2, "11:39:50")
    c.finish(2, "11:39:51")
    with_queue(c, "normal", job_overrun=600, job_underrun=60, job_idle=0.5)
    assert c.ask("bjobs", x=True, noheader=True, o="job_name exception_status")[0].split() == ["long", "overrun", "idle"]
    assert c.ask("bjobs", x=True, a=True, noheader=True, o="except_stat")[0].split() == ["overrun", "idle", "underrun"]
    long = c.ask("bqueues", "normal", l=True)[0]
    assert "JOB EXCEPTION PARAMETERS:" in long
    assert [row.split() for row in long.splitlines() if row.startswith((" Threshold", " Jobs"))] == [
        ["Threshold", "10", "1", "0.50"], ["Jobs", "1", "0", "1"],
    ]  # fmt: skip


def test_a_queue_at_length_shows_every_parameter() -> None:
    c = QueryCluster()
    with_queue(
        c, "fair", nice=5, administrators=("ann", "bob"), users=("ugA", "carl"), hosts=("hgA", "ol3"), pjob_limit=1.5,
        defaults=Limits(run=600), limits=Limits(run=3600, cpu=7200, mem=5000, core=0, processes=20), default_host_spec="ol1",
        tasklimit=TaskLimit(2, 4, 64), hostlimit_per_job=16, mig=600, new_job_sched_delay=2,
        job_accept_interval=1, exclusive=True, backfill=True, ignore_deadline=True, interactive=Interactive.NO,
        preemption=Preemption(True, True, (("low", 1),)), run_window="20:00-8:30", dispatch_window="18:00-7:00", pre_exec="/pre",
        post_exec="/post", pre_post_exec_user="root", job_starter="csh -c",
        requeue_exit_values=RequeueExit(values=(99,)), success_exit_values=(3, 4),
        res_req="select[mem>10]", gpu_req="num=1", slot_reserve=20, stop_cond="ut > 0.9", resume_cond="ut < 0.5",
        chkpnt=Chkpnt("/ckpt", 1800), rerunnable=True, max_job_requeue=3, job_action_warning_time=120, job_warning_action="URG",
        job_controls=(JobControl(JobAction.SUSPEND, "CHKPNT"),
                      JobControl(JobAction.TERMINATE, "kill -9 $LSB_JOBPIDS; echo [gone]")),
        terminate_when=(TerminateWhen.WINDOW, TerminateWhen.LOAD),
    )  # fmt: skip
    text = c.ask("bqueues", "fair", l=True)[0]
    for line in (
        "  35   5  Open:Inact_Win ", "   - ", " 1.5 ", "Migration threshold is 10 minutes",
        "Schedule delay for a new job is 2 seconds",
        "Interval for a host to accept two jobs is 60 seconds", "DEFAULT LIMITS:\n RUNLIMIT                \n 10.0 min of ol1",
        "MAXIMUM LIMITS:\n CPULIMIT                 RUNLIMIT                \n 120.0 min of ol1         60.0 min of ol1",
        " CORELIMIT MEMLIMIT PROCESSLIMIT\n", " TASKLIMIT\n 2 4 64", " HOSTLIMIT_PER_JOB\n 16",
        "SCHEDULING POLICIES:  BACKFILL  IGNORE_DEADLINE  EXCLUSIVE  NO_INTERACTIVE  PREEMPTIVE  PREEMPTABLE",
        "DEFAULT HOST SPECIFICATION:  ol1", "RUN_WINDOWS:  20:00-8:30", "DISPATCH_WINDOW:  18:00-7:00", "USERS:  ugA/ carl",
        "HOSTS:  hgA/ ol3", "ADMINISTRATORS:  ann bob", "PRE_EXEC:  /pre", "POST_EXEC:  /post", "PRE_POST_EXEC_USER:  root",
        "REQUEUE_EXIT_VALUES:  99", "SUCCESS_EXIT_VALUES:  3 4", "RES_REQ:  select[mem>10]", "GPU_REQ:  num=1",
        "Maximum slot reservation time:  20 periods", "RESUME_COND:  ut < 0.5", "STOP_COND:  ut > 0.9", "JOB_STARTER:  csh -c",
        "CHKPNTDIR:  /ckpt", "CHKPNTPERIOD:  30", "RERUNNABLE:  yes", "MAX_JOB_REQUEUE:  3",
        "JOB_ACTION_WARNING_TIME:  2 minutes", "JOB_WARNING_ACTION:  URG",
        "JOB_CONTROLS:\n    SUSPEND:      [CHKPNT]\n    TERMINATE:    [kill -9 $LSB_JOBPIDS; echo [gone]]",
        "TERMINATE_WHEN = WINDOW LOAD",
    ):  # fmt: skip
        assert line in text, line


def test_the_default_queue_says_so() -> None:
    c = QueryCluster()
    assert "  --   This is the default queue.\n" in c.ask("bqueues", "normal", l=True)[0]
    assert "default queue" not in c.ask("bqueues", "night", l=True)[0]


def test_limits_stand_under_their_titles() -> None:
    line = QueryCluster().ask("bqueues", "priority", l=True)[0].splitlines()[6]
    assert line == "  43   0    Open:Active     -     2  1.0    4    0     0     0     0     0    0"


def test_parameters_with_their_explanations() -> None:
    c = QueryCluster(mbd_sleep_time=10, max_user_priority=100, sbd_sleep_time=120)
    c.feed(ev.Configured(at=at("11:39:00"), conf=replace(c.cluster.conf, site_params=(("SBD_SLEEP_TIME", "2m"), ("X_Y", "2")))))
    assert c.ask("bparams")[0] == (
        "Default Queues:  normal\nMBD_SLEEP_TIME used for calculations:  10 seconds\n"
        "Job Checking Interval:  120 seconds\nJob Accepting Interval:  0 seconds\n"
    )
    long = c.ask("bparams", l=True)[0]
    for text in (
        "System default queues for automatic queue selection:\n    DEFAULT_QUEUE = normal\n",
        "The interval for checking jobs by slave batch daemon:\n    SBD_SLEEP_TIME = 120 (seconds)\n",
        "    MAX_USER_PRIORITY = 100\nThe default job priority is: 50\n",
        "    X_Y = 2\n",
    ):
        assert text in long
    assert "        X_Y = 2\n" in c.ask("bparams", a=True)[0]


def test_fields_and_json_of_load_and_hosts() -> None:
    c = QueryCluster()
    table = c.ask("lsload", "ol1", o="host_name status mem::M ut")[0]
    assert table == "HOST_NAME status mem    ut\nol1       ok     23500M 64%\n"
    hosts = json.loads(c.ask("lshosts", json=True)[0])
    assert (hosts["COMMAND"], hosts["HOSTS"]) == ("lshosts", 3)
    assert hosts["RECORDS"][1]["RESOURCES"] == "(fs cs)"  # the order of lsf.shared
    assert c.ask("lshosts", "ol2", w=True)[0].splitlines()[0].split() == c.ask("lshosts", "ol2")[0].splitlines()[0].split()
    assert c.ask("lshosts", "ol2", w=True)[0].splitlines()[1].startswith("ol2                            linux     IntelI5 ")
    assert json.loads(c.ask("lsload", "ol1", json=True)[0])["RECORDS"][0]["r1m"] == "1.4"
    every = json.loads(c.ask("lsload", "ol1", json=True, o="*")[0])["RECORDS"][0]
    assert {"HOST_NAME", "status", "r15s", "mem"} <= set(every)
    assert c.ask("lsload", "ol1", o="r1*")[0].split()[:3] == ["r15s", "r1m", "r15m"]
    assert c.ask("lsload", "ol1", o="nosuch*")[1:] == ("lsload: <nosuch*> is not a valid field name\n", 255)
    assert c.ask("lshosts", o="nosuch")[2] == 255
    assert c.ask("lshosts", json=True, noheader=True)[2] == 255


@pytest.mark.parametrize(
    ("command", "others"),
    [
        ("bhosts", "noheader l s e gpu"),
        ("bqueues", "noheader l r"),
        ("busers", "noheader"),
        ("lshosts", "noheader s T gpu"),
        ("lsload", "noheader s gpu gpuload"),
    ],
)
def test_json_is_of_rows_of_fields_alone(command: str, others: str) -> None:
    for other in others.split():
        options: dict[str, Any] = {"json": True, other: True}
        said = f"{command}: -json and -{other} cannot be used together\n"
        assert QueryCluster().ask(command, **options) == ("", said, 255)


def test_daemons_are_left_to_the_service_manager() -> None:
    c = QueryCluster()
    assert c.ask("badmin", "hrestart", "ol2", caller=ALICE)[1:] == (
        "Restart slave batch daemon on <ol2> ...... Host control failed.: User permission denied\n", 255
    )  # fmt: skip
    assert c.ask("badmin", "limshutdown", "ol1", caller=ALICE)[1:] == (
        "Shut down LIM on <ol1> ...... ls_limcontrol: Operation permission denied by LIM\n", 255
    )  # fmt: skip
    assert c.ask("badmin", "limlock", caller=ALICE)[1:] == ("failed: Operation permission denied by LIM\n", 255)
    assert "badmin hclose" in c.ask("badmin", "limlock", caller=ADMIN)[1]
    assert "service lava-agent" in c.ask("badmin", "hshutdown", "ol2", caller=ADMIN)[1]
    assert c.ask("badmin", "hrestart", "nosuch")[1:] == ("nosuch: Bad host name, host group name or cluster name\n", 255)


def test_the_cluster_in_numbers() -> None:
    c = waiting()
    c.submit(4)
    c.start(4)
    text = c.ask("badmin", "showstatus")[0]
    rows = dict(row.strip().split(":", 1) for row in text.splitlines()[1:] if row)
    shown = {name: value.strip() for name, value in rows.items()}
    assert (shown["Servers"], shown["Pending"], shown["Running"], shown["Ok"]) == ("3/3", "3", "1", "3")
    words = text.split()  # monitors of LSF find the numbers by their places
    assert [words[place].rstrip(":") for place in (8, 10, 12, 14, 16)] == ["Clients", "Servers", "CPUs", "Cores", "Slots"]
    assert [words[place] for place in (21, 33, 41, 55)] == ["3", "4", "0", "1"]
    assert words[46:50] == ["Number", "of", "user", "groups:"]


def test_what_was_done_to_a_queue() -> None:
    c = QueryCluster()
    c.feed(ev.QueueSwitched(at=at("11:33:50"), queue="fair", open=True, active=False, by="ann", comment="why", what="qinact"))
    text = " ".join(c.ask("badmin", "qhist")[0].split())
    assert text.startswith("Fri Nov 20 11:33:50: Queue <fair> inactivated by user or administrator <ann> ")
    assert c.ask("badmin", "qhist", "normal") == ("", "No matching event found\n", 0)
    assert ["ADMIN ACTION COMMENT: why" in c.ask("bqueues", queue, l=True)[0].splitlines() for queue in ("fair", "normal")] == [
        True,
        False,
    ]


def test_no_host_is_an_exception() -> None:
    assert QueryCluster().ask("bhosts", x=True) == ("There is no exceptional host found\n", "", 0)


def test_a_job_that_was_over_before_its_start_was_reported() -> None:
    c = QueryCluster()
    c.submit(1, name="quick")
    c.feed(ev.JobDispatched(at=at("11:33:55"), key=1, attempt=1, uid="u", parts=(Placed("ol2", 1),)))
    end = End(at=at("11:33:55"), started=at("11:33:55"), tasks=(TaskEnd(rank=-1, pid=77, status=0),))
    c.feed(ev.JobFinished(at=at("11:33:55"), key=1, state=JobState.DONE, end=end))
    lines = c.ask("bhist", "1", l=True)[0].splitlines()
    assert "Fri Nov 20 11:33:55: Starting (Pid 77);" in lines
    assert "Execution CWD </home/alice>" in c.ask("bjobs", "1", UF=True)[0]


def test_elements_of_an_array_by_name() -> None:
    c = QueryCluster()
    c.submit(1, name="arr", indices="1-5")
    assert names(c, J="arr[2-3]") == ["arr[2]", "arr[3]"]
    assert names(c, J="a*") == [f"arr[{index}]" for index in range(1, 6)]


def test_resources_at_length_and_in_lsfs_order() -> None:
    c = QueryCluster(architectures=(("IntelI5", "x86_64"),))
    assert c.ask("lsinfo", "mem", l=True)[0] == (
        "RESOURCE_NAME:  mem\nDESCRIPTION: Available memory (Mbytes)\n"
        "TYPE    ORDER   INTERVAL  BUILTIN  DYNAMIC  RELEASE  CONSUMABLE\n"
        "Numeric   Dec         15      Yes      Yes      Yes         Yes\n"
    )
    facts = {name: c.ask("lsinfo", name, l=True)[0].splitlines()[-1].split()[3:] for name in ("ncpus", "slots", "cs", "lic")}
    assert facts == {
        "ncpus": ["Yes", "No", "No", "No"], "slots": ["No", "No", "No", "No"],
        "cs": ["No", "No", "No", "No"], "lic": ["No", "No", "Yes", "Yes"],
    }  # fmt: skip
    names = [row.split()[0] for row in c.ask("lsinfo", r=True)[0].splitlines()]
    places = [names.index(name) for name in ("mem", "scratch", "ncpus", "server", "fs", "type", "hname", "lic")]
    assert places == sorted(places)
    assert c.ask("lsinfo", m=True)[0].splitlines()[1] == "IntelI5             100.00      x86_64"


def test_backfill_windows() -> None:
    c = QueryCluster()
    assert c.ask("bslots")[0] == "SLOTS          RUNTIME\n14             UNLIMITED\n"  # nothing is held for anybody
    assert c.ask("bslots", R="select[bigmem]")[0].splitlines()[1:] == ["2              UNLIMITED"]
    c.submit(9, slots=8)
    c.start(9, hosts="ol1:4 ol2:5 ol3:1")
    c.submit(1)
    c.submit(2)
    c.submit(3)
    c.soft.promises = {
        1: ReservedStart(start=c.now + 5400, hosts=(("ol1", 3),), held=(("ol1", 2), ("ol2", 1))),
        2: ReservedStart(start=c.now + 2700, hosts=(("ol2", 3),), held=(("ol2", 2),)),
        3: ReservedStart(start=0.0, hosts=(("ol3", 1),), held=(("ol3", 1),)),
    }
    assert c.ask("bslots")[0] == (  # ol2 has 8 slots: 5 are used and 3 held
        "SLOTS          RUNTIME\n1              UNLIMITED\n4              1 hour 30 minutes\n6              45 minutes\n"
    )
    assert c.ask("bslots", W="1:00", n="2")[0].splitlines()[1:] == ["4              1 hour 30 minutes"]
    assert c.ask("bslots", l=True)[0].split("\n\n")[1] == "SLOTS: 4\nRUNTIME: 1 hour 30 minutes\nHOSTS: 2*ol1 1*ol2 1*ol3"
    assert c.ask("bslots", R="select[fs]")[0].splitlines()[1:] == [
        "1              1 hour 30 minutes", "3              45 minutes",
    ]  # fmt: skip
    assert c.ask("bslots", n="99")[0] == "No backfill window exists at this time\n"
    assert c.ask("bslots", n="x")[2] == c.ask("bslots", W="x")[2] == 255


def test_slots_are_free_until_advance_reservations_need_them() -> None:
    c = QueryCluster()
    before, one, two, three = (at(f"{hour}:00:00") for hour in (11, 13, 14, 15))
    for row in (
        Reservation(name="now", users=("ann",), hosts=(("ol1", 1),), begin=before, end=one),
        Reservation(name="next", users=("ann",), hosts=(("ol1", 2), ("ol2", 3)), begin=one, end=two),
        Reservation(name="last", users=("ann",), hosts=(("ol2", 8),), begin=three, end=three + 600),
        Reservation(name="down", kind="system", hosts=(("ol3", 1),), begin=before, end=one),
    ):
        c.feed(ev.AdvanceReservationSet(at=c.now, value=row))
    assert c.ask("bslots")[0].splitlines()[1:] == [  # of 4, 8 and 2 slots, at 11:40
        "2              UNLIMITED",
        "7              3 hours 20 minutes",
        "11             1 hour 20 minutes",
    ]
    assert c.ask("bslots", n="8", W="2:00")[0] == "No backfill window exists at this time\n"
    assert c.ask("bslots", l=True)[0].split("\n\n")[1].endswith("HOSTS: 2*ol1 5*ol2")
    assert c.ask("bslots", R="select[bigmem]")[0] == "No backfill window exists at this time\n"
    c.now = one - 30
    assert c.ask("bslots")[0].splitlines()[1:] == ["2              UNLIMITED", "7              2 hours 0 minutes"]


def test_fields_of_a_job_that_is_promised_a_start_or_asked_for_more() -> None:
    c = QueryCluster()
    c.submit(1, name="big", limits={"run": 3600}, text={"warn_action": "URG", "warn_before": 120, "host_file": "/h"})
    c.submit(2, name="other")
    c.soft.promises = {1: ReservedStart(start=at("12:00:00"), hosts=(("ol1", 3),))}
    fields = "estart_time plan_finish_time warn_act warn_time host_file immtermination delimiter='|'"
    assert c.ask("bjobs", "1", o=fields, noheader=True)[0] == "Nov 20 12:00|Nov 20 13:00|URG|2.0|/h|N\n"
    assert names(c, hostfile=True) == names(c, plan=True) == ["big"]


@pytest.mark.parametrize("text", ["²", "9" * 5000, "٣", "-1", "x"])
def test_a_number_that_is_none_is_refused_by_name(text: str) -> None:
    c = QueryCluster()
    c.submit(1)
    c.feed(ev.MessagePosted(at=at("11:35:00"), key=1, message=Message(number=0, text="hello", at=at("11:35:00"), by="alice")))
    for said, (out, err, status) in (
        ("lsload: bad number of hosts: ", c.ask("lsload", n=text)),
        ("lsplace: bad number of hosts: ", c.ask("lsplace", n=text)),
        ("", c.ask("bslots", n=text)),
        ("lava report: --top ", c.ask("report", top=text)),
        ("", c.ask("bread", "1", i=text)),
        ("", c.ask("bjdepinfo", "1", r=text)),
    ):
        assert (out, status) == ("", 255)
        assert err.startswith(f"{said}{text[:80]}")


@pytest.mark.parametrize("factor", ["nan", "inf", "1e400", "-1", "1_0", "."])
def test_a_cpu_factor_that_is_none_is_refused_by_name(factor: str) -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.finish(1, "11:36:00")
    assert c.ask("bjobs", "1", N=factor, o="cpu_used", hms=True) == ("", f"{factor}: Bad host specification\n", 255)
    assert c.ask("bjobs", "1", N="2.5", o="cpu_used", hms=True)[2] == 0
