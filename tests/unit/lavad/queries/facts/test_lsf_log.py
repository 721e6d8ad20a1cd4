"""bhist -f and bacct -f: what a file in LSF's form says, of lava's own writing and of LSF's."""

from __future__ import annotations

import base64
import shlex
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.job.job import End, PendingSignal
from lavad.core.lang.states import JobState, SignalKind, TermReason
from lavad.lsb.lines import ACCOUNTS, EVENTS, Earlier, lines_of
from lavad.store.read import Reader
from tests.support.worlds.query_cluster import ADMIN, QueryCluster, at, element
from tests.support.worlds.query_store import Stored, stored

LSF = (
    '"JOB_NEW" "10.1" {t} 7610 1000 33554438 1 {t} 0 0 -65535 0 0 "bob" -1 -1 -1 -1 -1 -1 -1 -1 -1 600 -1 "" 60.00 18 "work" '
    '"rusage[mem=10]" "master" "/home/bob" "" "" "out.%J" "" "/home/bob" "{t}.7610" 1 "pac" "" "" "a ""b""" "sleep 9" 0 "" "" '
    '"proj" 0 1 "X86_64" "" "" "" "" 5136 0 "" "" ""\n'
    '"JOB_START" "10.1" {t} 7610 4 0 0 60.0 1 "2*pac" "" "" 0 "" 0 "" 4294967295\n'
    '"JOB_EXECUTE" "10.1" {t} 7610 1000 812 "/home/bob" "/home/bob" "bob" 812 0 "" -1 ""\n'
    '"JOB_SIGNAL" "10.1" {t} 7610 1000 0 "KILL" 0 "bob"\n'
    '"JOB_STATUS" "10.1" {t} 7610 32 0 0 0.3369 {t} 1 0.250000 0.500000 1480 0 -1 0 0 14 0 0 0 0 -1 0 0 0 13 8 -1 0 9 0 14\n'
    '"JOB_STATUS" "10.1" {t} 7610 cut off\n'
).format(t=int(at("11:33:50")))
ACCT = (
    '"JOB_FINISH" "10.1" {e} 7610 1000 33554438 1 {t} 0 0 {t} "bob" "work" "" "" "" "master" "/home/bob" "" "" "" '
    '"10/{t}.7610" 1 "pac" 1 "pac" 32 60.0 "a" "sleep 1000" 1.500000 0.500000 2048 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 '
    '-1 -1 "" "default" 65280 1 "" "" 0 2048 0 "" "" "" "" 0 "" 14 "" -1 "/bob" "" "" "" -1 "" "" 5136 "" {t} "" "" 2 1032 '
    '"0" 1033 "0" 0 0 0 2048 "select[type == any] order[r15s:pg] " "" -1 "" -1 0 "" 0 0 "" 839 "" 0 "" 0.0 0.0 0.0 0.0 0.0 1 '
    '"pac" -1 0 0 0\n'
).format(t=int(at("11:33:50")), e=int(at("11:34:50")))


def packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def grown() -> QueryCluster:
    c = QueryCluster()
    c.submit(1, name="one", command="sleep 1", text={"output": "o.%J"}, slots=2, max_slots=2)
    c.start(1, hosts="ol2 ol1", pid=7)
    c.feed(
        ev.SignalRequested(
            at=at("11:34:00"), key=1, pending=PendingSignal(kind=SignalKind.KILL, at=at("11:34:00"), by="alice", signal=0)
        )
    )
    c.finish(1, "11:34:10", status=9, reason=TermReason.TERM_OWNER)
    c.submit(2, name="two")
    c.feed(ev.JobHeld(at=at("11:34:00"), key=2, by="alice"))
    c.feed(ev.JobReleased(at=at("11:35:00"), key=2, by="alice"))
    c.start(2, "11:35:10")
    c.feed(ev.JobSuspended(at=at("11:36:00"), key=2, state=JobState.USUSP, by="alice"))
    c.feed(ev.JobResumed(at=at("11:36:30"), key=2, by="alice"))
    c.finish(2, "11:37:00")
    c.submit(5, name="arr", indices="1-2")
    c.start(element(5, 2))
    c.finish(element(5, 2), "11:34:00")
    c.submit(6, "11:34:00", name="held", held=True)
    c.feed(ev.JobReleased(at=at("11:36:00"), key=6, by="alice"))
    c.submit(7, name="late")
    c.start(7, "11:34:00")
    ended = End(at=at("11:36:00"), started=at("11:34:00"), utime=1.0)
    c.feed(ev.JobFinished(at=at("11:37:30"), key=7, state=JobState.DONE, end=ended, ended=ended.at))
    c.feed(ev.HostSwitched(at=at("11:38:00"), host="ol1", closed=True, by="openlava", comment="disk"))
    return c


def written(folder: Path) -> tuple[str, str]:
    """What the writer of lsb.events and lsb.acct makes of the store."""
    reader = Reader.open(f"sqlite:///{folder}/lava.db")
    try:
        lines = list(lines_of(reader, [event for _, event in reader.events_after(0, 5000)], Earlier()))
    finally:
        reader.close()
    events, accounts = ("".join(line for name, line in lines if name == which) for which in (EVENTS, ACCOUNTS))
    return events, accounts


def without_memory(text: str) -> list[str]:
    """LSF's files have neither averages nor what each host used."""
    return [line for line in text.splitlines() if "MEM" not in line and line.strip()]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Stored, str, str]]:
    with stored(grown(), tmp_path) as found:
        yield found, *written(tmp_path)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {"a": True}),
        ([], {}),
        (["1"], {}),
        (["2"], {"l": True}),
        (["5"], {}),
        (["6", "7"], {}),
        ([], {"d": True, "u": "all"}),
        ([], {"q": "night", "a": True}),
        ([], {"J": "two", "a": True}),
        (["5[2]"], {"l": True}),
        ([], {"C": "2026/11/20/11:36,2026/11/20/11:38", "a": True}),
    ],
)
def test_history_from_the_file_is_that_of_the_store(
    store: tuple[Stored, str, str], words: list[str], options: dict[str, Any]
) -> None:
    found, events, _ = store
    own, file = found.ask("bhist", *words, **options), found.ask("bhist", *words, f=packed(events), **options)
    assert (without_memory(file[0]), *file[1:]) == (without_memory(own[0]), *own[1:])


def test_accounting_from_the_file_is_that_of_the_store(store: tuple[Stored, str, str]) -> None:
    found, _, accounts = store
    for options in ({}, {"u": "all"}, {"e": True}, {"m": "ol1"}, {"b": True}, {"J": "t*"}, {"J": "arr"}):
        assert found.ask("bacct", f=packed(accounts), **options) == found.ask("bacct", **options), options
    assert "TERM_OWNER: job killed by owner" in found.ask("bacct", "1", l=True, f=packed(accounts))[0]


def test_events_of_the_file_by_time(store: tuple[Stored, str, str]) -> None:
    found, events, _ = store
    out = found.ask("bhist", t=True, T="2026/11/20/11:30,2026/11/20/11:59", f=packed(events))[0]
    assert "Job <2> dispatched to <ol2>" in out
    assert "Host <ol1> closed by administrator <openlava> disk." in out
    told = found.ask("badmin", "hhist", f=packed(events), caller=ADMIN)[0]
    assert told.startswith("Fri Nov 20 11:38:00: Host <ol1> closed")


def test_records_of_lsf_itself() -> None:
    c = QueryCluster()
    out, err, status = c.ask("bhist", "7610", l=True, f=packed("#80\n" + LSF))
    assert (err, status) == ("", 0)
    told = out.replace("\n                     ", "")
    assert 'Job <7610>, Job Name <a "b">, User <bob>, Project <proj>, Command <sleep 9>' in told
    assert "Submitted from host <master> to Queue <work>, CWD <$HOME>,Output File <out.%J>" in told
    assert "Dispatched to 2 Hosts/Processors <pac> <pac>;" in told
    assert "Signal <KILL> requested by user or administrator <bob>;" in told
    assert "Exited by signal 9. The CPU time used is 0.8 seconds;" in told
    assert "TERM_OWNER: job killed by owner" in told
    assert c.ask("bhist", q="work", u="bob", a=True, f=packed(LSF))[2] == 0  # a queue that this cluster has not
    assert c.ask("bhist", q="nosuch", f=packed(LSF))[1:] == ("nosuch: No such queue\n", 255)


def test_accounting_of_lsf_itself() -> None:
    c = QueryCluster()
    out, err, status = c.ask("bacct", u="all", f=packed(ACCT + ACCT[:200] + "\n"))
    assert (err, status) == ("", 0)
    assert "Total number of done jobs:       0      Total number of exited jobs:     1\n" in out
    assert " Total CPU time consumed:       2.0 " in out
    assert " Total Run time consumed:        60 " in out


def test_what_is_no_file_of_lsf_is_empty_and_a_broken_ask_is_refused() -> None:
    c = QueryCluster()
    assert c.ask("bhist", f=packed("hello\n\x00\xff\n"))[::2] == ("No matching job found\n", 255)
    assert c.ask("bhist", f="?")[1:] == ("bhist: option -f is not supported by lava here\n", 255)


def test_options_that_bring_no_file_are_short() -> None:
    c = QueryCluster()
    assert c.ask("bacct", u="a" * 8193)[1:] == ("bacct: option -u is too long (at most 8192)\n", 255)
    assert c.ask("bacct", f="?" * 8193)[1:] == ("bacct: option -f is not supported by lava here\n", 255)


def test_fields_stand_where_tools_look_for_them(store: tuple[Stored, str, str]) -> None:
    _, events, accounts = store
    rows = [shlex.split(line) for line in events.splitlines()]
    new = next(row for row in rows if row[0] == "JOB_NEW" and row[3] == "1")
    assert (new[13], new[28], new[41], new[42]) == ("alice", "normal", "one", "sleep 1")
    signalled = next(row for row in rows if row[0] == "JOB_SIGNAL")
    assert signalled[3:] == ["1", signalled[4], "0", "KILL", "0", "alice"]
    assert next(row for row in rows if row[0] == "JOB_STATUS" and row[3] == "1")[-2:] == ["14", "0"]  # LSF's TERM_OWNER
    done = next(shlex.split(line) for line in accounts.splitlines() if line.split()[3] == "1")
    assert (done[11], done[22:27]) == ("alice", ["0", "2", "ol2", "ol1", "32"])
    assert done[-9:] == ["2", "ol2", "ol1", "-1", "0", "0", "0", "0", "0"]
    executed = [row for row in rows if row[0] == "JOB_EXECUTE" and row[3] == "1"]
    assert [row[8] for row in executed] == ["alice"]  # once, for the first host
