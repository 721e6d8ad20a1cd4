"""btop and bbot by administrators, and what is moved."""

from __future__ import annotations

import itertools

import pytest

from config.model.queue import QueueConfig
from config.model.values import Aps, FairShare
from lavad.core.decide.modify.position import move
from lavad.core.lang.asks import Caller, Move, Refused
from tests.support.worlds.bench import ADMIN, Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmove, order


def test_an_administrator_of_the_queue_moves_a_job_among_all(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", administrators=("carol",)))
    bench.submit(user="bob")
    bench.submit()
    bmove(bench, 2, caller=Caller("carol", 1003, "h1"))
    assert order(bench) == [2, 1]


def test_an_administrator_moves_a_job_among_its_owners(bench: Bench) -> None:
    """``btop -u``."""
    bench.submit(user="bob")
    bench.submit()
    bench.submit()
    bench.take(move(bench.cluster, Move(job="3", top=True, own=True), ADMIN, bench.now))
    assert order(bench) == [1, 3, 2]


@pytest.mark.parametrize("top", [True, False])
@pytest.mark.parametrize(("job", "place"), [*itertools.product((2, 3, 5, 6), (1, 2, 3, 4, 9))])
def test_places_are_those_among_the_waiting_jobs_of_the_queue_with_the_same_priority(
    bench: Bench, job: int, place: int, top: bool
) -> None:
    """1 is in another queue, 4 has a higher priority; a second move finds what the first has left."""
    bench.submit(queue="night")
    for key in (2, 3, 4, 5, 6):
        bench.now += key % 2  # some at the same moment
        bench.submit(user="bob" if key % 2 else "alice", priority=9 if key == 4 else -1)
    wanted = [2, 3, 5, 6]
    for moved, at in ((job, place), (5, 2)):
        answer = bench.take(move(bench.cluster, Move(job=str(moved), top=top, place=at), ADMIN, bench.now))
        assert answer == {"job": str(moved), "place": min(at, 4)}
        wanted.remove(moved)
        wanted.insert(min(at, 4) - 1 if top else max(4 - at, 0), moved)
    assert order(bench) == [4, *wanted, 1]


def test_the_element_that_waits_is_moved(bench: Bench) -> None:
    """Of elements that are named: not one that runs, nor one before."""
    bench.submit(array="1-4", slots=4)
    bench.step()
    assert sorted(bench.cluster.elements[1]) == [1 << 32 | 1, 2 << 32 | 1, 3 << 32 | 1]
    bench.take(move(bench.cluster, Move(job="1[3-4]", top=True), ADMIN, bench.now))
    assert bench.cluster.jobs.rows[4 << 32 | 1].position < 0
    with pytest.raises(Refused, match=r"^1\[1-3\]: Job has already started$"):
        move(bench.cluster, Move(job="1[1-3]", top=True), ADMIN, bench.now)


@pytest.mark.parametrize("queue", ["sums", "grouped"])
def test_jobs_that_absolute_priority_orders_are_not_moved(bench: Bench, queue: str) -> None:
    """As in LSF: there a place means nothing."""
    shared = FairShare(shares=(("default", 1),), queues=("grouped",))
    bench.queues(
        QueueConfig(name="normal"), QueueConfig(name="sums", aps_priority=Aps(), share=shared), QueueConfig(name="grouped")
    )
    bench.submit(queue=queue)
    with pytest.raises(Refused, match=r"^1: Jobs of a queue with APS_PRIORITY cannot be moved"):
        move(bench.cluster, Move(job="1", top=True), ADMIN, bench.now)
