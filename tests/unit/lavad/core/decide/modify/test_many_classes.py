"""Commands about jobs of more classes than are kept without jobs: each job gets its spec, whichever lose their last job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster import cluster as tables
from lavad.core.decide.base import bulk
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.checkpoint import checkpoint
from lavad.core.decide.control.control import migrate
from lavad.core.decide.modify import modify as modifying
from lavad.core.decide.modify.switch import switch
from lavad.core.job.job import Placed
from lavad.core.job.spec import Checkpoint, JobText, Spec
from lavad.core.lang.asks import Checkpoint as AskCheckpoint
from lavad.core.lang.asks import Migrate, Modify, Select, Switch
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import JobState
from tests.support.worlds.bench import ALICE, LOCAL, Bench

ALL = Select(ids=["0"])


def finished(bench: Bench, decided: Decided) -> int:
    """Take all chunks; how many jobs were done."""
    bench.take(decided)
    while decided.more is not None:
        decided = decided.more(bench.cluster, bench.now)
        bench.take(decided)
    return sum(result["ok"] for result in decided.answer["results"])


@given(
    st.lists(st.tuples(st.sampled_from(["normal", "night"]), st.integers(1, 6)), min_size=1, max_size=14),
    st.lists(st.integers(1, 6), max_size=6),
    st.integers(0, 4),
    st.sampled_from([2, 5, 500]),
)
def test_jobs_of_many_classes_are_switched(jobs: list[tuple[str, int]], idle: list[int], kept: int, size: int) -> None:
    """``idle``: classes of the queue that had jobs before."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "KEPT_SPECS", kept)
        patched.setattr(bulk, "AT_ONCE", size)
        bench = Bench()
        for number in idle:
            key = bench.submit(queue="night", project=f"p{number}")
            bench.apply(ev.JobFinished(at=bench.now, key=key, state=JobState.EXIT))
        keys = {bench.submit(queue=queue, project=f"p{number}"): number for queue, number in jobs}
        bench.cluster.forget_changes()
        assert finished(bench, switch(bench.cluster, Switch(queue="night", jobs=ALL), ALICE, bench.now)) == len(jobs)
        specs = [bench.cluster.spec_of(key) for key in keys]
        assert [(spec.queue, spec.project) for spec in specs] == [("night", f"p{number}") for number in keys.values()]


def test_a_user_with_many_classes_in_two_queues_does_not_end_the_master(bench: Bench) -> None:
    """While the last jobs of those of one queue are switched, the first of the other's are, in one chunk."""
    count = tables.KEPT_SPECS + 40
    bench.configure(queues=(*bench.cluster.conf.queues, replace(bench.cluster.conf.queues[0], name="third")))
    for queue in ("normal", "night"):
        for number in range(count):
            bench.submit(queue=queue, project=f"p{number}")
    done = finished(bench, switch(bench.cluster, Switch(queue="third", jobs=ALL), ALICE, bench.now))
    assert done == 2 * count
    assert {bench.cluster.spec_of(key).queue for key in bench.cluster.jobs.rows} == {"third"}


def test_migrated_and_checkpointed_ones_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "KEPT_SPECS", 0)
    keys = [bench.placed(project=f"p{number}", checkpoint=Checkpoint(folder="/c"), rerunnable=True) for number in range(6)]
    asked = AskCheckpoint(jobs=ALL, period=7)
    assert finished(bench, checkpoint(bench.cluster, asked, ALICE, bench.now)) == len(keys)
    assert {(spec := bench.cluster.spec_of(key)).checkpoint and spec.checkpoint.period for key in keys} == {420}
    assert finished(bench, migrate(bench.cluster, Migrate(jobs=ALL, hosts=["h2"]), ALICE, bench.now)) == len(keys)
    assert {bench.cluster.spec_of(key).hosts for key in keys} == {("h2",)}


@given(st.lists(st.integers(1, 5), min_size=2, max_size=9), st.lists(st.integers(1, 5), max_size=5), st.sampled_from([1, 2, 500]))
def test_elements_of_many_classes_are_modified(projects: list[int], idle: list[int], size: int) -> None:
    """Each gets the queue asked for, and keeps the rest. ``idle``: classes of the queue that had jobs before."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "KEPT_SPECS", 1)
        patched.setattr(modifying, "AT_ONCE", size)
        bench = Bench()
        job = bench.bsub(J=f"a[1-{len(projects)}]")["job"]
        for number in idle:
            key = bench.submit(queue="night", project=f"p{number}")
            bench.apply(ev.JobFinished(at=bench.now, key=key, state=JobState.EXIT))
        own = bench.cluster.spec_of(job)
        for index, number in enumerate(projects, 1):
            spec = spec_number_of(bench, replace(own, project=f"p{number}"))
            bench.apply(ev.JobModified(at=bench.now, key=key_of(job, index), spec=spec, name=f"a[{index}]"))
        ask = Modify(job=f"{job}[1-{len(projects)}]", options={"q": "night"})
        decided = modifying.modify(bench.cluster, ask, JobText(command="c"), ALICE, bench.now, LOCAL)
        while decided.more is not None:
            bench.take(decided)
            decided = decided.more(bench.cluster, bench.now)
        bench.take(decided)
        specs = [bench.cluster.spec_of(key_of(job, index)) for index in range(1, len(projects) + 1)]
        assert [(spec.queue, spec.project) for spec in specs] == [("night", f"p{number}") for number in projects]


def spec_number_of(bench: Bench, spec: Spec) -> int:
    """The number of a spec, which is added."""
    number = bench.cluster.spec_numbers.get(spec, bench.cluster.next_spec)
    if spec not in bench.cluster.spec_numbers:
        bench.apply(ev.SpecAdded(at=bench.now, spec=number, value=spec))
    return number


def test_elements_that_get_each_others_estimates_one_after_the_other(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """``-We+ N`` again: each gets the spec that an element before it has just lost."""
    monkeypatch.setattr(tables, "KEPT_SPECS", 1)
    bench.configure(params=replace(bench.cluster.conf.params, lsb_mod_all_jobs=True))
    bench.hosts("h1", slots=20)
    job = bench.bsub(J="a[1-9]")["job"]
    keys = [key_of(job, index) for index in range(1, 10)]
    for key in keys:
        bench.apply(ev.JobDispatched(at=bench.now, key=key, attempt=1, uid=f"u{key}", parts=(Placed(host="h1", slots=1),)))
        bench.start(key)
        bench.now += 1.0
    for _ in range(2):
        bench.now += 4.0
        ask = Modify(job=f"{job}[1-9]", options={"We+": "10"})
        bench.take(modifying.modify(bench.cluster, ask, JobText(command="c"), ALICE, bench.now, LOCAL))
    estimates = [bench.cluster.spec_of(key).estimate for key in keys]
    assert [(estimates[0] or 0) - (one or 0) for one in estimates] == list(range(9))
