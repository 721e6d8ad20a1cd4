"""bjobs -o and -json: columns, widths, units, aliases; what tools write."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.queue import ApplicationConfig
from lavad.core import events as ev
from lavad.core.job.job import Outcome
from lavad.core.job.spec import Role
from lavad.core.lang.asks import Refused
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.states import TermReason
from lavad.core.plan.volatile import PartUsage
from lavad.queries.frame import columns
from lavad.queries.hosts import bhosts
from lavad.queries.jobs import bjobs_custom
from lavad.queries.queues import bqueues, busers
from tests.support.worlds.query_cluster import QueryCluster, at, element

PUBLISHED = [
    "jobid", "id", "jobindex", "stat", "user", "user_group", "ugroup", "queue", "job_name", "name", "job_description",
    "description", "proj_name", "proj", "project", "application", "app", "service_class", "sla", "job_group", "group",
    "job_priority", "priority", "rsvid", "esub", "kill_reason", "suspend_reason", "resume_reason", "kill_issue_host",
    "suspend_issue_host", "resume_issue_host", "dependency", "pend_reason", "charged_saap", "saap", "command", "cmd",
    "pre_exec_command", "pre_cmd", "post_exec_command", "post_cmd", "resize_notification_command", "resize_cmd",
    "pids", "exit_code", "exit_reason", "interactive", "from_host", "first_host", "exec_host", "nexec_host",
    "ask_hosts", "alloc_slot", "nalloc_slot", "host_file", "exclusive", "nreq_slot", "srcjobid", "dstjobid",
    "source_cluster", "srcluster", "forward_cluster", "fwd_cluster", "forward_time", "fwd_time", "reserved",
    "hrusage", "energy", "gpfsio", "submit_time", "start_time", "estimated_start_time", "estart_time",
    "specified_start_time", "sstart_time", "specified_terminate_time", "sterminate_time", "time_left", "finish_time",
    "estimated_run_time", "ertime", "ru_utime", "ru_stime", "%complete", "warning_action", "warn_act",
    "action_warning_time", "warn_time", "pendstate", "effective_pend_time", "pend_time", "ipendtime", "ependtime",
    "estimated_sim_start_time", "esstart_time", "planned_start_time", "plan_start_time", "plan_finish_time",
    "cpu_used", "run_time", "idle_factor", "exception_status", "except_stat", "slots", "mem", "max_mem", "avg_mem",
    "memlimit", "swap", "swaplimit", "cpu_efficiency", "avg_cpu_efficiency", "average_cpu_efficiency", "peak_cpu",
    "cpu_peak", "cpu_peak_efficiency", "mem_efficiency", "cpu_peak_reached_duration", "gpu_num", "gnum", "gpu_mode",
    "gmode", "gpu_alloc", "galloc", "j_exclusive", "j_excl", "min_req_proc", "max_req_proc", "combined_resreq",
    "cresreq", "effective_resreq", "eresreq", "network_req", "filelimit", "corelimit", "stacklimit", "processlimit",
    "runtimelimit", "rtlimit", "hostlimit", "plimit", "eplimit", "plimit_remain", "eplimit_remain", "nthreads",
    "input_file", "output_file", "error_file", "output_dir", "sub_cwd", "exec_home", "exec_cwd", "licproject",
    "licproj", "hostfile", "block", "jobgroup", "immediate_orphan_term", "immtermination", "host_pref", "image_name",
    "image_user", "container_name", "ar", "attribute", "cname", "all_users",
]  # fmt: skip


def two() -> QueryCluster:
    c = QueryCluster(abs_runlimit=True)
    c.submit(1, "11:30:00", name="waits", command="sleep 9")
    c.submit(2, "11:30:00", name="runs", slots=3, max_slots=3, limits={"run": 3600, "mem": 20480})
    c.start(2, "11:32:00", hosts="ol2:2 ol1")
    usage: dict[str, Any] = {
        "cpu": 90.5,
        "rss": 1300 * 1024,
        "swap": 2048,
        "threads": 7,
        "max_mem": 1400 * 1024,
        "pids": (11, 12),
        "cpu_peak": 1.5,
        "cpu_peak_after": 20.0,
    }
    c.soft.usage[2] = {"ol2": PartUsage(key=2, attempt=1, at=at("11:39:00"), **usage)}
    return c


def rows(c: QueryCluster, text: str, *words: str, **options: Any) -> list[str]:
    out, err, status = c.ask("bjobs", *words, o=text, **options)
    assert (err, status) == ("", 0)
    return out.splitlines()


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "all_users"])
def test_every_published_field_and_alias_is_known(name: str) -> None:
    c = two()
    c.finish(2, "11:39:30", status=9, reason=TermReason.TERM_RUNLIMIT)
    found = rows(c, f"{name} jobid", a=True)
    assert found[0].split()[0] == bjobs_custom.FIELDS[name].name.upper()  # an alias shows the field's own title
    assert len(found) == 3


def test_values_of_a_running_job() -> None:
    fields = {
        "jobid": "2", "stat": "RUN", "exec_host": "ol2:ol2:ol1", "first_host": "ol2", "nexec_host": "2", "slots": "3",
        "nalloc_slot": "3", "submit_time": "Nov 20 11:30", "start_time": "Nov 20 11:32",
        "finish_time": "Nov 20 12:32 L",
        "time_left": "0:52 L", "%complete": "13.33% L", "run_time": "480 second(s)", "cpu_used": "90.5 second(s)",
        "mem": "1.3 Gbytes", "max_mem": "1.4 Gbytes", "memlimit": "20 Mbytes", "nthreads": "7", "pids": "11,12",
        "max_req_proc": "3", "runtimelimit": "60.0", "exit_code": "-", "pend_reason": "-", "sub_cwd": "$HOME",
        "exec_cwd": "/home/alice", "command": "sleep 1", "user": "alice", "proj_name": "default", "pend_time": "120",
        "combined_resreq": "select[type == local] order[r15s:pg]", "idle_factor": "0.19", "average_cpu_efficiency": "6.28%",
        "cpu_peak": "1.50", "cpu_peak_efficiency": "50.00%", "cpu_efficiency": "50.00%", "mem_efficiency": "0.00%",
        "cpu_peak_reached_duration": "20 second(s)",
    }  # fmt: skip
    found = rows(two(), " ".join(fields) + " delimiter='|'", "2")
    assert dict(zip(fields, found[1].split("|"), strict=True)) == fields


def test_values_of_a_waiting_and_of_an_ended_job() -> None:
    c = two()
    c.finish(2, "11:39:30", status=9, reason=TermReason.TERM_RUNLIMIT, why="killed at its run limit")
    text = "stat exec_host exit_code exit_reason finish_time time_left pend_reason mem run_time delimiter='|'"
    found = rows(c, text, a=True, noheader=True)
    assert found[0] == "PEND|-|-|-|-|-|New job is waiting for scheduling;|-|0 second(s)"
    reason = "TERM_RUNLIMIT: job killed after reaching LSF run time limit"
    assert found[1] == f"EXIT|ol2:ol2:ol1|137|{reason}|Nov 20 11:39 L|-|-|12 Mbytes|450 second(s)"


def test_short_host_list() -> None:
    c = QueryCluster(lsb_short_hostlist=True)
    c.submit(1)
    c.start(1, hosts="ol2:4 ol1")
    assert rows(c, "exec_host", noheader=True) == ["4*ol2:ol1"]


def test_durations_as_hms() -> None:
    found = rows(two(), "run_time cpu_used time_left runtimelimit delimiter=','", "2", hms=True, noheader=True)
    assert found == ["00:08:00,00:01:31,00:52:00 L,01:00:00"]


def test_columns_are_as_wide_as_their_widest_value() -> None:
    assert rows(two(), "jobid stat exec_host") == [
        "JOBID STAT EXEC_HOST",
        "2     RUN  ol2:ol2:ol1",
        "1     PEND -",
    ]


def test_widths_cut_and_pad() -> None:
    c = two()
    assert rows(c, "jobid:-6 name:4 queue: stat:") == [
        " JOBID JOB_ QUEUE      STAT ",
        "     2 runs normal     RUN  ",
        "     1 *its normal     PEND ",
    ]


def test_units() -> None:
    found = rows(two(), "mem::G mem::MB mem::S memlimit::M memlimit::G", "2", noheader=True)
    assert found == ["1.27G 1300M 1.3G 20M 0.02G"]


def test_the_example_of_the_manual() -> None:
    text = "jobid stat: queue:- project:10 application:-6 mem:12:G delimiter='^'"
    assert rows(two(), text, "2") == [
        "JOBID^STAT ^     QUEUE^PROJ_NAME ^APPLIC^MEM         ",
        "2^RUN  ^    normal^default   ^     -^1.27G       ",
    ]


def test_all_fields_at_once() -> None:
    found = rows(two(), "all delimiter=';'", "2")
    assert len(found) == 2
    assert found[0].startswith("JOBID;JOBINDEX;STAT;USER;")
    assert found[0].count(";") == found[1].count(";")


def test_json() -> None:
    c = two()
    out, err, status = c.ask("bjobs", o="jobid stat exec_host", json=True)
    assert (err, status) == ("", 0)
    assert json.loads(out) == {
        "COMMAND": "bjobs",
        "JOBS": 2,
        "RECORDS": [
            {"JOBID": "2", "STAT": "RUN", "EXEC_HOST": "ol2:ol2:ol1"},
            {"JOBID": "1", "STAT": "PEND", "EXEC_HOST": ""},
        ],
    }
    assert out.startswith('{\n  "COMMAND":"bjobs",\n  "JOBS":2,\n  "RECORDS":[\n')


def test_json_of_unknown_jobs_is_json_with_an_error() -> None:
    c = two()
    out, err, status = c.ask("bjobs", "1", "9", o="jobid", json=True)
    assert (err, status) == ("", 0)
    assert json.loads(out)["RECORDS"] == [{"JOBID": "1"}, {"JOBID": "9", "ERROR": "Job <9> is not found"}]
    out, err, status = c.ask("bjobs", "9", o="jobid", json=True)
    assert status == 255
    assert json.loads(out)["RECORDS"] == [{"JOBID": "9", "ERROR": "Job <9> is not found"}]


def test_json_without_a_format_has_the_default_columns() -> None:
    out, err, status = QueryCluster().ask("bjobs", json=True)
    assert (json.loads(out), err, status) == ({"COMMAND": "bjobs", "JOBS": 0, "RECORDS": []}, "", 0)
    record = json.loads(two().ask("bjobs", json=True)[0])["RECORDS"][0]
    assert list(record) == ["JOBID", "USER", "STAT", "QUEUE", "FROM_HOST", "EXEC_HOST", "JOB_NAME", "SUBMIT_TIME"]


@pytest.mark.parametrize("other", ["noheader", "l", "UF", "A", "aps", "prio", "sum", "psum", "pei", "script", "env"])
def test_json_is_of_rows_of_fields_alone(other: str) -> None:
    """A program that asked for JSON was given a listing."""
    said = f"bjobs: -json and -{other} cannot be used together\n"
    options: dict[str, Any] = {"json": True, other: True}
    assert two().ask("bjobs", "1", **options) == ("", said, 255)


def test_roddy_gives_the_format_behind_other_options() -> None:
    out = two().ask("bjobs", "jobid job_name stat exit_code cpu_used run_time", a=True, o=True, hms=True, json=True)[0]
    assert json.loads(out)["RECORDS"][0]["RUN_TIME"] == "00:08:00"


def test_snakemake_asks_with_a_glued_option_and_a_glob() -> None:
    c = QueryCluster()
    c.submit(7, name="Snakemake_rule_a:x=1___(0f1e2d)")
    c.submit(8, name="another")
    out, err, status = c.ask("bjobs", o="jobid stat", aJ="*0f1e2d*", noheader=True)
    assert (out.split(), err, status) == (["7", "PEND"], "", 0)


def test_aiida_asks_for_a_field_twice() -> None:
    text = (
        "id stat exit_reason exec_host user slots max_req_proc exec_host queue finish_time start_time %complete "
        'submit_time name delimiter="|"'
    )
    found = rows(two(), text, "1", "2", noheader=True)
    assert [len(row.split("|")) for row in found] == [14, 14]
    assert found[0].split("|")[4:8] == ["alice", "3", "3", "ol2:ol2:ol1"]


def test_batchspawner_splits_at_single_blanks() -> None:
    assert rows(two(), "STAT EXEC_HOST", "1", a=True, noheader=True) == ["PEND -"]


def test_a_default_format_from_lsf_conf_or_the_environment() -> None:
    c = two()
    c.lsf["LSB_BJOBS_FORMAT"] = "jobid delimiter=','"
    assert c.ask("bjobs")[0] == "JOBID\n2\n1\n"
    assert c.ask("bjobs", LSB_BJOBS_FORMAT="stat delimiter=','")[0] == "STAT\nRUN\nPEND\n"
    assert c.ask("bjobs", LSB_BJOBS_FORMAT="stat", o="user delimiter=','")[0] == "USER\nalice\nalice\n"
    assert c.ask("bjobs", w=True)[0].startswith("JOBID   USER    STAT")


def test_elements_have_the_array_id_and_their_index() -> None:
    c = QueryCluster()
    c.submit(5, name="arr", indices="1-3")
    c.start(element(5, 2))
    assert rows(c, "jobid jobindex stat name delimiter=','", noheader=True) == [
        "5,2,RUN,arr[2]", "5,1,PEND,arr[1]", "5,3,PEND,arr[3]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nosuch", "<nosuch> is not a valid field name"), ("jobid:0", "bad output width"),
        ("jobid:x", "bad output width"), ("jobid:5000", "bad output width"), ("mem:5:Q", "bad unit"), ("", "no field"),
        ("delimiter='ab' jobid", "single"),
        ("delimiter=''  jobid", "single"), ("jobid::5:6", "bad unit"), ("jobid" * 9999, "too long"),
    ],
)  # fmt: skip
def test_a_bad_format_is_refused(text: str, why: str) -> None:
    out, err, status = two().ask("bjobs", o=text)
    assert (out, status) == ("", 255)
    assert why in err
    assert err.startswith("bjobs: ")


_WORDS = st.sampled_from([*bjobs_custom.FIELDS, "all", "nosuch", "delimiter='^'", 'delimiter="', "delimiter=|", ""])
_TAILS = st.sampled_from(["", ":", ":-", ":5", ":-12", ":3:M", "::G", ":x", ":0", ":4097", "::", ":-:S", ":::"])


@given(st.one_of(st.text(max_size=60), st.lists(st.builds("{}{}".format, _WORDS, _TAILS), max_size=8).map(" ".join)))
def test_any_format_is_parsed_or_refused(text: str) -> None:
    for command, fields in (
        ("bjobs", bjobs_custom.FIELDS), ("bhosts", bhosts.FIELDS), ("bqueues", bqueues.FIELDS),
        ("busers", busers.FIELDS),
    ):  # fmt: skip
        try:
            custom = columns.parse(command, text, fields)
        except Refused:
            continue
        lines = list(columns.table(custom, [["x" * 30] * len(custom.columns)], True))
        assert len(lines) == 2
        for column in custom.columns:
            assert column.name in fields
            assert 0 <= column.width <= columns.MAX_WIDTH


def test_a_row_is_never_wider_than_its_columns() -> None:
    custom = columns.parse("bjobs", "jobid:3 job_name:6 stat:-8", bjobs_custom.FIELDS)
    line = next(columns.table(custom, [["12345", "a long name", "PEND"]], False))
    assert re.fullmatch(r"123 \*name +PEND\n|123 \* name     PEND\n", line)


def test_an_outcome_without_reason_shows_its_why() -> None:
    c = two()
    c.finish(2, "11:39:30", status=256, why="rank 3 on ol1 ended first")
    assert isinstance(c.store.finished[2].outcome, Outcome)
    assert rows(c, "exit_code exit_reason delimiter='|'", "2", noheader=True) == ["1|rank 3 on ol1 ended first"]


def test_a_note_of_a_job_that_is_done_is_no_exit_reason() -> None:
    c = two()
    c.finish(2, "11:39:30", why="none of the 4 ranks joined")
    assert rows(c, "stat exit_reason delimiter='|'", "2", noheader=True) == ["DONE|-"]
    assert "none of the 4 ranks joined." in c.ask("bjobs", "2", l=True)[0]


def test_hosts_and_queues_and_users_as_json() -> None:
    c = two()
    hosts = json.loads(c.ask("bhosts", "ol2", o="host_name status max run total_mem ngpus", json=True)[0])
    assert hosts == {
        "COMMAND": "bhosts", "HOSTS": 1,
        "RECORDS": [{"HOST_NAME": "ol2", "STATUS": "ok", "MAX": "8", "RUN": "2", "TOTAL_MEM": "24105M", "NGPUS": "0"}],
    }  # fmt: skip
    queues = json.loads(c.ask("bqueues", "night", o="queue_name max pend run_window", json=True)[0])
    assert queues["RECORDS"] == [{"QUEUE_NAME": "night", "MAX": "4", "PEND": "0", "RUN_WINDOW": "2:00-2:05"}]
    users = json.loads(c.ask("busers", o="user max run pend", json=True)[0])
    assert users["RECORDS"] == [{"USER": "alice", "MAX": "20", "RUN": "3", "PEND": "1"}]


def test_pending_limits_and_what_is_left_of_them() -> None:
    c = QueryCluster()
    c.submit(1, "11:30:00", text={"pend_limit": 5, "eligible_limit": 60})
    fields = "plimit plimit_remain effective_eplimit eplimit_remain delimiter='|'"
    assert rows(c, fields, noheader=True) == ["300 second(s)|-300 second(s)|3600 second(s)|3000 second(s)"]
    assert rows(c, fields, noheader=True, hms=True) == ["00:05:00|-00:05:00|01:00:00|00:50:00"]


def test_pending_limits_of_a_profile_or_queue_hold_where_a_job_has_none() -> None:
    c = QueryCluster()
    queue = replace(c.cluster.queue_conf["normal"], pend_time_limit=600, eligible_pend_time_limit=1200)
    app = ApplicationConfig("app", pend_time_limit=60)
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, queues=(queue,), apps=(app,))))
    c.submit(1, "11:30:00", text={"pend_limit": 5})
    c.submit(2, "11:30:00", app="app")
    fields = "plimit effective_plimit plimit_remain eplimit effective_eplimit delimiter='|'"
    assert rows(c, fields, noheader=True) == [
        "300 second(s)|300 second(s)|-300 second(s)|-|1200 second(s)",
        "-|60 second(s)|-540 second(s)|-|1200 second(s)",
    ]
    table = c.ask("bjobs", "2", l=True)[0]
    assert f"{' PEND_TIME_LIMIT':<25} ELIGIBLE_PEND_TIME_LIMIT\n{' 1.0 min':<25} 20.0 min" in table
    assert "PEND_TIME_LIMIT:  1 minutes\n" in c.ask("bapp", "app", l=True)[0]
    assert "ELIGIBLE_PEND_TIME_LIMIT:  20 minutes\n" in c.ask("bqueues", "normal", l=True)[0]


def test_a_running_job_without_swap_uses_none_of_it() -> None:
    c = two()
    c.soft.usage[2] = {"ol2": PartUsage(key=2, attempt=1, at=at("11:39:00"), rss=7168)}
    assert rows(c, "mem swap delimiter='|'", "2", "1", noheader=True) == ["7 Mbytes|0 Mbytes", "-|-"]


def test_titles_of_load_and_hosts_are_those_of_their_listings() -> None:
    c = two()
    record = json.loads(c.ask("lshosts", "ol2", o="HOST_NAME type cpuf maxmem nprocs RESOURCES RUN_WINDOWS", json=True)[0])
    assert list(record["RECORDS"][0]) == ["HOST_NAME", "type", "cpuf", "maxmem", "nprocs", "RESOURCES", "RUN_WINDOWS"]
    assert record["RECORDS"][0]["cpuf"] == "100.00"
    found = c.ask("lsload", "ol2", o="HOST_NAME status r15s tmp swp mem delimiter='|'")[0]
    assert found == "HOST_NAME|status|r15s|tmp|swp|mem\nol2|ok|0.5|73000.0M|0.0M|23500.0M\n"


def test_gpus_of_a_job_with_roles_are_those_of_all_its_tasks() -> None:
    c = QueryCluster(with_gpus=True)
    roles = (Role("ps", count=2), Role("worker", count=3, gpus=2))
    c.submit(1, slots=5, max_slots=5, roles=roles, gpu=GpuReq(num=1))
    assert c.ask("bjobs", o="gpu_num", noheader=True)[0] == "6\n"


def test_gpus_of_hosts_and_users() -> None:
    c = QueryCluster(with_gpus=True)
    c.submit(1, gpu=GpuReq(num=1, mode="shared", j_exclusive=True))
    c.start(1, hosts="ol2", gpus=("GPU-a",))
    fields = "ngpus ngpus_alloc ngpus_excl_alloc ngpus_shared_alloc ngpus_shared_jexcl_alloc slots slots_alloc delimiter='|'"
    assert c.ask("bhosts", "ol2", o=fields, noheader=True)[0] == "2|1|0|1|1|8|1\n"
    fields = "user ngpus ngpus_shared ngpus_excl ngpus_shared_jexcl delimiter='|'"
    assert c.ask("busers", LSB_BUSERS_FORMAT=fields)[0].splitlines()[1] == "alice|1|1|0|1"


def test_the_time_in_which_a_job_could_have_started_and_that_in_which_it_could_not() -> None:
    c = QueryCluster()
    c.submit(1, "11:30:00")
    c.submit(2, "11:31:00", held=True)
    c.submit(3, "11:32:00")
    c.start(3, "11:33:00")
    out = c.ask("bjobs", o="jobid pendstate pend_time ependtime ipendtime", noheader=True)[0]
    assert sorted(map(str.split, out.splitlines())) == [
        ["1", "EPEND", "600", "600", "-"],
        ["2", "IPEND", "540", "-", "540"],
        ["3", "NOTPEND", "60", "60", "-"],
    ]
