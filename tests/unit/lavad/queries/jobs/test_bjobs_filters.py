"""Which jobs bjobs shows: states, owners, ids, names, order; errors and exit statuses."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.job.job import PendingSignal
from lavad.core.lang.asks import OptionValue, Query
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, SignalKind
from lavad.queries.frame.view import View
from lavad.queries.render import PIECE, render
from tests.support.worlds.query_cluster import ADMIN, ALICE, BOB, QueryCluster, at, element


def ids(c: QueryCluster, *words: str, **options: Any) -> list[str]:
    out, err, status = c.ask("bjobs", *words, o="jobid jobindex delimiter='.'", noheader=True, **options)
    assert (err, status) == ("", 0)
    return [row.removesuffix(".0") for row in out.split()]


def test_a_job_without_a_name_keeps_its_column() -> None:
    c = QueryCluster()
    c.submit(1, name="", command="")
    c.submit(2, name="x")
    nameless, named = c.ask("bjobs", noheader=True)[0].splitlines()
    assert nameless.replace("1 ", "2 ", 1) == named.replace("x ", "  ")


def mixed() -> QueryCluster:
    c = QueryCluster()
    c.submit(1, name="old")
    c.start(1, "11:34:00")
    c.submit(2, name="wait1", project="p2", app="sim", user_group="ugA")
    c.submit(3, name="urgent", queue="fair", group="/risk/a")
    c.submit(4, name="held", held=True)
    c.submit(5, name="bobs", user="bob")
    c.submit(6, name="stopped")
    c.start(6, "11:34:01", hosts="ol1")
    c.feed(ev.JobSuspended(at=at("11:34:05"), key=6, by="alice"))
    c.submit(7, name="done1")
    c.start(7, "11:34:02")
    c.finish(7, "11:36:00")
    c.submit(8, name="failed", project="once")
    c.start(8, "11:34:02")
    c.finish(8, "11:35:00", status=256)
    return c


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, "1 6 3 2 4"),
        ({"a": True}, "1 6 3 2 4 8 7"),
        ({"d": True}, "8 7"),
        ({"r": True}, "1"),
        ({"s": True}, "6 4"),
        ({"p": True}, "3 2 4"),
        ({"p": True, "r": True}, "1 3 2 4"),
        ({"ps": True}, "6 3 2 4"),
        ({"u": "all"}, "1 6 3 2 4 5"),
        ({"u": "bob"}, "5"),
        ({"u": "ugB"}, "5"),
        ({"u": "alice bob"}, "1 6 3 2 4 5"),
        ({"q": "fair"}, "3"),
        ({"P": "p2"}, "2"),
        ({"app": "sim"}, "2"),
        ({"G": "ugA"}, "2"),
        ({"g": "/risk/a"}, "3"),
        ({"m": "ol2"}, "1"),
        ({"m": "hgA"}, "1 6"),
        ({"m": "hgAll", "a": True}, "1 6 8 7"),
        ({"J": "urgent"}, "3"),
        ({"J": "*t*"}, "6 3 2"),
        ({"N": "IntelI5"}, "8 7"),
    ],
)
def test_options_select(options: dict[str, object], wanted: str) -> None:
    assert ids(mixed(), **options) == wanted.split()


def test_ids_select_any_state_of_anybody() -> None:
    assert ids(mixed(), "8", "5", "1") == ["1", "5", "8"]
    assert ids(mixed(), "8", "1", r=True) == ["1"]
    assert ids(mixed(), "0") == ids(mixed())


@pytest.mark.parametrize(
    ("words", "options", "err", "status"),
    [
        (["99"], {}, "Job <99> is not found\n", 255),
        (["1", "99"], {}, "Job <99> is not found\n", 0),
        (["98", "99"], {}, "Job <98> is not found\nJob <99> is not found\n", 255),
        (["x1"], {}, "x1: Illegal job ID.\n", 255),
        (["1[2"], {}, "1[2: Illegal job ID.\n", 255),
        ([], {"u": "nobody"}, "No unfinished job found\n", 0),
        ([], {"a": True, "u": "nobody"}, "No job found\n", 0),
        ([], {"r": True, "u": "bob"}, "No running job found\n", 0),
        ([], {"p3": True, "u": "x"}, "No pending job found\n", 0),
        ([], {"s": True, "u": "bob"}, "No suspended job found\n", 0),
        ([], {"d": True, "u": "bob"}, "No finished job found\n", 0),
        ([], {"q": "nosuch"}, "nosuch: No such queue\n", 255),
        ([], {"J": "nope"}, "Job <nope> is not found\n", 255),
        ([], {"m": "nosuch"}, "nosuch: Bad host name, host group name or cluster name\n", 255),
        ([], {"xyz": True}, "bjobs: option -xyz is not supported by lava\n", 255),
        ([], {"u": True}, "bjobs: option requires an argument -- 'u'\n", 255),
        ([], {"N": "nosuch"}, "nosuch: Bad host specification\n", 255),
    ],
)
def test_errors(words: list[str], options: dict[str, Any], err: str, status: int) -> None:
    found = mixed().ask("bjobs", *words, **options)
    assert found[1:] == (err, status)
    assert bool(found[0]) is (words == ["1", "99"])


def test_finished_jobs_are_shown_for_the_clean_period() -> None:
    c = mixed()
    c.now = at("11:36:00") + 3601
    assert c.ask("bjobs", d=True)[1] == "No finished job found\n"
    assert c.ask("bjobs", "7")[1:] == ("Job <7> is not found\n", 255)


@pytest.mark.parametrize(
    ("done", "later", "ended"),
    [
        (None, 3599, ["7"]),
        (60, 60, ["8", "7"]),
        (60, 61, ["8"]),
        (0, 1, ["8"]),
        (9000, 3541, ["7"]),
        (9000, 3601, []),
    ],
)
def test_those_that_ended_well_may_be_shown_for_less_time(done: int | None, later: int, ended: list[str]) -> None:
    """CLEAN_PERIOD_DONE; more than CLEAN_PERIOD has no effect. 7 is done at 11:36, 8 failed a minute before."""
    c = mixed()
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, params=replace(c.cluster.conf.params, clean_period_done=done))))
    c.now = at("11:36:00") + later
    out = c.ask("bjobs", d=True, noheader=True, o="id")[0]
    assert out.split() == ended
    assert (c.ask("bjobs", "7")[1] == "") is ("7" in ended)


def test_moved_jobs_come_first_or_last() -> None:
    c = QueryCluster()
    for job in (1, 2, 3):
        c.submit(job)
    c.feed(ev.JobMoved(at=at("11:35:00"), key=3, position=-1.0), ev.JobMoved(at=at("11:35:00"), key=1, position=1.0))
    assert ids(c) == ["3", "2", "1"]


def test_elements_come_in_order_of_index_and_by_id() -> None:
    c = QueryCluster()
    c.submit(5, name="arr", indices="1-6")
    c.submit(9, name="later")
    c.submit(4, "11:33:40", name="before")
    c.start(element(5, 4))
    c.feed(ev.ElementSplit(at=at("11:34:00"), key=element(5, 2)), ev.JobHeld(at=at("11:34:00"), key=element(5, 2)))
    c.feed(ev.ElementsHeld(at=at("11:34:00"), key=5, elements=Ranges.parse("5")))
    assert ids(c) == ["5.4", "4", "5.1", "5.2", "5.3", "5.5", "5.6", "9"]
    assert ids(c, "5[2-4]") == ["5.4", "5.2", "5.3"]
    assert ids(c, "5[5]") == ["5.5"]
    assert c.ask("bjobs", "5[7]")[1:] == ("Job <5[7]> is not found\n", 255)
    assert ids(c, J="arr") == ["5.4", "5.1", "5.2", "5.3", "5.5", "5.6"]
    assert ids(c, J="arr[3]") == ["5.3"]
    assert ids(c, "5", r=True) == ["5.4"]


def test_elements_killed_before_they_ran_are_shown_by_id() -> None:
    c = QueryCluster()
    c.submit(5, name="arr", indices="1-3")
    c.feed(ev.ElementsKilled(at=at("11:35:00"), key=5, elements=Ranges.parse("2-3"), by="alice"))
    out = c.ask("bjobs", "5", o="jobindex stat exit_reason delimiter=','", noheader=True)[0]
    reason = "TERM_OWNER: job killed by owner"
    assert out.splitlines() == ["1,PEND,-", f"2,EXIT,{reason}", f"3,EXIT,{reason}"]


def test_array_summary_of_live_and_finished_arrays() -> None:
    c = QueryCluster()
    c.submit(5, name="arr", indices="1-4")
    c.start(element(5, 1))
    c.finish(element(5, 1), status=256)
    c.start(element(5, 2))
    c.feed(ev.ElementsHeld(at=at("11:34:00"), key=5, elements=Ranges.parse("4")))
    c.submit(6, name="short", indices="1-2", user="bob")
    for index in (1, 2):
        c.start(element(6, index))
        c.finish(element(6, index))
    found = c.ask("bjobs", A=True, u="all")[0].splitlines()
    assert found[1:] == [
        "6        short[1-      bob       2    0    2    0    0     0     0     0",
        "5        arr[1-4]    alice       4    1    0    1    1     0     0     1",
    ]
    assert c.ask("bjobs", "5", A=True)[0].splitlines()[1:] == found[2:]
    assert c.ask("bjobs", "99", A=True)[1:] == ("Job <99> is not found\n", 255)
    assert c.ask("bjobs", A=True, u="nobody")[1:] == ("No job array found\n", 0)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"m": "ol2"}, "5"),
        ({"rusage": "mem"}, "6"),
        ({"pi": True}, "7"),
        ({"pe": True}, "6"),
        ({"Jd": "night*"}, "7"),
        ({"J": "no*"}, "7 6"),
    ],
)
def test_arrays_of_which_a_job_is_what_the_options_ask_for(options: dict[str, Any], wanted: str) -> None:
    c = QueryCluster()
    c.submit(5, name="ran", indices="1")
    c.start(element(5, 1))
    c.submit(6, name="notes", indices="1-2", resreq="rusage[mem=10]")
    c.submit(7, name="nodes", indices="1-2", held=True, text={"description": "night run"})
    rows = c.ask("bjobs", A=True, noheader=True, **options)[0].splitlines()
    assert [row.split()[0] for row in rows] == wanted.split()


def test_the_whole_name_of_an_array() -> None:
    c = QueryCluster()
    c.submit(5, name="a_long_name", indices="1-40:2", limit=3, user="firstnamelastname")
    row = c.ask("bjobs", A=True, w=True, u="all", noheader=True)[0].split()
    assert row[:4] == ["5", "a_long_name[1-40:2]%3", "firstnamelastname", "20"]


def test_sum_counts_slots() -> None:
    c = mixed()
    c.submit(20, slots=4, max_slots=4)
    out = c.ask("bjobs", sum=True)[0].splitlines()
    assert out[0].split() == ["RUN", "SSUSP", "USUSP", "UNKNOWN", "PEND", "FWD_PEND", "PSUSP"]
    assert out[1].split() == ["1", "0", "1", "0", "6", "0", "1"]


def test_scripts_and_environments_are_for_their_owners() -> None:
    c = QueryCluster()
    c.submit(1, text={"script": "#!/bin/sh\necho hi\n", "env": "abc"})
    c.store.envs["abc"] = {"PATH": "/bin", "A": "secret"}
    assert c.ask("bjobs", "1", script=True)[0] == "#!/bin/sh\necho hi\n"
    assert c.ask("bjobs", "1", env=True)[0] == "A=secret\nPATH=/bin\n"
    assert c.ask("bjobs", "1", env=True, caller=ADMIN)[2] == 0
    for option in ("script", "env"):
        assert c.ask("bjobs", "1", caller=BOB, **{option: True}) == ("", "Job <1>: User permission denied\n", 255)
    assert c.ask("bjobs", "9", env=True)[1:] == ("Job <9> is not found\n", 255)
    assert "secret" not in c.ask("bjobs", "1", l=True)[0]


def test_lost_and_dying_jobs_keep_their_names() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.feed(ev.JobLost(at=at("11:38:00"), key=1, host="ol2"))
    assert ids(c, r=True) == ["1"]
    assert " UNKWN " in c.ask("bjobs")[0]
    c.feed(
        ev.SignalRequested(at=at("11:38:01"), key=1, pending=PendingSignal(kind=SignalKind.KILL, at=at("11:38:01"), by="alice"))
    )
    assert " ZOMBI " in c.ask("bjobs")[0]


def test_a_long_list_streams_in_pieces_and_the_first_one_goes_at_once() -> None:
    c = QueryCluster(max_job_array_size=10**6)
    c.submit(1, name="arr", indices="1-20000")
    pieces = list(render(c.view(), Query(command="bjobs"), ALICE, c.now))
    assert pieces[0] == ("out", "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n")
    assert pieces[-1] == ("exit", "0")
    sizes = [len(text) for kind, text in pieces[1:-1]]
    assert max(sizes) < PIECE + 5_000
    assert sum(text.count("\n") for _, text in pieces) == 20001
    assert len(pieces) < 60


def test_a_query_that_does_not_exist() -> None:
    assert QueryCluster().ask("bnosuch") == ("", "bnosuch: no such query\n", 255)


def test_the_spec_of_a_job_that_left_memory_is_read_from_the_store() -> None:
    c = mixed()
    used = {job.spec for job in c.cluster.jobs.rows.values()}
    for number in set(c.cluster.specs.rows) - used:
        c.cluster.specs.drop(number)
    assert c.store.finished[8].spec not in c.cluster.specs.rows
    assert ids(c, "8", "7") == ["8", "7"]
    assert "alice" in c.ask("bjobs", "8")[0]


def test_noheader_drops_further_hosts_too() -> None:
    c = QueryCluster()
    c.submit(1, slots=2, max_slots=2)
    c.start(1, hosts="ol2 ol1")
    assert len(c.ask("bjobs", noheader=True)[0].splitlines()) == 1
    assert len(c.ask("bjobs")[0].splitlines()) == 3


def test_a_switched_job_is_listed_under_its_new_queue() -> None:
    c = QueryCluster()
    c.submit(1)
    number = c.cluster.next_spec
    c.feed(ev.SpecAdded(at=at("11:34:00"), spec=number, value=replace(c.cluster.spec_of(1), queue="fair")))
    c.feed(ev.JobSwitched(at=at("11:34:00"), key=1, spec=number, queue="fair", by="alice"))
    assert ids(c, q="fair") == ["1"]
    assert c.cluster.jobs.rows[1].state is JobState.PEND


@pytest.mark.parametrize("words", [("1", "2"), ()])
def test_a_store_that_is_ahead_lists_nothing_twice(words: tuple[str, ...]) -> None:
    c = QueryCluster()
    c.submit(1, name="plain")
    c.submit(2, name="arr", indices="1-3")
    c.start(1)
    c.start(element(2, 1))
    before = deepcopy(c.cluster)
    c.finish(1, "11:36:00")
    c.finish(element(2, 1), "11:36:00")
    c.start(element(2, 2))
    c.finish(element(2, 2), "11:37:00")
    view = View(before, c.soft, lambda: c.store, master="ol1", lsf={})
    options: dict[str, OptionValue] = {"a": True, "noheader": True, "o": "jobid jobindex stat delimiter='.'"}
    query = Query(command="bjobs", options=options, words=list(words))
    out = "".join(text for kind, text in render(view, query, ALICE, c.now) if kind == "out")
    assert sorted(out.split()) == ["1.0.RUN", "2.1.RUN", "2.2.PEND", "2.3.PEND"]


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        ("/a/b", ["2"]),
        ("/a/b/", ["2", "3"]),
        ("/a/", ["2", "3", "4"]),
        ("/", ["2", "3", "4"]),
        ("/a/b/c", ["3"]),
    ],
)
def test_a_group_with_a_slash_behind_it_is_that_with_those_below_it(group: str, wanted: list[str]) -> None:
    c = QueryCluster()
    c.submit(1)
    for job, path in ((2, "/a/b"), (3, "/a/b/c"), (4, "/a/bc")):
        c.submit(job, group=path)
    assert ids(c, g=group) == wanted
