"""bhist, bhosts, bqueues, busers, lsload, lshosts, lsid and their kin, where no capture covers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from config.model.cluster import UserConfig
from lavad.core import events as ev
from lavad.core.job.job import End, PendingSignal
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, SignalKind, TermReason
from lavad.queries.frame import formats
from lavad.queries.render import RENDERERS
from tests.support.worlds.query_cluster import ALICE, BOB, QueryCluster, at, element
from tests.support.worlds.query_store import stored


@pytest.mark.parametrize("command", sorted(RENDERERS))
def test_an_unknown_option_is_refused_by_name(command: str) -> None:
    assert QueryCluster().ask(command, zz9=True)[1:] == (f"{command}: option -zz9 is not supported by lava\n", 255)


@pytest.mark.parametrize("command", sorted(RENDERERS))
def test_the_version_goes_to_stderr(command: str) -> None:
    assert QueryCluster().ask(command, V=True) == ("", "lava 0.1.0, Nov 20 2026\n", 0)


def test_lsid_for_tools_that_look_for_lsf() -> None:
    c = QueryCluster()
    assert c.ask("lsid")[0] == "lava 0.1.0, Nov 20 2026\n\nMy cluster name is openlava\nMy master name is ol1\n"
    c.lsf["LSF_COMPAT_VERSION"] = "10.1.0.0"
    assert c.ask("lsid")[0].startswith("IBM Spectrum LSF Standard 10.1.0.0, Nov 20 2026\n\nMy cluster name is ")


def test_hosts_that_are_full_closed_or_gone() -> None:
    c = QueryCluster()
    c.submit(1, slots=4, max_slots=4)
    c.start(1, hosts="ol1:4")
    c.feed(ev.HostDown(at=at("11:39:00"), host="ol3"))
    c.feed(ev.HostSwitched(at=at("11:39:00"), host="ol2", closed=True, by="openlava"))
    status = [row.split()[1] for row in c.ask("bhosts", w=True)[0].splitlines()[1:]]
    assert status == ["closed_Full", "closed_Adm", "unavail"]
    assert [row.split()[1] for row in c.ask("bhosts")[0].splitlines()[1:]] == ["closed", "closed", "unavail"]
    assert c.ask("lsload")[0].splitlines()[-1] == "ol3             unavail"


def test_suspended_slots_are_counted_apart() -> None:
    c = QueryCluster()
    c.submit(1, slots=2, max_slots=2)
    c.start(1, hosts="ol2:2")
    c.feed(ev.JobSuspended(at=at("11:39:00"), key=1, by="alice"))
    assert c.ask("bhosts", "ol2", noheader=True)[0].split()[4:] == ["2", "0", "0", "2", "0"]
    assert c.ask("bqueues", "normal", noheader=True)[0].split()[7:] == ["2", "0", "0", "2"]
    assert c.ask("busers", noheader=True)[0].split()[3:] == ["2", "0", "0", "0", "2", "0"]


def test_gpus_of_a_host_at_length() -> None:
    c = QueryCluster(with_gpus=True)
    c.submit(1)
    c.start(1, gpus=("GPU-a",))
    table = c.ask("bhosts", "ol2", l=True)[0].partition(" GPU ALLOCATION:\n")[2].splitlines()
    assert table[1].split() == ["0", "H200", "140G", "1", "GPU-a"]
    assert table[2].split() == ["1", "H200", "140G", "0", "GPU-b"]


def test_gpus_of_all_hosts() -> None:
    c = QueryCluster(with_gpus=True)
    c.submit(1)
    c.start(1, gpus=("GPU-a",))
    assert [row.split() for row in c.ask("bhosts", gpu=True, noheader=True)[0].splitlines()] == [
        ["ol2", "0", "H200", "0M", "0M", "1", "1", "0", "0"],
        ["1", "H200", "0M", "0M", "0", "0", "0", "0"],
    ]
    facts = [row.split() for row in c.ask("lshosts", gpu=True, noheader=True)[0].splitlines()]
    assert facts == [
        ["ol1", "-", "-", "-", "-", "-", "-"],
        ["ol2", "0", "H200", "-", "-", "-", "Nvidia"],
        ["1", "H200", "-", "-", "-", "Nvidia"],
        ["ol3", "-", "-", "-", "-", "-", "-"],
    ]


def test_reserved_resources_are_shown() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1, reserved=(("lic", 1.0), ("mem", 2048.0)))
    assert c.ask("bhosts", s=True)[0].splitlines()[1].split()[:3] == ["lic", "4", "1.0"]
    reserved = next(row for row in c.ask("bhosts", "ol2", l=True)[0].splitlines() if row.startswith(" Reserved"))
    assert reserved.split()[11] == "2.0G"


def test_one_unknown_queue_refuses_all() -> None:
    assert QueryCluster().ask("bqueues", "normal", "nosuch") == ("", "nosuch: No such queue\n", 255)


def test_queues_of_a_user() -> None:
    names = [row.split()[0] for row in QueryCluster().ask("bqueues", u="alice", noheader=True)[0].splitlines()]
    assert names == ["chkpnt", "fair", "normal", "night"]


def test_queue_inactive_by_an_administrator_or_its_window() -> None:
    c = QueryCluster()
    c.feed(ev.QueueSwitched(at=at("11:39:00"), queue="fair", open=False, active=False, by="openlava"))
    assert "Closed:Inact_Adm" in c.ask("bqueues", "fair", l=True)[0]
    c.now = at("02:01:00")
    assert "Open:Active" in c.ask("bqueues", "night", l=True)[0]


def test_load_columns_and_order() -> None:
    c = QueryCluster()
    c.soft.load["ol3"]["r15s"] = 0.1
    out = c.ask("lsload", I="r1m:mem:scratch")[0].splitlines()
    assert out[0] == "HOST_NAME       status   r1m   mem scratch"
    assert out[1] == "ol3                 ok   1.4   23G   100.0"
    assert c.ask("lsload", I="nosuch")[1:] == ("lsload: Unknown resource name\n", 246)
    assert c.ask("lsload", N=True)[0].splitlines()[1].split()[2] == "0.0"


def test_job_groups() -> None:
    c = QueryCluster()
    c.submit(1, group="/risk/a")
    c.submit(2, group="/risk/b")
    c.start(2)
    out = c.ask("bjgroup")[0].splitlines()
    assert [row.split()[:4] for row in out[1:]] == [
        ["/risk", "2", "1", "1"],
        ["/risk/a", "1", "1", "0"],
        ["/risk/b", "1", "0", "1"],
    ]


def test_two_orders_of_job_groups() -> None:
    c = QueryCluster()
    for job, group in enumerate(("/X/Y", "/A/B", "/A"), 1):
        c.submit(job, group=group)
    listed = lambda *words, **options: [row.split()[0] for row in c.ask("bjgroup", *words, **options)[0].splitlines()[1:]]  # noqa: E731
    assert listed() == ["/A", "/X", "/A/B", "/X/Y"]
    assert listed(s=True) == ["/A", "/A/B", "/X", "/X/Y"]
    assert listed("/A", s=True) == ["/A", "/A/B"]
    assert listed("/A/", s=True) == listed("/A") == ["/A"]


def test_busers_w_shows_what_may_wait() -> None:
    c = QueryCluster()
    users = (UserConfig(name="alice", max_pend_jobs=7, max_pend_slots=50), UserConfig(name="default", max_pend_jobs=3))
    c.feed(ev.Configured(at=at("11:39:00"), conf=replace(c.cluster.conf, users=users)))
    c.submit(1, slots=4)
    head, *rows = c.ask("busers", "all", w=True)[0].splitlines()
    alice, default = (next(row for row in rows if row.startswith(f"{name} ")) for name in ("alice", "default"))
    assert head.split()[-4:] == ["RSV", "MPEND", "PJOBS", "MPJOBS"]
    assert alice.split()[4:5] + alice.split()[-3:] == ["4", "50", "1", "7"]
    assert default.split()[-3:] == ["-", "-", "3"]
    assert len(head.split()) == len(alice.split()) == len(default.split())


def test_bqueues_w_counts_jobs_that_wait_beside_their_slots() -> None:
    c = QueryCluster()
    c.submit(1, slots=4)
    c.submit(2, slots=2, held=True)
    c.submit(3, name="a", indices="1-3")
    head, row = (line.split() for line in c.ask("bqueues", "normal", w=True)[0].splitlines())
    shown = dict(zip(head, row, strict=True))
    assert (shown["PEND"], shown["PJOBS"]) == ("9", "5")


def test_members_of_a_group_each_have_its_limit() -> None:
    """``GROUP@`` in lsb.users."""
    c = QueryCluster()
    users = (UserConfig(name="ug@", max_jobs=20), UserConfig(name="default", max_jobs=100))
    conf = replace(c.cluster.conf, user_groups=(("ug", ("alice", "bob")),), users=users)
    c.feed(ev.Configured(at=at("11:39:00"), conf=conf))
    found = {row.split()[0]: row.split()[2] for row in c.ask("busers", "all", noheader=True)[0].splitlines()}
    assert found == {"alice": "20", "bob": "20", "default": "100", "ug": "100"}


def test_users_see_who_they_are() -> None:
    c = QueryCluster()
    c.submit(1, user="bob")
    assert c.ask("busers", noheader=True, caller=BOB)[0].split()[:5] == ["bob", "-", "20", "1", "1"]
    assert c.ask("busers", noheader=True, caller=ALICE)[0].split()[3] == "0"


def test_parameters() -> None:
    c = QueryCluster(clean_period=1800)
    assert c.ask("bparams")[0].startswith("Default Queues:  normal\n")
    assert "    CLEAN_PERIOD = 1800 (seconds)\n" in c.ask("bparams", l=True)[0]
    assert "CLEAN_PERIOD = 1800" in c.ask("bparams", a=True)[0]


def test_nested_groups() -> None:
    c = QueryCluster()
    conf = replace(c.cluster.conf, user_groups=(("in", ("bob",)), ("out", ("alice", "in"))))
    c.feed(ev.Configured(at=at("11:39:00"), conf=conf))
    assert c.ask("bugroup", "out")[0].splitlines()[1] == "out          alice in/ "
    assert c.ask("bugroup", "out", r=True)[0].splitlines()[1] == "out          alice bob "
    assert c.ask("bugroup", "nosuch")[1:] == ("nosuch: No such user/host group\n", 255)


def test_user_groups_at_length() -> None:
    c = QueryCluster()
    conf = replace(
        c.cluster.conf,
        user_groups=(("in", ("bob",)), ("out", ("alice", "in")), ("any", ("all",))),
        group_shares=(("out", (("alice", 4), ("in", 10))), ("any", (("default", 1),))),
        params=replace(c.cluster.conf.params, user_group_admins=(("out", ("eve", "in")),)),
    )
    c.feed(ev.Configured(at=at("11:39:00"), conf=conf))
    of_any = "GROUP_NAME:  any\nUSERS:       all users\nSHARES:      [default, 1] \n"
    of_out = "GROUP_NAME:  out\nUSERS:       alice {}\nGROUP_ADMIN: eve in \nSHARES:      [alice, 4] [in, 10] \n"
    assert c.ask("bugroup", l=True)[0] == "GROUP_NAME:  in\nUSERS:       bob \n\n" + of_out.format("in/ ") + "\n" + of_any
    assert c.ask("bugroup", "any", "out", l=True, r=True)[0] == of_any + "\n" + of_out.format("bob ")
    assert c.ask("bugroup", "nosuch", l=True)[1:] == ("nosuch: No such user/host group\n", 255)


def test_jobs_of_groups_of_everybody(tmp_path: Path) -> None:
    c = QueryCluster()
    groups = (("every", ("all",)), ("most", ("all", "~alice")))
    c.feed(ev.Configured(at=at("11:20:00"), conf=replace(c.cluster.conf, user_groups=groups)))
    for key, user in enumerate(("alice", "bob", "eve", "alice", "bob"), 1):
        c.submit(key, user=user)
    for key in (4, 5):
        c.start(key)
        c.finish(key)
    assert c.ask("bugroup")[0].splitlines()[1:] == ["every        all users", "most         all ~alice "]
    with stored(c, tmp_path) as store:
        for group, jobs, ended in (("every", "1 2 3", 2), ("most", "2 3", 1), ("alice most", "1 2 3", 2), ("most ~eve", "2", 1)):
            assert c.ask("bjobs", u=group, o="jobid", noheader=True)[0].split() == jobs.split()
            told = store.ask("bacct", u=group)[0]
            assert f"Total number of done jobs:       {ended} " in told
            assert "submitted by users " in told
    assert [row.split()[3] for row in c.ask("busers", "every", "most", noheader=True)[0].splitlines()] == ["3", "2"]


def story() -> QueryCluster:
    c = QueryCluster()
    c.submit(1, "11:30:00", name="n")
    c.feed(ev.JobHeld(at=at("11:30:10"), key=1, by="alice"), ev.JobReleased(at=at("11:30:15"), key=1, by="alice"))
    c.start(1, "11:30:20")
    c.feed(ev.JobSuspended(at=at("11:30:50"), key=1, by="alice"), ev.JobResumed(at=at("11:31:00"), key=1))
    c.feed(ev.JobSuspended(at=at("11:31:10"), key=1, state=JobState.SSUSP, why="r1m"))
    c.feed(ev.JobResumed(at=at("11:31:12"), key=1))
    c.feed(ev.JobLost(at=at("11:32:00"), key=1, host="ol2"), ev.JobFound(at=at("11:32:30"), key=1, state=JobState.RUN))
    return c


def test_time_in_each_state_adds_up() -> None:
    c = story()
    c.finish(1, "11:33:00")
    row = c.ask("bhist", "1")[0].splitlines()[2].split()
    assert row[3:] == ["15", "5", "118", "10", "2", "30", "180"]


def test_a_story_in_sentences() -> None:
    c = story()
    c.feed(
        ev.SignalRequested(
            at=at("11:32:40"), key=1, pending=PendingSignal(kind=SignalKind.SIGNAL, at=at("11:32:40"), by="bob", signal=10)
        )
    )
    end = End(status=99 << 8, at=at("11:33:00"), utime=1.5)
    c.feed(ev.PartEnded(at=at("11:33:00"), key=1, attempt=1, host="ol2", end=end))
    c.feed(ev.PartGone(at=at("11:33:00"), key=1, attempt=1, host="ol2"))
    c.feed(ev.JobRequeued(at=at("11:33:00"), key=1, reason=23, end=end))
    c.start(1, "11:33:05", hosts="ol1", pid=77)
    c.finish(1, "11:33:10", status=9, reason=TermReason.TERM_OWNER)
    told = [row[21:79] for row in c.ask("bhist", "1", UF=True)[0].splitlines() if row.startswith("Fri")]
    assert told[1:] == [
        "Suspended by the user or administrator while pending;",
        "Pending: Waiting for scheduling after resumed by user: 1 h",
        "Dispatched to <ol2>;",
        "Starting (Pid 16605);",
        "Running with execution home </home/alice>, Execution CWD <",
        "Suspended by the user or administrator;",
        "Running;",
        "Suspended: r1m;",
        "Running;",
        "Unknown; unable to reach the execution host;",
        "Running;",
        "Signal <USR1> requested by user or administrator <bob>;",
        "Exited with exit code 99. The CPU time used is 1.5 seconds",
        "Pending: Requeue the job for the next run: 1 host;",
        "Dispatched to <ol1>;",
        "Starting (Pid 77);",
        "Running with execution home </home/alice>, Execution CWD <",
        "Exited by signal 9. The CPU time used is 0.0 seconds;",
        "Completed <exit>; TERM_OWNER: job killed by owner;",
    ]


def test_totals_and_peaks_stay_after_the_end() -> None:
    """CPU time and the highest memory of every host are told after the job is over."""
    c = QueryCluster()
    c.submit(1, slots=2, max_slots=2)
    c.start(1, hosts="ol1 ol2")
    c.finish(1, utime=2.0, stime=1.0, max_mem=10 * 1024, avg_mem=8 * 1024, max_processes=3, max_threads=4)
    out = c.ask("bhist", "1", l=True)[0]
    assert "Done successfully. The CPU time used is 6.0 seconds;" in out
    assert "MAX MEM: 20 Mbytes;  AVG MEM: 16 Mbytes; MEM Efficiency: 0.00%\n" in out
    assert [row.split() for row in out.partition(" HOST USAGE:\n")[2].splitlines()[1:3]] == [
        ["ol1", "3.0s", "10.0M", "-", "3", "4"],
        ["ol2", "3.0s", "10.0M", "-", "3", "4"],
    ]


def test_histories_of_elements_without_records() -> None:
    c = QueryCluster()
    c.submit(5, "11:30:00", name="arr", indices="1-3")
    c.feed(ev.ElementsHeld(at=at("11:30:10"), key=5, elements=Ranges.parse("2")))
    c.start(element(5, 3), "11:30:20")
    c.now = at("11:31:00")
    rows = [row.split() for row in c.ask("bhist", "5")[0].splitlines()[2:5]]
    assert [(row[0], row[3], row[4], row[5]) for row in rows] == [
        ("5[1]", "60", "0", "0"),
        ("5[2]", "10", "50", "0"),
        ("5[3]", "20", "0", "40"),
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, ["2"]),
        ({"a": True}, ["1", "2", "3"]),
        ({"d": True}, ["1", "3"]),
        ({"e": True}, ["3"]),
        ({"p": True}, ["2"]),
        ({"a": True, "C": "11:34,11:36"}, ["3"]),
        ({"a": True, "S": "11:35,"}, ["2"]),
        ({"d": True, "D": "11:32,11:33"}, ["3"]),
        ({"a": True, "J": "three"}, ["3"]),
        ({"a": True, "q": "fair"}, ["2"]),
        ({"a": True, "n": "0"}, ["1", "2", "3"]),
    ],
)
def test_bhist_selects(options: dict[str, Any], found: list[str]) -> None:
    c = QueryCluster()
    c.submit(1, "11:30:00", name="one")
    c.start(1, "11:31:00")
    c.finish(1, "11:32:00")
    c.submit(3, "11:31:00", name="three")
    c.start(3, "11:32:30")
    c.finish(3, "11:35:00", status=256)
    c.submit(2, "11:36:00", name="two", queue="fair")
    rows = c.ask("bhist", **options)[0].splitlines()[2:-1]
    assert [row.split()[0] for row in rows] == found


def test_events_by_time() -> None:
    c = QueryCluster()
    c.submit(1, "11:34:00", name="n")
    c.start(1, "11:34:05")
    c.feed(ev.HostSwitched(at=at("11:34:06"), host="ol3", closed=True, by="openlava", comment="disk swap"))
    out = c.ask("bhist", t=True, T="11:34,11:35")[0].splitlines()
    assert out[0] == "Fri Nov 20 11:34:00: Job <1> submitted from host <ol1> to Queue <normal>;"
    assert out[-1] == "Fri Nov 20 11:34:06: Host <ol3> closed by administrator <openlava> disk swap."
    assert c.ask("bhist", t=True, T="nonsense")[1:] == ("nonsense: Bad time specification\n", 255)


def test_history_of_administrators() -> None:
    c = QueryCluster()
    c.feed(ev.HostSwitched(at=at("11:33:49"), host="ol3", closed=True, by="openlava", comment="disk swap"))
    c.feed(ev.QueueSwitched(at=at("11:33:50"), queue="fair", open=False, active=True, by="openlava"))
    out = c.ask("badmin", "hist")[0]
    assert "mbatchd started on host <ol1>; cluster name <openlava>" in out
    assert "Fri Nov 20 11:33:49: Host <ol3> closed by administrator <openlava> disk swap.\n" in out
    assert c.ask("badmin", "qhist", "fair")[0].count("\n") == 2
    assert c.ask("badmin", "hhist", "ol9") == ("", "No matching event found\n", 0)
    assert c.ask("badmin", "nosuch")[1:] == ("Invalid command <nosuch>\n", 255)


def test_nothing_in_the_history() -> None:
    assert QueryCluster().ask("bhist", "7") == ("No matching job found\n", "", 255)


@pytest.mark.parametrize("command", ["lshosts", "lsload"])
def test_hosts_of_a_group(command: str) -> None:
    c = QueryCluster()
    conf = replace(c.cluster.conf, host_groups=(("outer", ("inner", "ol1")), ("inner", ("ol2",)), ("every", ("all",))))
    c.feed(ev.Configured(at=at("11:39:00"), conf=conf))
    listed = lambda *words: sorted(row.split()[0] for row in c.ask(command, *words, noheader=True)[0].splitlines())  # noqa: E731
    assert listed("outer") == listed("outer", "ol1") == ["ol1", "ol2"]
    assert listed("every") == listed()


def test_shared_resources_by_name() -> None:
    c = QueryCluster()
    assert c.ask("lshosts", "lic", s=True) == c.ask("lshosts", s=True)
    assert len(c.ask("lshosts", "mem", s=True)[0].splitlines()) == 1
    assert c.ask("lshosts", "nosuch", s=True)[1:] == ("nosuch: resource name not found\n", 255)


def test_memory_of_hosts_in_a_unit() -> None:
    c = QueryCluster()
    shown = c.ask("bhosts", "ol1", o="total_mem total_mem::G total_mem:4:K total_mem::S", noheader=True)[0].split()
    kilobytes = int(shown[0].removesuffix("M")) * 1024
    assert shown[1:] == [formats.unit_text(kilobytes, "G"), f"{kilobytes}"[:4], formats.unit_text(kilobytes, "S")]
