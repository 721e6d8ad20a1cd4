"""What listings, bhist, bacct and lsb.acct say of how long a job waited, ran and was suspended: one number each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.job.job import End, Placed
from lavad.core.job.spec import NO_TEXT
from lavad.core.lang.states import JobState, TermReason
from lavad.lsb.write import OfClass, job_finish
from tests.support.worlds.query_cluster import QueryCluster, at, element
from tests.support.worlds.query_store import stored

STATES = ("PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN", "TOTAL")


def dispatched(c: QueryCluster, when: float, started: float, host: str = "ol2") -> None:
    """Job 1 is sent to a host, whose first process begins later, after the pre-execution command."""
    c.feed(ev.JobDispatched(at=when, key=1, attempt=1, uid="u", parts=(Placed(host, 1),)))
    c.feed(ev.PartStarted(at=started, key=1, attempt=1, host=host, pid=9, started=started))


def suspended(c: QueryCluster, when: float, state: JobState = JobState.USUSP) -> None:
    c.feed(ev.JobSuspended(at=when, key=1, state=state))


def job(times: dict[str, float]) -> QueryCluster:
    """A job that is dispatched, suspended by the system, then by its user too, resumed and suspended again."""
    c = QueryCluster()
    c.submit(1, app="sim")
    dispatched(c, times["dispatched"], times["started"])
    suspended(c, times["system"], JobState.SSUSP)
    suspended(c, times["user"])
    c.feed(ev.JobResumed(at=times["resumed"], key=1))
    suspended(c, times["again"])
    return c


@pytest.fixture
def c() -> QueryCluster:
    begin = at("11:34:00")
    offsets = {"dispatched": 0.8, "started": 6.2, "system": 20.7, "user": 30.1, "resumed": 41.9, "again": 60.5}
    return job({name: begin + offset for name, offset in offsets.items()})


def said(c: QueryCluster, word: str = "1") -> tuple[int, int, dict[str, int]]:
    """(run_time and pend_time of bjobs, the columns of bhist)."""
    out = c.ask("bjobs", word, a=True, o="run_time pend_time", json=True)[0]
    row = json.loads(out)["RECORDS"][0]
    cells = c.ask("bhist", word)[0].splitlines()[2].split()[-len(STATES) :]
    return int(row["RUN_TIME"].split()[0]), int(row["PEND_TIME"]), dict(zip(STATES, map(int, cells), strict=True))


def test_bjobs_has_the_numbers_of_bhist_at_any_time(c: QueryCluster) -> None:
    for clock in ("11:35:30", "11:40:00"):
        c.now = at(clock)
        run, pend, states = said(c)
        assert (run, pend) == (states["RUN"], states["PEND"]) == (39, int(at("11:34:00")) - int(c.cluster.jobs.rows[1].submitted))
    c.feed(ev.JobResumed(at=at("11:40:00") + 0.2, key=1))
    c.now = at("11:41:00")
    assert said(c)[0] == said(c)[2]["RUN"] == 99


def test_a_job_that_ends_while_it_is_suspended_has_run_until_then(c: QueryCluster, tmp_path: Path) -> None:
    c.finish(1, "11:36:00", status=9, reason=TermReason.TERM_OWNER)
    filters: tuple[dict[str, Any], ...] = ({}, {"app": "sim"})
    with stored(c, tmp_path) as found:
        run, _, states = said(c)
        assert run == states["RUN"] == 39
        assert states["TOTAL"] == sum(states[name] for name in STATES[:-1])
        for options in filters:
            out = found.ask("bacct", u="all", **options)[0]
            assert " Total Run time consumed:        39 " in out, options
            assert f" Total wait time in queues: {states['PEND']:>7.1f}\n" in out, options
    ended = c.store.finished[1]
    line = job_finish(ended, OfClass(c.view().spec(ended), NO_TEXT, 1))
    assert line.split()[-17] == "39"


def test_totals_of_bacct_are_the_sums_of_its_lines(tmp_path: Path) -> None:
    c = QueryCluster()
    begin, count = at("11:34:00"), 9
    c.submit(1, indices=f"1-{count}", slots=1, app="sim")
    for index in range(1, count + 1):
        key, start = element(1, index), begin + 0.77 * index
        c.feed(ev.JobDispatched(at=start, key=key, attempt=1, uid="u", parts=(Placed("ol2", 1),)))
        c.feed(ev.PartStarted(at=start + 0.4, key=key, attempt=1, host="ol2", pid=9, started=start + 0.4))
        c.feed(ev.PartEnded(at=start + 3.3, key=key, attempt=1, host="ol2", end=End(at=start + 3.3, utime=0.01)))
        c.feed(ev.PartGone(at=start + 3.3, key=key, attempt=1, host="ol2"))
        c.feed(ev.JobFinished(at=start + 3.3, key=key, state=JobState.DONE))
    with stored(c, tmp_path) as found:
        lines = [line.split() for line in found.ask("bacct", b=True)[0].splitlines() if line.startswith("alice ")]
        waits, turnarounds = ([int(line[at]) for line in lines] for at in (6, 7))
        assert len(lines) == count
        assert sum(waits) > 0
        plain, filtered = (out.partition("SUMMARY")[2] for out in (found.ask("bacct")[0], found.ask("bacct", app="sim")[0]))
        assert plain == filtered, "whether the database adds up or lavad does"
        assert f" Total wait time in queues: {sum(waits):>7.1f}\n" in plain
        assert f" Maximum turnaround time: {max(turnarounds):>9} " in plain


def test_what_ends_at_midnight_is_of_one_day(tmp_path: Path) -> None:
    c = QueryCluster()
    for key, clock in ((1, "23:59:59"), (2, "24:00:00"), (3, "24:00:01")):
        c.submit(key)
        c.start(key)
        c.finish(key, clock)
    c.now = at("40:00:00")
    with stored(c, tmp_path) as found:
        totals = [found.ask("bacct", C=day)[0].partition("done jobs:")[2].split()[0] for day in ("2026/11/20", "2026/11/21")]
        assert totals == ["1", "2"]
        head = found.ask("bacct", C="2026/11/20")[0].splitlines()
        assert head[5:7] == [
            "  - completed between  Fri Nov 20 00:00:00 2026",
            "                  ,and   Fri Nov 20 23:59:59 2026",
        ]


def test_time_left_and_expected_end_do_not_count_suspensions() -> None:
    c = QueryCluster(abs_runlimit=True)
    c.submit(1, limits={"run": 3600})
    c.start(1, "11:33:55")
    suspended(c, at("11:38:55"))
    for clock, finish in (("11:38:55", "12:33"), ("12:08:55", "13:03")):
        c.now = at(clock)
        out = c.ask("bjobs", "1", o="time_left %complete finish_time", noheader=True)[0]
        assert out.split() == ["0:55", "L", "8.33%", "L", "Nov", "20", finish, "L"]
        assert c.ask("time-left", "1")[0] == "3300\n"


def test_while_its_host_is_silent_a_job_is_what_it_was_before() -> None:
    """The run limit goes on for one that ran, not for one that was suspended, as on its host."""
    c = QueryCluster()
    c.submit(1, limits={"run": 3600})
    begin = at("11:34:00")
    dispatched(c, begin, begin)
    c.feed(ev.JobLost(at=begin + 10, key=1, host="ol2"), ev.JobFound(at=begin + 30, key=1, state=JobState.RUN))
    suspended(c, begin + 40)
    c.feed(ev.JobLost(at=begin + 50, key=1, host="ol2"))
    for clock in (begin + 60, begin + 99):
        c.now = clock
        assert (said(c)[0], c.ask("time-left", "1")[0]) == (40, "3560\n")
    c.feed(ev.JobFound(at=begin + 100, key=1, state=JobState.USUSP), ev.JobResumed(at=begin + 120, key=1))
    c.now = begin + 125
    assert said(c)[0] == 45
    suspended(c, begin + 130)
    c.feed(ev.JobLost(at=begin + 140, key=1, host="ol2"))
    c.finish(1, "11:40:00", status=9)
    assert said(c)[0] == 50


def test_a_job_of_a_chunk_runs_from_its_start_be_it_told_late() -> None:
    c = QueryCluster()
    c.submit(1)
    begin = at("11:34:00")
    c.feed(
        ev.JobDispatched(at=begin, key=1, attempt=1, uid="u", parts=(Placed("ol2", 1),), chunk="u0", waits=True, ahead=(9,)),
        ev.PartStarted(at=begin + 50, key=1, attempt=1, host="ol2", pid=9, started=begin + 20),
    )
    c.now = begin + 60
    run, pend, states = said(c)
    assert (run, pend) == (states["RUN"], states["PEND"]) == (40, 20 + int(begin) - int(c.cluster.jobs.rows[1].submitted))


def test_a_job_killed_while_it_waits_in_a_chunk_never_ran() -> None:
    c = QueryCluster()
    c.submit(1)
    c.submit(2)
    c.feed(
        ev.JobDispatched(at=at("11:34:00"), key=1, attempt=1, uid="u1", parts=(Placed("ol2", 0),), chunk="u1"),
        ev.JobDispatched(
            at=at("11:34:00"), key=2, attempt=1, uid="u2", parts=(Placed("ol2", 1),), chunk="u1", waits=True, ahead=(1,)
        ),
        ev.PartEnded(at=at("11:35:00"), key=2, attempt=1, host="ol2", end=End(status=9, at=at("11:35:00"))),
        ev.PartGone(at=at("11:35:00"), key=2, attempt=1, host="ol2"),
        ev.JobFinished(at=at("11:35:00"), key=2, state=JobState.EXIT, status=9, reason=TermReason.TERM_OWNER),
    )
    c.now = at("11:35:00")
    run, pend, states = said(c, "2")
    assert (run, pend) == (states["RUN"], states["PEND"]) == (0, 60 + int(at("11:34:00") - c.store.finished[2].submitted))
