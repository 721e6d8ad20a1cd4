"""What bmod and bswitch let a waiting job's owner make of it; lava why tells of nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import FairShare, Interactive, Limits, TaskLimit
from lavad.core.decide.modify.permitted import Permitted
from lavad.core.decide.modify.switch import switch
from lavad.core.lang.asks import Select, Switch
from lavad.sched.ask.trial import Moment
from lavad.sched.ask.what_if import find_changes
from tests.support.worlds.bench import ALICE, Bench

QUEUES = (
    QueueConfig(name="away", hosts=("h9",)),
    QueueConfig(name="plain"),
    QueueConfig(name="brief", limits=Limits(run=600)),
    QueueConfig(name="closed"),
    QueueConfig(name="shown", interactive=Interactive.ONLY),
    QueueConfig(name="shared", share=FairShare(shares=(("bob", 1),))),
    QueueConfig(name="large", tasklimit=TaskLimit(minimum=8, default=8, maximum=9)),
    QueueConfig(name="bobs", users=("bob",)),
)


@pytest.fixture
def site(bench: Bench) -> Bench:
    """Job 1 waits in a queue without hosts."""
    bench.queues(*QUEUES)
    bench.queue_switch("closed", open=False)
    bench.bsub(q="away", n="2", W="60")
    bench.step()
    bench.cluster.forget_changes()
    return bench


@pytest.mark.parametrize("queue", [queue.name for queue in QUEUES])
def test_a_queue_is_one_that_bswitch_takes_the_job_to(site: Bench, queue: str) -> None:
    told = Permitted.of(site.cluster, 1).in_queue(site.cluster.spec_of(1), queue)
    result = site.take(switch(site.cluster, Switch(queue=queue, jobs=Select(ids=["1"])), ALICE, site.now))["results"][0]
    assert (told is not None) == result["ok"] == (queue in ("plain", "away"))
    assert told is None or told == site.cluster.spec_of(1)


def test_lava_why_tells_of_no_queue_that_refuses_the_job(site: Bench) -> None:
    moment = Moment(site.cluster, site.soft, site.now, site.local)
    assert [change.text for change in find_changes(moment, 1, Permitted.of(site.cluster, 1))] == ["queue plain (bswitch plain)"]


def test_numbers_are_those_that_its_queue_and_application_profile_let_it_ask_for(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", job_size_list=(2, 8)))
    spec = bench.spec_of(n="8")
    assert [n for n in range(1, 9) if Permitted.of(bench.cluster, 1).takes(replace(spec, slots=n, max_slots=n))] == [2, 8]
    bench.configure(apps=(ApplicationConfig(name="app", tasklimit=TaskLimit(minimum=3, default=4, maximum=6)),))
    bench.queues(QueueConfig(name="normal"))
    spec = bench.spec_of(n="4", app="app")
    assert [n for n in range(1, 9) if Permitted.of(bench.cluster, 2).takes(replace(spec, slots=n, max_slots=n))] == [3, 4, 5, 6]
