"""Jobs by name, with wildcards and indices, and by state: what bkill, bstop and bjobs mean by ``-J`` and ``-stat``."""

from __future__ import annotations

import pytest

from lavad.core.decide.control import control
from lavad.core.lang.asks import Kill, Refused, Select
from lavad.core.lang.dependency import parse, questions_of
from lavad.core.lang.ids import key_of
from lavad.core.lang.job_names import pattern
from tests.support.worlds.bench import Bench


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("arr", True),
        ("arr[3]", True),
        ("arr[1-4]", True),
        ("arr[1,3]", True),
        ("a*", True),
        ("*", True),
        ("a*[3]", True),
        ("arr[4]", False),
        ("ar", False),
        ("arr[3", False),
        ("[3]", False),
        ("arr[]", False),
    ],
)
def test_an_element_by_name(text: str, fits: bool) -> None:
    assert pattern(text).fits(key_of(7, 3), "arr[3]") is fits


def test_a_name_that_holds_brackets() -> None:
    assert pattern("x[1]").fits(9, "x[1]")
    assert not pattern("x[1]").fits(9, "x1")


def bkill(bench: Bench, *ids: str, **filters: str) -> list[tuple[str, str]]:
    return bench.asked(control.kill, Kill(jobs=Select(ids=list(ids), **filters)))


def test_elements_of_an_array_by_name(bench: Bench) -> None:
    job = bench.bsub(J="arr[1-5]")["job"]
    assert bkill(bench, "0", name="arr[2-3]") == [(f"{job}[2-3]", "")]
    assert list(bench.cluster.arrays.rows[job].pending) == [1, 4, 5]


def test_jobs_by_state(bench: Bench) -> None:
    running = bench.placed()
    waiting = bench.bsub(J="w")["job"]
    array = bench.bsub(J="a[1-2]")["job"]
    assert bkill(bench, state="pend") == [(str(waiting), ""), (str(array), "")]
    assert bkill(bench, state="run") == [(str(running), "")]
    assert bkill(bench, state="susp") == []
    with pytest.raises(Refused, match="Bad job state"):
        bkill(bench, state="done")


def test_two_hosts_for_two_limits(bench: Bench) -> None:
    with pytest.raises(Refused, match="More than one host_spec is specified: <h1> and <h2>"):
        bench.bsub(c="1:30/h1", W="2:15/h2")
    bench.bsub(c="1:30/h1", W="2:15/h1")


def test_tasks_on_nodes(bench: Bench) -> None:
    job = bench.bsub(n="4", nnodes="2")["job"]
    spec = bench.cluster.spec_of(job)
    assert (spec.slots, "ptile=2" in spec.resreq) == (4, True)
    with pytest.raises(Refused, match="evenly"):
        bench.bsub(n="3", nnodes="2")


@pytest.mark.parametrize("tasks", ["1", "2", "4", "1,6"])
def test_fewer_tasks_than_nodes_are_refused(bench: Bench, tasks: str) -> None:
    """-n was passed over: the job had a task for each node."""
    with pytest.raises(Refused, match=r"^3: the tasks of -n cannot be spread evenly over so many nodes$"):
        bench.bsub(n=tasks, nnodes="3")


@pytest.mark.parametrize("text", ['done("p[*]")', 'done("p"[*])', "done(p[*])"])
def test_indices_inside_the_quotes_of_a_name(text: str) -> None:
    (question,) = questions_of(parse(text))
    assert (question.ref.name, question.ref.same_index) == ("p", True)
