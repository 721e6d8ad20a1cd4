"""bacct: which ended jobs the options choose, by the database and by a test of each job alike, and what a record says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lavad.core.lang.states import TermReason
from tests.support.worlds.query_cluster import QueryCluster
from tests.support.worlds.query_store import Stored, stored


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    c = QueryCluster()
    c.submit(1, "11:00:00", name="one", project="p1", group="/g")
    c.start(1, "11:10:00", hosts="ol1")
    c.finish(1, "11:20:00", utime=6.0, stime=0.0)
    c.submit(2, "11:05:00", name="two", queue="fair")
    c.start(2, "11:15:00", hosts="ol2")
    c.finish(2, "11:25:00", status=256, reason=TermReason.TERM_OWNER)
    c.submit(3, "11:06:00", name="three", user="bob", app="sim")
    c.finish(3, "11:30:00", reason=TermReason.TERM_OWNER)
    c.submit(4, "11:07:00")
    with stored(c, tmp_path_factory.mktemp("bacct")) as found:
        yield found


@pytest.mark.parametrize(
    ("words", "options", "done", "exited"),
    [
        ("", {}, 1, 1),
        ("", {"u": "all"}, 1, 2),
        ("", {"u": "bob"}, 0, 1),
        ("3", {}, 0, 1),
        ("3", {"u": "alice"}, 0, 0),
        ("", {"d": True}, 1, 0),
        ("", {"e": True}, 0, 1),
        ("", {"q": "fair"}, 0, 1),
        ("", {"P": "p1"}, 1, 0),
        ("", {"J": "t*"}, 0, 1),
        ("", {"m": "ol1"}, 1, 0),
        ("", {"m": "hgA"}, 1, 1),
        ("", {"C": "20/11:24,20/11:26"}, 0, 1),
        ("", {"S": "20/10:59,20/11:01"}, 1, 0),
        ("", {"D": "20/11:14,20/11:16"}, 0, 1),
        ("", {"g": "/g"}, 1, 0),
        ("", {"u": "all", "app": "sim"}, 0, 1),
        ("", {"Lp": "licence"}, 0, 0),
    ],
)
def test_jobs_that_the_options_choose(store: Stored, words: str, options: dict[str, Any], done: int, exited: int) -> None:
    out, err, status = store.ask("bacct", *words.split(), **options)
    assert (err, status) == ("", 0)
    assert f"Total number of done jobs: {done:>7}      Total number of exited jobs: {exited:>5}\n" in out


def test_what_is_not_there_is_refused(store: Stored) -> None:
    assert store.ask("bacct", q="nosuch") == ("", "nosuch: No such queue\n", 255)


def test_figures_of_jobs(store: Stored) -> None:
    """Of one that ran, as long as it ran; of one that never did, its wait until its end."""
    done, killed = (store.ask("bacct", job, l=True)[0] for job in ("1", "3"))
    assert "Fri Nov 20 11:10:00: Dispatched to <ol1>;" in done
    assert "Completed <done>." in done
    assert next(row.split()[:5] for row in done.splitlines() if " done " in row) == ["6.00", "600", "1200", "done", "0.0050"]
    assert "Completed <exit>; TERM_OWNER: job killed by owner." in killed
    assert "Dispatched" not in killed
    assert next(row.split()[:5] for row in killed.splitlines() if " exit " in row) == ["0.00", "1440", "1440", "exit", "0.0000"]


def test_sums_are_of_the_jobs(store: Stored) -> None:
    out = store.ask("bacct", "1", "2")[0]
    for line in (
        "Total wait time in queues:  1200.0",
        "Average turnaround time:      1200 (seconds/job)",
        "Total Run time consumed:      1200 ",
        "Maximum hog factor of a job:  0.01 ",
        "Average expansion factor of a job:  2.00 ",
    ):
        assert line in out, out
    assert "Total throughput" not in out
    assert " Total throughput:            24.00 (jobs/hour)  during    0.08 hours\n" in store.ask("bacct")[0]


@pytest.mark.parametrize(("options", "cut"), [({}, "ol1        one\n"), ({"w": True}, "ol1        one 1\n")])
def test_a_line_a_job(store: Stored, options: dict[str, Any], cut: str) -> None:
    rows = [row for row in store.ask("bacct", b=True, u="all", **options)[0].splitlines(keepends=True) if row.startswith("alice")]
    assert rows[0] == f"alice     normal     Nov 20 11:00   6.00      600        1200  ol1        {cut}"
