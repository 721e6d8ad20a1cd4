"""bjdepinfo: what a job waits for and what waits for it, level by level, of live, finished and array jobs."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.lang.asks import OptionValue, Query
from tests.support.worlds.query_cluster import QueryCluster, at, element


@pytest.fixture
def family() -> QueryCluster:
    """1 runs; 2 waits for it; 3 and the array 4 wait for 2; 5 waits for 3 and for the array; 6 stands alone."""
    c = QueryCluster()
    c.submit(1, name="prepare")
    c.submit(2, name="a-name-of-14-ch", dependency="done(1)", parents=(1,))
    c.submit(3, name="left", dependency="ended(2)", parents=(2,))
    c.submit(4, name="right", indices="1-3", dependency="done(2)", parents=(2,))
    c.submit(5, name="last", dependency="done(3) && done(4)", parents=(3, 4))
    c.submit(6, name="alone")
    c.start(1)
    return c


def rows(cluster: QueryCluster, *words: str, **options: Any) -> list[list[str]]:
    """The lines behind the header, in words."""
    out, err, status = cluster.ask("bjdepinfo", *words, **options)
    assert (err, status) == ("", 0)
    return [line.split() for line in out.splitlines()[1:]]


def test_the_parents_of_a_job(family: QueryCluster) -> None:
    out, err, status = family.ask("bjdepinfo", "2")
    assert (err, status) == ("", 0)
    assert out == (
        "JOBID          PARENT         PARENT_STATUS  PARENT_NAME  LEVEL\n"
        "2              1              RUN            prepare      1\n"
    )


def test_a_long_name_keeps_its_end(family: QueryCluster) -> None:
    assert rows(family, "3") == [["3", "2", "PEND", "*e-of-14-ch", "1"]]


def test_parents_of_parents_each_pair_once(family: QueryCluster) -> None:
    direct = [["5", "3", "PEND", "left", "1"], ["5", "4", "PEND", "right", "1"]]
    second = [["3", "2", "PEND", "*e-of-14-ch", "2"], ["4", "2", "PEND", "*e-of-14-ch", "2"]]
    assert rows(family, "5") == direct
    assert rows(family, "5", r="2") == direct + second
    assert rows(family, "5", r=True) == [*direct, *second, ["2", "1", "RUN", "prepare", "3"]]


def test_children_level_by_level(family: QueryCluster) -> None:
    assert rows(family, "1", c=True) == [["1", "2", "PEND", "*e-of-14-ch", "1"]]
    assert [(row[0], row[1], row[4]) for row in rows(family, "1", c="2")] == [("1", "2", "1"), ("2", "3", "2"), ("2", "4", "2")]
    header = family.ask("bjdepinfo", "1", c=True)[0].splitlines()[0].split()
    assert header == ["JOBID", "CHILD", "CHILD_STATUS", "CHILD_NAME", "LEVEL"]


def test_the_condition_and_whether_it_is_met(family: QueryCluster) -> None:
    first = family.ask("bjdepinfo", "2", l=True)[0].splitlines()[0]
    assert first == "The dependency condition of job <2> is not satisfied: done(1)"
    of_array = family.ask("bjdepinfo", "4", l=True)[0].splitlines()[0]
    assert of_array == "The dependency condition of job <4> is not satisfied: done(2)"
    sentences = family.ask("bjdepinfo", "2", c=True, l=True)[0].splitlines()[:2]
    assert sentences == [
        "The dependency condition of job <3> is not satisfied: ended(2)",
        "The dependency condition of job <4> is not satisfied: done(2)",
    ]


def test_parents_that_are_over_and_arrays_have_a_state(family: QueryCluster) -> None:
    family.finish(1, "11:36:00", status=256)
    assert rows(family, "2") == [["2", "1", "EXIT", "prepare", "1"]]
    family.start(element(4, 1), "11:37:00")
    assert rows(family, "5")[1][2] == "RUN"
    family.finish(element(4, 1), "11:38:00")
    family.feed(ev.JobHeld(at=at("11:38:30"), key=3))
    assert [row[2] for row in rows(family, "5")] == ["PSUSP", "PEND"]


def test_an_element_that_a_condition_names_stands_with_its_own_state(family: QueryCluster) -> None:
    family.submit(7, name="of-two", dependency="ended(4[1]) || done(4[3])", parents=(4, 4))
    assert rows(family, "7") == [["7", "4[1]", "PEND", "right[1]", "1"], ["7", "4[3]", "PEND", "right[3]", "1"]]
    family.start(element(4, 1), "11:37:00")
    family.finish(element(4, 1), "11:38:00", status=256)
    assert [row[1:4] for row in rows(family, "7")] == [["4[1]", "EXIT", "right[1]"], ["4[3]", "PEND", "right[3]"]]
    out, err, status = family.ask("bjdep", "7")
    assert (out.splitlines()[2:], err, status) == (
        ["ended       4[1]    EXIT         true", "done        4[3]    PEND         false"], "", 0
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "options", "err"),
    [
        ((), {}, "bjdepinfo: one job ID is needed\n"),
        (("1", "2"), {}, "bjdepinfo: one job ID is needed\n"),
        (("99",), {}, "Job <99> is not found\n"),
        (("6",), {}, "Job <6> has no dependencies\n"),
        (("6",), {"c": True}, "Job <6> has no children\n"),
        (("5",), {"r": "0"}, "0: Illegal level value\n"),
        (("5",), {"r": "x"}, "x: Illegal level value\n"),
    ],
)
def test_errors(family: QueryCluster, words: tuple[str, ...], options: dict[str, OptionValue], err: str) -> None:
    query = Query(command="bjdepinfo", options=options, words=list(words))
    assert family.query(query) == ("", err, 255)
