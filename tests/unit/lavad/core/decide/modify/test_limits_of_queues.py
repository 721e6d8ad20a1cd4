"""Limits of jobs that go to another queue, by bswitch or bmod -q."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.modify.switch import switch
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Modify, Select, Switch
from tests.support.worlds.bench import ALICE, LOCAL, Bench

LIMITED = QueueConfig(name="limited", defaults=Limits(run=120, mem=50), limits=Limits(run=600, mem=200, processes=20))


def limits(bench: Bench, key: int) -> tuple[int | None, int | None, int | None]:
    found = bench.cluster.spec_of(key).limits
    return found.run, found.mem, found.processes


@pytest.mark.parametrize("by_bmod", [False, True], ids=["bswitch", "bmod -q"])
def test_limits_of_a_queue_stay_with_it(bench: Bench, by_bmod: bool) -> None:
    """A job that waits is as if it had been submitted to the new queue; what it has named itself it keeps."""
    bench.queues(QueueConfig(name="normal"), LIMITED)
    plain, own = bench.bsub(q="limited")["job"], bench.bsub(q="limited", W="1", M="100")["job"]
    assert (limits(bench, plain), limits(bench, own)) == ((120, 50, 20), (60, 100, 20))

    def to(queue: str) -> None:
        for key in (plain, own):
            if by_bmod:
                ask = Modify(job=str(key), options={"q": queue})
                bench.take(modify(bench.cluster, ask, JobText(command="c"), ALICE, bench.now, LOCAL))
            else:
                bench.asked(switch, Switch(queue=queue, jobs=Select(ids=[str(key)])))

    to("normal")
    assert (limits(bench, plain), limits(bench, own)) == ((None, None, None), (60, 100, None))
    to("limited")
    assert (limits(bench, plain), limits(bench, own)) == ((120, 50, 20), (60, 100, 20))


def test_a_job_that_runs_keeps_its_limits_in_another_queue(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal"), LIMITED)
    key = bench.placed()
    bench.asked(switch, Switch(queue="limited", jobs=Select(ids=[str(key)])))
    assert (bench.cluster.spec_of(key).queue, limits(bench, key)) == ("limited", (None, None, None))
