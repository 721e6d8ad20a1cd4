"""btop and bbot by administrators."""

from __future__ import annotations

from config.model.queue import QueueConfig
from lavad.core.decide.modify.position import move
from lavad.core.lang.asks import Caller, Move
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
