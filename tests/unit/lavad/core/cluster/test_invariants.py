"""``check_invariants`` finds each kind of broken link."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import BrokenInvariant, check_invariants
from lavad.core.events.apply import apply
from lavad.core.job.job import Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState
from lavad.core.site.conf import QueueAdmin
from lavad.core.site.host import Host
from tests.support.worlds.history import Author

RUNNING, ELEMENT = 1, 2 << 32 | 3
SPEC = Spec(user="ann", queue="normal", gpu=GpuReq(num=1, mode="exclusive_process"))


@pytest.fixture
def cluster() -> Cluster:
    """Job 1 runs on h1 with a GPU, job 2 pends, array 3 has element 2 of its own, element 1 is held, 3 and 4 pend."""
    made = Cluster()
    events = [
        *Author(made).opening(),
        ev.SpecAdded(at=1.0, spec=1, value=SPEC),
        ev.SpecAdded(at=1.0, spec=2, value=replace(SPEC, user="bob", gpu=None)),
        ev.JobSubmitted(at=2.0, key=1, spec=1, name="a"),
        ev.JobSubmitted(at=2.0, key=2, spec=1, name="b"),
        ev.JobSubmitted(at=2.0, key=3, spec=2, name="c", indices=Ranges.span(1, 4), spec_text="c[1-4]"),
        ev.ElementsHeld(at=3.0, key=3, elements=Ranges.span(1, 1)),
        ev.ElementSplit(at=3.0, key=ELEMENT),
        dispatched(RUNNING, slots=2, gpus=("GPU-h1",)),
    ]
    for event in events:
        apply(made, event)
    return made


def dispatched(key: int, slots: int, gpus: tuple[str, ...] = (), hosts: tuple[str, ...] = ("h1",)) -> ev.JobDispatched:
    parts = tuple(Placed(host=host, slots=slots, gpus=gpus) for host in hosts)
    return ev.JobDispatched(at=4.0, key=key, attempt=1, uid=f"u{key}", parts=parts)


def test_a_sound_cluster_passes(cluster: Cluster) -> None:
    check_invariants(cluster)
    check_invariants(Cluster())


def _job(cluster: Cluster, number: int, **changes: object) -> None:
    """Change a record behind the indexes' back."""
    cluster.jobs.rows[number] = replace(cluster.jobs.rows[number], **changes)


def _parts(cluster: Cluster, times: int) -> None:
    run = cluster.jobs.rows[1].run
    assert run is not None
    _job(cluster, 1, run=replace(run, parts=run.parts * times))


def _array(cluster: Cluster, **changes: object) -> None:
    cluster.arrays.rows[3] = replace(cluster.arrays.rows[3], **changes)


BREAKS: list[tuple[Callable[[Cluster], object], str]] = [
    (lambda c: _job(c, 2, key=9), "job 2 is filed under another key than its own 9"),
    (lambda c: _job(c, 2, state=JobState.DONE), "job 2 is DONE and still live"),
    (lambda c: _job(c, 2, spec=7), "job 2 has spec 7"),
    (lambda c: _job(c, 1, state=JobState.PEND), "job 1 is PEND and has an attempt"),
    (lambda c: _job(c, 2, state=JobState.RUN), "job 2 is RUN and has no attempt"),
    (lambda c: _job(c, 1, attempt=2), "job 1 runs attempt 1, its newest is 2"),
    (lambda c: _parts(c, 0), "job 1 runs on no host"),
    (lambda c: _parts(c, 2), "two parts on one host"),
    (lambda c: c.arrays.rows.pop(3), r"job 3\[2\] has no array"),
    (lambda c: _array(c, indices=Ranges.span(3, 4)), r"job 3\[2\] is not one of its array's indices"),
    (lambda c: _array(c, pending=Ranges.span(2, 4)), r"job 3\[2\] is touched and untouched"),
    (lambda c: _array(c, held=Ranges.parse("1,3")), "array 3 has elements both pending and held"),
    (lambda c: _array(c, pending=Ranges.span(3, 5)), "array 3 has pending elements that it was not submitted with"),
    (lambda c: _array(c, done=1), "array 3 has 4 elements and accounts for 5"),
    (lambda c: _array(c, job=4), "array 3 is filed under another id"),
    (lambda c: c.elements.clear(), "array 3 has 4 elements and accounts for 3"),
    (lambda c: c.started.clear(), "index started .* 1: nothing, not None"),
    (lambda c: c.by_user["ann"].discard(2), "index by_user .* ann"),
    (lambda c: c.pending.pop(1), "index pending .* 1"),
    (lambda c: c.spec_jobs.update({1: 5}), "index spec_jobs .* 1: 5, not 2"),
    (lambda c: c.held_back.update({2: None}), "index held_back"),
    (lambda c: c.spec_numbers.update({SPEC: 2}), "spec 2 is indexed as another"),
    (lambda c: c.idle_specs.update({1: None}), "spec 1 is idle and has live jobs"),
    (lambda c: c.use.queues["normal"].__setitem__(0, 9), "index use.queues"),
    (lambda c: c.use.hosts["h1"].gpus.jobs.clear(), "index use.hosts .* h1"),
    (lambda c: setattr(c, "next_spec", 2), "next spec is 2, but there is spec 2"),
    (lambda c: c.hosts.rows.update({"x": Host(name="y")}), "host y is filed under x"),
    (lambda c: c.queues.rows.update({"x": QueueAdmin(name="y")}), "queue y is filed under x"),
]


@pytest.mark.parametrize(("do", "story"), BREAKS, ids=[story for _, story in BREAKS])
def test_a_broken_link_is_named(cluster: Cluster, do: Callable[[Cluster], object], story: str) -> None:
    do(cluster)
    with pytest.raises(BrokenInvariant, match=story):
        check_invariants(cluster)


def test_a_host_with_fewer_slots_than_are_in_use(cluster: Cluster) -> None:
    """An administrator gave it fewer while they were: all is in order, and nothing starts there."""
    apply(cluster, dispatched(2, slots=1))
    apply(cluster, ev.Configured(at=6.0, conf=replace(cluster.conf, hosts=(HostConfig(name="h1", slots=1),))))
    check_invariants(cluster)


def test_what_a_preempted_job_has_is_free(cluster: Cluster) -> None:
    apply(cluster, ev.JobSuspended(at=5.0, key=1, state=JobState.SSUSP, beneficiary=2))
    apply(cluster, dispatched(2, slots=2))
    check_invariants(cluster)


def test_an_exclusive_gpu_taken_twice(cluster: Cluster) -> None:
    apply(cluster, dispatched(2, slots=1, gpus=("GPU-h1",)))
    with pytest.raises(BrokenInvariant, match="GPU GPU-h1 of host h1"):
        check_invariants(cluster)


def test_an_array_without_a_live_element(cluster: Cluster) -> None:
    cluster.jobs.drop(ELEMENT)
    cluster.arrays.rows[3] = replace(cluster.arrays.rows[3], pending=EMPTY, held=EMPTY, done=4)
    with pytest.raises(BrokenInvariant, match="array 3 has no live element"):
        check_invariants(cluster)
