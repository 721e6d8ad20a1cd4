"""bjobs -p, -s and -l: why a job waits or is suspended; what lava adds to -l."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.lang.gpureq import merge, parse
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason
from lavad.core.plan.volatile import PartUsage, TaskUsage, WhyClass
from lavad.core.site.pend_reason import PendReason
from tests.support.worlds.query_cluster import QueryCluster, at, element

R = PendReason
WHY = WhyClass(
    (
        (R.HOST_JOB_LIMIT, 2, ("ol1", "ol2")),
        (R.HOST_RES_REQ, 3, ("ol3", "ol4")),
        (R.LOAD_UNAVAIL, 1, ("ol7",)),
    )
)


def waiting() -> QueryCluster:
    c = QueryCluster()
    c.submit(1)
    c.soft.why[c.cluster.jobs.rows[1].spec] = WHY
    return c


def after_row(c: QueryCluster, **options: Any) -> str:
    return c.ask("bjobs", noheader=True, **options)[0].partition("\n")[2]


def test_level_0_counts_hosts() -> None:
    text = (
        " Job slot limit reached: 2 hosts;\n Job's resource requirements not satisfied: 3 hosts;\n"
        " Load information unavailable: 1 host;\n"
    )
    assert after_row(waiting(), p=True) == text
    assert after_row(waiting(), p0=True) == text
    assert after_row(waiting(), p="0") == text


def test_level_1_is_the_key_reason() -> None:
    assert after_row(waiting(), p1=True) == " Job slot limit reached: 2 hosts;\n"


def test_levels_2_and_3_sort_hosts_into_candidates_and_others() -> None:
    candidates = " Candidate host pending reasons (2 of 6 hosts):\n   Job slot limit reached: 2 hosts;\n"
    assert after_row(waiting(), p2=True) == candidates
    assert after_row(waiting(), p3=True) == (
        f"{candidates}\n Non-candidate host pending reasons (4 of 6 hosts):\n"
        "   Job's resource requirements not satisfied: 3 hosts;\n   Load information unavailable: 1 host;\n"
    )


def test_the_level_can_be_configured() -> None:
    c = QueryCluster(lsb_bjobs_pendreason_level=1)
    c.submit(1)
    c.soft.why[c.cluster.jobs.rows[1].spec] = WHY
    assert after_row(c, p=True) == " Job slot limit reached: 2 hosts;\n"


def test_long_reasons_name_hosts() -> None:
    out = waiting().ask("bjobs", p=True, l=True)[0]
    assert " Job slot limit reached: ol1, ol2;\n" in out
    assert " Job's resource requirements not satisfied: 3 hosts (ol3, ol4, ...);\n" in out


def test_reasons_of_a_job_alone_have_no_hosts() -> None:
    c = waiting()
    c.soft.why_job[1] = R.JOB_DEPEND
    assert after_row(c, p=True) == " Job dependency condition not satisfied;\n"


def test_a_new_job_and_a_held_one() -> None:
    c = QueryCluster()
    c.submit(1)
    assert after_row(c, p=True) == " New job is waiting for scheduling;\n"
    c.feed(ev.JobHeld(at=at("11:34:00"), key=1, by="alice"))
    assert after_row(c, p=True) == " The job was suspended by the user while pending;\n"
    c.feed(ev.JobHeld(at=at("11:35:00"), key=1, by="openlava"))
    assert after_row(c, p=True) == " The job was suspended by LSF admin or root while pending;\n"


def test_who_holds_elements_of_an_array_that_wait() -> None:
    c = QueryCluster()
    c.submit(5, name="a", indices="1-2")
    for who, by in (("the user", "alice"), ("LSF admin or root", "openlava")):
        c.feed(ev.ElementsHeld(at=at("11:34:00"), key=5, elements=Ranges.span(1, 2), by=by))
        assert after_row(c, p=True).count(f"The job was suspended by {who} while pending;") == 2


def test_a_job_that_is_held_as_it_could_not_be_started() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    why = "the pre-execution command ended with 4: it was retried LOCAL_MAX_PREEXEC_RETRY times"
    c.feed(ev.JobRequeued(at=at("11:34:00"), key=1, state=JobState.PSUSP, reason=R.JOB_PRE_EXEC, failures=3, why=why))
    assert after_row(c, p=True) == f" The job's pre-exec command exited with non-zero status: {why};\n"
    c.feed(ev.JobReleased(at=at("11:35:00"), key=1, by="alice"))
    c.feed(ev.JobHeld(at=at("11:36:00"), key=1, by="alice"))
    assert after_row(c, p=True) == " The job was suspended by the user while pending;\n"


def test_elements_share_the_reasons_of_their_array() -> None:
    c = QueryCluster()
    c.submit(5, name="a", indices="1-2", limit=1)
    c.soft.why_job[5] = R.JOB_ARRAY_LIMIT
    assert after_row(c, p=True).count("The job array has reached") == 2


def test_suspend_reasons() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.feed(ev.JobSuspended(at=at("11:34:00"), key=1, by="alice"))
    assert after_row(c, s=True) == " The job was suspended by user;\n"
    c.feed(ev.JobResumed(at=at("11:34:01"), key=1))
    c.feed(ev.JobSuspended(at=at("11:34:02"), key=1, by="openlava"))
    assert after_row(c, s=True) == " The job was suspended by LSF admin or root;\n"
    c.feed(ev.JobResumed(at=at("11:34:03"), key=1))
    why = "Host load exceeded threshold: r1m"
    c.feed(ev.JobSuspended(at=at("11:34:04"), key=1, state=JobState.SSUSP, why=why))
    assert after_row(c, s=True) == f" {why};\n"
    assert f" SUSPENDING REASONS:\n {why};\n" in c.ask("bjobs", l=True)[0]


def test_the_history_of_an_array_is_read_once_for_all_its_suspended_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    c = QueryCluster()
    c.submit(5, name="a", indices="1-3")
    for index, by in ((1, "alice"), (2, "openlava"), (3, "alice")):
        c.start(element(5, index))
        c.feed(ev.JobSuspended(at=at("11:34:00"), key=element(5, index), by=by))
    read: list[int] = []
    events_of = c.store.events_of

    def noted(job: int) -> list[tuple[int, ev.Event]]:
        read.append(job)
        return events_of(job)

    monkeypatch.setattr(c.store, "events_of", noted)
    why = c.ask("bjobs", s=True, noheader=True)[0].splitlines()[1::2]
    assert why == [f" The job was suspended by {who};" for who in ("user", "LSF admin or root", "user")]
    assert read == [5]


def test_a_long_record_shows_every_rank_and_the_sums() -> None:
    """One row a rank: host, pid, CPU time, memory, threads, state and GPU; then the sums."""
    c = QueryCluster(with_gpus=True)
    gpu = merge(parse("num=2"))
    c.submit(1, slots=2, max_slots=2, gpu=gpu)
    c.start(1, hosts="ol2:2", gpus=("GPU-a", "GPU-b"))
    tasks = (
        TaskUsage(1, 202, 20.5, 2048, 1024, 3, 1, "S", 2000, 90),
        TaskUsage(0, 201, 10.0, 2048, 1024, 5, 1, "R", 1000, 50),
    )
    usage = PartUsage(key=1, attempt=1, at=at("11:39:00"), cpu=30.5, rss=4096, threads=8, tasks=tasks)
    c.soft.usage[1] = {"ol2": usage}
    out = c.ask("bjobs", l=True)[0]
    table = out.partition(" TASK USAGE:\n")[2].partition("\n\n")[0].splitlines()
    assert [row.split() for row in table[1:]] == [
        ["0", "ol2", "201", "10.0s", "2.0M", "1.0M", "5", "R", "1000M", "50%"],
        ["1", "ol2", "202", "20.5s", "2.0M", "1.0M", "3", "S", "2000M", "90%"],
        ["SUM", "1", "host", "2", "30.5s", "4.0M", "2.0M", "8", "3000M", "70%"],
    ]
    assert len({len(row) for row in table[1:]}) == 1
    assert "The CPU time used is 30 seconds." in out
    assert "Requested GPU <num=2:mode=shared:mps=no:j_exclusive=no>" in out.replace("\n" + " " * 21, "")
    assert "GPU-b" in out.partition(" GPU ALLOCATION:")[2]


def test_the_sums_are_of_all_hosts_also_of_those_where_blaunch_alone_starts_processes() -> None:
    """What mpirun has on the other hosts is a row of each host."""
    c = QueryCluster()
    c.submit(1, slots=2, max_slots=2)
    c.start(1, hosts="ol2:1 ol1:1")
    task = TaskUsage(-1, 201, 10.0, 2048, 1024, 5, 2, "S")
    first = PartUsage(
        key=1, attempt=1, at=at("11:39:00"), cpu=10.0, rss=2048, pss=1024, threads=5, pids=(201, 202), tasks=(task,)
    )
    other = PartUsage(key=1, attempt=1, at=at("11:39:00"), cpu=3.0, rss=4096, pss=3072, threads=4, pids=(301, 302, 303))
    c.soft.usage[1] = {"ol2": first, "ol1": other}
    table = c.ask("bjobs", l=True)[0].partition(" TASK USAGE:\n")[2].partition("\n\n")[0].splitlines()
    assert [row.split() for row in table[1:]] == [
        ["-", "ol2", "201", "10.0s", "2.0M", "1.0M", "5", "S", "-", "-"],
        ["-", "ol1", "301", "3.0s", "4.0M", "3.0M", "4", "-", "-", "-"],
        ["SUM", "2", "hosts", "5", "13.0s", "6.0M", "4.0M", "9", "-", "-"],
    ]


def test_usage_of_an_attempt_that_is_over_is_not_shown() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.soft.usage[1] = {"ol2": PartUsage(key=1, attempt=7, at=at("11:39:00"), rss=4096)}
    assert "Resource usage collected" not in c.ask("bjobs", l=True)[0]


def test_ends_name_their_reason() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.finish(1, "11:39:00", status=9, reason=TermReason.TERM_OWNER)
    out = c.ask("bjobs", "1", l=True)[0]
    assert "Fri Nov 20 11:39:00: Exited by signal 9. The CPU time used is 0.0 seconds.\n" in out
    assert "Fri Nov 20 11:39:00: Completed <exit>; TERM_OWNER: job killed by owner.\n" in out
    assert " MAX MEM: 6 Mbytes;  AVG MEM: 6 Mbytes; MEM Efficiency: 0.00%\n" in out


def test_a_job_killed_while_it_waited() -> None:
    c = QueryCluster()
    c.submit(1)
    c.finish(1, "11:39:00", reason=TermReason.TERM_OWNER)
    out = c.ask("bjobs", "1", l=True)[0]
    assert "Fri Nov 20 11:39:00: Exited\n" in out
    assert "Completed <exit>; TERM_OWNER: job killed by owner.\n" in out


def test_hpc_allocation_has_the_words_of_lsf_10() -> None:
    c = QueryCluster(lsb_enable_hpc_allocation=True, lsb_short_hostlist=True)
    c.submit(1, name="n", slots=4, max_slots=4)
    c.start(1, hosts="ol2:4")
    joined = c.ask("bjobs", l=True)[0].replace("\n" + " " * 21, "")
    assert "Started 4 Task(s) on Host(s) <4*ol2>, Allocated 4 Slot(s) on Host(s) <4*ol2>, Execution Home" in joined
    assert ", 4 Task(s)" in joined
    told = c.ask("bhist", l=True)[0].replace("\n" + " " * 21, "")
    assert "Submitted from host <ol1>, to Queue <normal>, CWD" in told
    assert "Dispatched 4 Task(s) on Host(s) <4*ol2>, Allocated 4 Slot(s) on Host(s) <4*ol2>, Effective RES_REQ" in told


def test_an_element_says_its_index() -> None:
    c = QueryCluster()
    c.submit(5, name="arr", indices="1-2")
    c.start(element(5, 2))
    assert "[2] started on <ol2>" in c.ask("bjobs", "5[2]", l=True)[0]


def test_time_left_with_a_limit() -> None:
    c = QueryCluster(abs_runlimit=True)
    c.submit(1, limits={"run": 7200})
    c.start(1, "11:30:00")
    assert c.ask("bjobs", WL=True)[0].splitlines()[1].endswith("Nov 20 11:33     1:50 L")
    assert c.ask("bjobs", WP=True)[0].splitlines()[1].endswith("   8.33% L")
    assert c.ask("bjobs", WF=True)[0].splitlines()[1].endswith("   Nov 20 13:30 L")


def test_a_job_that_a_host_did_not_start_says_why() -> None:
    c = waiting()
    c.start(1)
    refused = ev.PartRefused(at=at("11:35:00"), key=1, attempt=1, host="ol2", code="gpu", why="host ol2 cannot run it")
    again = ev.JobRequeued(at=at("11:35:00"), key=1, reason=R.JOB_START_FAIL, why=refused.why, failures=1)
    c.feed(refused, again)
    assert after_row(c, p=True).splitlines()[0] == " Job slot limit reached: 2 hosts;"
    c.soft.why_job[1] = R.JOB_DELAY_SCHED
    assert after_row(c, p=True) == " The schedule of the job is postponed for a while: host ol2 cannot run it;\n"
    assert c.ask("bjobs", o="pend_reason", noheader=True)[0].endswith(": host ol2 cannot run it;\n")
    c.start(1)
    assert not c.cluster.jobs.rows[1].failed_why
