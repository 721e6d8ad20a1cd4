"""A command about many jobs is decided in parts: what happens to the jobs between two of them, and what it answers in the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.base.bulk import AT_ONCE
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control import control
from lavad.core.decide.control.revive import FinishedJobs, revive
from lavad.core.decide.modify.switch import switch
from lavad.core.job.job import Placed
from lavad.core.lang.asks import Kill, Requeue, Resume, Select, Stop, Switch
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import JobState
from lavad.store.rows import killed_jobs
from tests.support.worlds.bench import ALICE, Bench

MANY = 2 * AT_ONCE + 3
ALL = Select(ids=["0"])
FINISHED = "Job has already finished"


def parts(bench: Bench, decided: Decided, between: Callable[[int], Any] = lambda at: None) -> tuple[int, dict[str, str]]:
    """Apply one part after the other; how many there were, and what was answered (id to why not)."""
    count = 0
    while True:
        bench.apply(*decided.events)
        count += 1
        assert len(decided.events) <= AT_ONCE + 1
        if decided.more is None:
            check_invariants(bench.cluster)
            rows = decided.answer["results"]
            assert len({row["id"] for row in rows}) == len(rows)
            return count, {row["id"]: row["why"] for row in rows}
        between(count)
        bench.now += 1.0
        decided = decided.more(bench.cluster, bench.now)


def fill(bench: Bench) -> None:
    for _ in range(MANY):
        bench.submit()


def dispatch(bench: Bench, key: int) -> None:
    bench.apply(ev.JobDispatched(at=bench.now, key=key, attempt=1, uid="u", parts=(Placed(host="h1", slots=1),)))


def test_all_jobs_are_stopped_resumed_switched_and_killed_in_parts(bench: Bench) -> None:
    fill(bench)
    rows = bench.cluster.jobs.rows
    asks: list[tuple[Callable[..., Decided], Any, Callable[[], int]]] = [
        (control.stop, Stop(jobs=ALL), lambda: sum(job.state is JobState.PSUSP for job in rows.values())),
        (control.resume, Resume(jobs=ALL), lambda: sum(job.state is JobState.PEND for job in rows.values())),
        (switch, Switch(queue="night", jobs=ALL), lambda: bench.cluster.use.queues["night"][0]),
        (control.kill, Kill(jobs=ALL), lambda: MANY - len(rows)),
    ]
    for decide, ask, reached in asks:
        count, answer = parts(bench, decide(bench.cluster, ask, ALICE, bench.now))
        assert (count, len(answer), set(answer.values())) == (3, MANY, {""})
        assert reached() == MANY


def test_what_starts_or_ends_before_its_part_comes_is_dealt_with_as_it_is_then(bench: Bench) -> None:
    fill(bench)

    def between(at: int) -> None:
        if at == 1:
            dispatch(bench, MANY)
            bench.take(control.kill(bench.cluster, Kill(jobs=Select(ids=[str(MANY - 1)])), ALICE, bench.now))

    _, answer = parts(bench, control.kill(bench.cluster, Kill(jobs=ALL), ALICE, bench.now), between)
    assert {name: why for name, why in answer.items() if why} == {str(MANY - 1): FINISHED}
    assert list(bench.cluster.jobs.rows) == [MANY]
    assert [pending.kind for pending in bench.run(MANY).pending_signals] == ["kill"]


def test_untouched_elements_are_killed_in_parts_and_those_that_started_meanwhile_too(bench: Bench) -> None:
    bench.submit(name="arr", array=f"1-{MANY}")
    started = key_of(1, MANY)
    count, answer = parts(
        bench,
        control.kill(bench.cluster, Kill(jobs=Select(ids=["1"])), ALICE, bench.now),
        lambda at: dispatch(bench, started) if at == 1 else None,
    )
    assert (count, answer) == (3, {"1": ""})
    assert [pending.kind for pending in bench.run(started).pending_signals] == ["kill"]
    array = bench.cluster.arrays.rows[1]
    assert (array.exited, len(array.pending)) == (MANY - 1, 0)


def test_an_array_is_held_in_one_part(bench: Bench) -> None:
    bench.submit(name="arr", array=f"1-{MANY}")
    assert parts(bench, control.stop(bench.cluster, Stop(jobs=Select(ids=["1"])), ALICE, bench.now)) == (1, {"1": ""})
    assert len(bench.cluster.arrays.rows[1].held) == MANY


def test_a_part_may_be_decided_again(bench: Bench) -> None:
    """As the engine does when a record of another caller could not be stored."""
    fill(bench)
    first = control.stop(bench.cluster, Stop(jobs=ALL), ALICE, bench.now)
    bench.apply(*first.events)
    assert first.more is not None
    assert first.more(bench.cluster, bench.now).events == first.more(bench.cluster, bench.now).events
    count, answer = parts(bench, first.more(bench.cluster, bench.now))
    assert (count, len(answer)) == (2, MANY)


def test_finished_jobs_wait_again_in_parts(bench: Bench) -> None:
    fill(bench)
    parts(bench, control.kill(bench.cluster, Kill(jobs=ALL), ALICE, bench.now))
    finished = FinishedJobs(jobs=list(bench.cluster.finished.values()), specs=dict(bench.cluster.specs.rows))
    assert requeued(bench, finished) == (3, MANY)
    assert set(bench.cluster.jobs.rows) == set(range(1, MANY + 1))


def test_finished_elements_wait_again_in_parts(bench: Bench) -> None:
    bench.submit(name="arr", array=f"1-{MANY}")
    array = bench.cluster.arrays.rows[1]
    killed = control.kill(bench.cluster, Kill(jobs=Select(ids=["1"])), ALICE, bench.now).events
    jobs = list(killed_jobs([replace(killed[0], elements=array.indices)], {1: array}))
    parts(bench, control.kill(bench.cluster, Kill(jobs=Select(ids=["1"])), ALICE, bench.now))
    finished = FinishedJobs(jobs=jobs, arrays=dict(bench.cluster.finished_arrays), specs=dict(bench.cluster.specs.rows))
    assert requeued(bench, finished) == (3, MANY)
    assert bench.cluster.arrays.rows[1].exited == 0


def requeued(bench: Bench, finished: FinishedJobs) -> tuple[int, int]:
    """How many parts and lines there were; all is well in each."""
    ask = Requeue(jobs=ALL, states=["EXIT"])
    live = control.requeue(bench.cluster, ask, ALICE, bench.now)
    count, answer = parts(bench, revive(bench.cluster, ask, finished, ALICE, bench.now, live))
    assert set(answer.values()) == {""}
    return count, len(answer)
