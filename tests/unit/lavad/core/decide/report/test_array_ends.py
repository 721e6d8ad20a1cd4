"""Arrays of jobs with roles that are over before all of their elements are: too many failed, or enough succeeded."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.control import kill
from lavad.core.decide.control.hosts import expired, greeted, silent
from lavad.core.decide.report.array_ends import overdue
from lavad.core.decide.report.report import decide_reports
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.events import SignalRequested
from lavad.core.job.job import End
from lavad.core.job.reports import EndedReport
from lavad.core.lang.asks import Kill, Refused, Select
from lavad.core.lang.ids import index_of, key_of
from lavad.core.lang.states import JobState, TermReason
from tests.support.worlds.bench import ALICE, LOCAL, Bench
from tests.support.worlds.roles import OK, Roles, ask, code, role

AGAIN = ("TaskFailed", "RestartJob", -1)


class Elements:
    """An array of jobs of one task."""

    def __init__(self, bench: Bench, name: str = "x[1-6]%3", again: bool = True, **policy: Any) -> None:
        self.bench = bench
        made = ask(role(), options={"J": name} | ({"r": True} if again else {}), **policy)
        self.job = int(bench.take(submit(bench.cluster, Given(made, ALICE, bench.now, LOCAL)))["job"])

    def run(self) -> list[int]:
        """What can start, runs; which elements do."""
        bench = self.bench
        bench.now += 100.0
        bench.step()
        for key in self.live():
            run = bench.job(key).run
            if run is not None and not run.started:
                bench.start(key, run.parts[0].host)
        return sorted(index_of(key) for key in self.live() if bench.job(key).run is not None)

    def live(self) -> list[int]:
        return list(self.bench.cluster.elements.get(self.job, ()))

    def ends(self, index: int, status: int = OK) -> JobState:
        """The task of an element ends, and then its part; what becomes of the element."""
        bench, key = self.bench, key_of(self.job, index)
        run = bench.run(key)
        host = run.parts[0].host
        bench.said("task_ended", key, host, 0, run.tasks[0].number, status, TermReason.NONE, uid=run.uid)
        return self.gone(index, status)

    def gone(self, index: int, status: int = OK) -> JobState:
        bench, key = self.bench, key_of(self.job, index)
        bench.ended(key, bench.run(key).parts[0].host, status)
        check_invariants(bench.cluster)
        done = bench.cluster.finished.get(key)
        return done.state if done is not None else bench.job(key).state

    def asked_to_end(self) -> list[int]:
        live = [key for key in self.live() if (run := self.bench.job(key).run) is not None and run.is_ending]
        return sorted(map(index_of, live))

    def counts(self) -> tuple[int, int, int]:
        """Elements that never started and still may, those done, those exited."""
        array = self.bench.cluster.arrays.rows[self.job]
        return len(array.pending), array.done, array.exited


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_more_failures_than_may_be_end_the_others(bench: Bench) -> None:
    """One may fail; with the second, what waits and what runs ends, and says why."""
    array = Elements(bench, array_failures=1)
    assert array.run() == [1, 2, 3]
    assert array.ends(1, code(3)) is JobState.EXIT
    assert (array.asked_to_end(), array.counts()) == ([], (3, 0, 1))
    assert array.ends(2, code(3)) is JobState.EXIT
    assert (array.asked_to_end(), array.counts()) == ([3], (0, 0, 5))
    assert array.gone(3, 15) is JobState.EXIT
    outcome = bench.outcome(key_of(array.job, 3))
    assert (outcome.reason, outcome.why) == (TermReason.TERM_OTHER, "2 elements of the array failed, and 1 may")
    assert array.job not in bench.cluster.arrays.rows


def test_an_element_that_is_killed_ends_no_others(bench: Bench) -> None:
    array = Elements(bench, array_failures=0)
    array.run()
    bench.asked(kill, Kill(jobs=Select(ids=[f"{array.job}[2]"])))
    assert array.gone(2, 9) is JobState.EXIT
    assert array.asked_to_end() == []


@pytest.mark.parametrize("at_once", [False, True])
def test_elements_that_are_killed_do_not_count(bench: Bench, at_once: bool) -> None:
    """Whether they wait, or run."""
    array = Elements(bench, array_failures=1)
    array.run()
    bench.asked(kill, Kill(jobs=Select(ids=[f"{array.job}[2,5-6]"]), now=at_once))
    if not at_once:
        array.gone(2, 9)
    assert array.ends(1, code(3)) is JobState.EXIT
    assert (array.asked_to_end(), array.counts()) == ([], (1, 0, 4))
    assert array.ends(3, code(3)) is JobState.EXIT
    assert array.job not in bench.cluster.arrays.rows


def test_an_action_ends_the_whole_array(bench: Bench) -> None:
    """Also elements that wait to start again."""
    array = Elements(bench, actions=[("TaskFailed", "AbortArray", 42), AGAIN], backoff=2)
    array.run()
    assert array.ends(1, code(1)) is JobState.PEND
    assert array.ends(2, code(42)) is JobState.EXIT
    assert (array.asked_to_end(), array.counts()) == ([3], (0, 0, 5))
    assert array.gone(3, 15) is JobState.EXIT
    outcome = bench.outcome(key_of(array.job, 1))
    assert outcome.why.startswith("element 2 failed: worker[0] on h")
    assert outcome.why.endswith("ended with exit code 42")


def test_restarts_of_all_elements_count_together(bench: Bench) -> None:
    array = Elements(bench, name="x[1-3]", actions=[AGAIN], backoff=2, array_backoff=True)
    array.run()
    assert array.ends(1, code(1)) is JobState.PEND
    assert array.ends(2, code(1)) is JobState.PEND
    assert array.ends(3, code(1)) is JobState.EXIT
    outcome = bench.outcome(key_of(array.job, 3))
    assert outcome.why.endswith("ended with exit code 1, and the array's 2 restarts are used up")
    assert array.job not in bench.cluster.arrays.rows


@pytest.mark.parametrize(("rule", "ends"), [("2", (2, 3)), ("[1,3]", (3, 1)), ("2[2-4]", (3, 2))])
def test_enough_elements_that_succeed_end_the_others_well(bench: Bench, rule: str, ends: tuple[int, int]) -> None:
    array = Elements(bench, array_success=["[6]", rule])
    array.run()
    assert array.ends(ends[0]) is JobState.DONE
    assert array.asked_to_end() == []
    assert array.ends(ends[1]) is JobState.DONE
    (left,) = array.asked_to_end()
    assert array.counts() == (0, 5, 0)
    assert array.gone(left, 15) is JobState.DONE
    assert array.job not in bench.cluster.arrays.rows


def test_any_two_do_not_make_those_that_are_named(bench: Bench) -> None:
    array = Elements(bench, array_success=["[1,4]"])
    array.run()
    array.ends(2)
    array.ends(1)
    assert array.asked_to_end() == []


@pytest.mark.parametrize(
    ("name", "policy", "why"),
    [
        ("x", {"array_failures": 1}, "array_failures: the job is no array: give it a name such as x[1-10]"),
        ("x[1-3]", {"array_success": ["[2-4]"]}, "array_success [2-4]: the array has the elements 1-3"),
        ("x[1-3]", {"array_success": ["4"]}, "array_success 4: the array has 3 elements"),
        (
            "x[1-3]",
            {"array_success": ["3[1-2]"]},
            "array_success 3[1-2]: 3 is not between 1 and the number of elements that could succeed",
        ),
        ("x[1-3]", {"array_success": ["a"]}, "array_success a: it is COUNT, [INDICES] or COUNT[INDICES]"),
        ("x[1-3]", {"array_failures": -2}, "array_failures -2 is not between -1 and 2147483647"),
    ],
)
def test_what_can_never_hold_is_refused(bench: Bench, name: str, policy: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused) as refused:
        Elements(bench, name, **policy)
    assert refused.value.text == why


def test_ends_that_are_decided_together_count_together(bench: Bench) -> None:
    """Two of a host in one message are enough, though neither alone is."""
    array = Elements(bench, array_success=["2"])
    array.run()
    told = []
    for index in (1, 2):
        key = key_of(array.job, index)
        run = bench.run(key)
        host = run.parts[0].host
        bench.said("task_ended", key, host, 0, 1, OK, TermReason.NONE, uid=run.uid)
        told.append(EndedReport(host=host, key=key, uid=run.uid, attempt=1, end=End(at=bench.now), gone=True))
    bench.apply(*decide_reports(bench.cluster, told, bench.now))
    assert (array.asked_to_end(), array.counts()) == ([3], (0, 5, 0))


def test_an_element_whose_end_was_known_when_its_host_was_lost_counts(bench: Bench) -> None:
    array = Elements(bench, array_success=["1"])
    array.run()
    key = key_of(array.job, 1)
    run = bench.run(key)
    host = run.parts[0].host
    bench.said("task_ended", key, host, 0, 1, OK, TermReason.NONE, uid=run.uid)
    bench.ended(key, host, OK, gone=False)
    bench.take(silent(bench.cluster, host, bench.now))
    bench.take(expired(bench.cluster, host, [key], bench.now))
    check_invariants(bench.cluster)
    assert array.counts()[:2] == (0, 4)


def test_elements_that_are_lost_beside_one_that_is_enough_end_with_it(bench: Bench) -> None:
    """Those of a lost host would start again: none is asked to end that has no attempt any more."""
    array = Elements(bench, name="x[1-6]", array_success=["1"])
    array.run()
    key = key_of(array.job, 1)
    run = bench.run(key)
    host = run.parts[0].host
    keys = sorted(one for one in array.live() if bench.run(one).parts[0].host == host)
    assert len(keys) > 1
    bench.said("task_ended", key, host, 0, 1, OK, TermReason.NONE, uid=run.uid)
    bench.ended(key, host, OK, gone=False)
    bench.take(silent(bench.cluster, host, bench.now))
    bench.take(expired(bench.cluster, host, keys, bench.now))
    check_invariants(bench.cluster)
    assert array.asked_to_end() == sorted(index_of(one) for one in array.live())
    assert all(bench.finished(one).state is JobState.DONE for one in keys)


def test_elements_that_a_host_has_lost_count_as_failed(bench: Bench) -> None:
    """Those that may not start again; the host is back, and no longer has them."""
    array = Elements(bench, name="x[1-9]%6", again=False, array_failures=0)
    array.run()
    host = bench.run(key_of(array.job, 1)).parts[0].host
    there = [key for key in array.live() if bench.run(key).parts[0].host == host]
    others = sorted(index_of(key) for key in array.live() if key not in there and bench.run(key) is not None)
    bench.take(silent(bench.cluster, host, bench.now))
    bench.apply(*greeted(bench.cluster, host, bench.cluster.hosts.rows[host].facts, {}, bench.now))
    check_invariants(bench.cluster)
    assert others == array.asked_to_end() != []
    assert array.counts()[0] == 0
    assert bench.finished(there[0]).state is JobState.EXIT


def test_all_of_an_array_ends_so_long_after_its_first_start(bench: Bench) -> None:
    """What runs is killed once, what waits never runs; restarts of elements do not begin the time anew."""
    array = Elements(bench, actions=[AGAIN], time_limit=300, backoff=9)
    assert overdue(bench.cluster, bench.now + 900.0).events == []
    assert array.run() == [1, 2, 3]
    began = bench.now
    assert array.ends(1, code(3)) is JobState.PEND
    array.run()
    bench.now = began + 299.0
    assert overdue(bench.cluster, bench.now).events == []
    bench.now = began + 300.0
    bench.take(overdue(bench.cluster, bench.now))
    assert (array.asked_to_end(), array.counts()) == ([2, 3, 4], (0, 0, 3))
    assert overdue(bench.cluster, bench.now).events == []
    assert {array.gone(index, 9) for index in (2, 3, 4)} == {JobState.EXIT}
    outcome = bench.outcome(key_of(array.job, 2))
    assert outcome is not None
    assert (outcome.reason, outcome.why) == (
        TermReason.TERM_RUNLIMIT,
        "all of the array had 300 seconds from the start of its first element",
    )


def test_a_job_ends_so_long_after_its_first_start(bench: Bench) -> None:
    """Its second attempt has what is left of the time."""
    job = Roles(bench, role(actions=[AGAIN]), time_limit=300, backoff=9).run()
    began = bench.now
    bench.now += 100.0
    job.ended(0, code(3))
    assert job.finish() is JobState.PEND
    bench.now = began + 250.0
    job.run()
    bench.now = began + 299.0
    assert overdue(bench.cluster, bench.now).events == []
    bench.now = began + 300.0
    assert [type(event) for event in overdue(bench.cluster, began + 350.0).events] == [SignalRequested]


@pytest.mark.parametrize(("statuses", "left"), [((OK, code(3)), [3]), ((code(3), code(3)), [])])
def test_those_that_are_done_do_not_count_as_failed(bench: Bench, statuses: tuple[int, int], left: list[int]) -> None:
    """One may fail; a message tells of one that did and one that did not, or of two that did."""
    array = Elements(bench, again=False, array_failures=1)
    array.run()
    told = []
    for index, status in zip((1, 2), statuses, strict=True):
        run = bench.run(key_of(array.job, index))
        end = End(at=bench.now, status=status)
        key, host = key_of(array.job, index), run.parts[0].host
        bench.said("task_ended", key, host, 0, 1, status, TermReason.NONE, uid=run.uid)
        told.append(EndedReport(host=host, key=key, uid=run.uid, attempt=1, end=end, gone=True))
    bench.apply(*decide_reports(bench.cluster, told, bench.now))
    assert [index for index in (3,) if index not in array.asked_to_end()] == left
