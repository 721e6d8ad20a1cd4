"""affinity[]: cores are given out whole and once, near each other, by every option."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.cluster import HostConfig
from lavad.core import events as ev
from lavad.core.cluster.invariants import BrokenInvariant, check_invariants
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.job.job import Placed
from lavad.core.lang.cpus import Binding, count_tasks, give_cpus, taken_by
from lavad.core.lang.resreq.grammar import Affinity, parse_affinity
from lavad.core.lang.topology import LEVELS, parse_topology
from lavad.core.plan.plan import Placement, Plan
from lavad.sched.hosts import fit
from tests.support.examples import examples
from tests.support.topologies import regular
from tests.support.worlds.world import World

SHAPE = regular(2, 1, 4, 2)
"""Two sockets of four cores: cores 0-3 and 4-7, core n has CPUs n and n+8."""


def cpus(text: str, tasks: int, taken: tuple[int, ...] = (), shape: str = SHAPE) -> list[list[int]]:
    topology = parse_topology(shape)
    assert topology is not None
    return [list(bind.cpus) for bind in give_cpus(topology, taken, parse_affinity(text), tasks)]


@pytest.mark.parametrize(
    ("text", "tasks", "taken", "wanted"),
    [
        ("core(1)", 2, (), [[0, 8], [1, 9]]),
        ("thread(1)", 3, (), [[0], [8], [1]]),
        ("core(2)", 2, (0,), [[1, 2, 9, 10], [4, 5, 12, 13]]),
        ("core(1)", 4, (0,), [[4, 12], [5, 13], [6, 14], [7, 15]]),
        ("core(1)", 9, (), [[0, 8], [1, 9], [2, 10], [3, 11], [4, 12], [5, 13], [6, 14], [7, 15]]),
        ("core(3,same=socket)", 3, (), [[0, 1, 2, 8, 9, 10], [4, 5, 6, 12, 13, 14]]),
        ("core(1)*2:distribute=balance", 2, (), [[0, 4, 8, 12], [1, 5, 9, 13]]),
        ("core(1):distribute=balance", 2, (), [[0, 8], [4, 12]]),
        ("core(1):distribute=pack(socket=1)", 5, (1,), [[4, 12], [5, 13], [6, 14], [7, 15]]),
        ("core(1,exclusive=(socket,injob))", 3, (), [[0, 8], [4, 12]]),
        ("core(1,same=socket,exclusive=(socket,alljobs))", 2, (3,), [[4, 12], [5, 13]]),
        ("core(1):cpubind=socket", 1, (0, 8), [[0, 1, 2, 3, 8, 9, 10, 11]]),
        ("socket(1)", 3, (7,), [[0, 1, 2, 3, 8, 9, 10, 11]]),
        ("numa(2)", 1, (), [list(range(16))]),
        ("core(9)", 1, (), []),
    ],
)
def test_what_tasks_get(text, tasks, taken, wanted):
    assert cpus(text, tasks, taken) == wanted


def test_memory_goes_with_the_cores_and_exclusive_keeps_others_off():
    topology = parse_topology(SHAPE)
    assert topology is not None
    (bind,) = give_cpus(topology, (), parse_affinity("core(1,exclusive=(socket,alljobs)):membind=localonly"), 1)
    assert bind == Binding(cpus=(0, 8), taken=(0, 1, 2, 3, 8, 9, 10, 11), nodes=(0,), only=True)
    (bind,) = give_cpus(topology, taken_by([bind]), parse_affinity("core(1):membind=localprefer"), 1)
    assert bind == Binding(cpus=(4, 12), nodes=(1,))
    near = give_cpus(topology, (), parse_affinity("core(1)"), 2, near=(1,))
    assert [bind.cpus for bind in near] == [(4, 12), (5, 13)]


@pytest.mark.parametrize("text", ["", "0.0.0", "0.0.0:", "0.0.0:1,1", "0.0.0:1 0.0.1:1", "x", "0.0.0:1;2", "-1.0.0:2"])
def test_a_text_that_is_no_topology(text):
    assert parse_topology(text) is None


wants = st.builds(
    Affinity,
    unit=st.sampled_from(LEVELS),
    count=st.integers(1, 3),
    times=st.integers(1, 2),
    same=st.sampled_from(["", "", "numa", "socket"]),
    exclusive=st.sampled_from([None, None, ("core", "intask"), ("socket", "injob"), ("numa", "alljobs"), ("socket", "alljobs")]),
    cpubind=st.sampled_from(["", "core", "socket"]),
    distribute=st.sampled_from(["", "balance", "pack", "pack(socket=1)"]),
)


@settings(max_examples=examples(400))
@given(wants, st.sets(st.integers(0, 23)), st.integers(1, 9))
def test_nobody_gets_what_is_taken_and_the_count_is_what_is_given(want, taken, tasks):
    topology = parse_topology(regular(2, 2, 3, 2))
    assert topology is not None
    binds = give_cpus(topology, taken, want, tasks)
    assert len(binds) == count_tasks(topology, taken, want, tasks)
    if want.cpubind == "":
        given_ = [cpu for bind in binds for cpu in bind.cpus]
        assert len(given_) == len(set(given_))
        assert taken.isdisjoint(given_)
        sizes = {"thread": 1, "core": 2, "numa": 6, "socket": 12}
        assert all(len(bind.cpus) == want.count * want.times * sizes[want.unit] for bind in binds)
    if want.exclusive is None or want.exclusive[1] == "alljobs":
        assert taken.isdisjoint(taken_by(binds)) or want.cpubind
    assert list(binds[: max(0, len(binds) - 1)]) == list(give_cpus(topology, taken, want, len(binds) - 1)) or want.count == 1


def world() -> World:
    world = World()
    world.hosts("h1", "h2", slots=16, topology=SHAPE)
    world.hosts("h3", slots=16)
    return world


def binds_of(w: World, job: int) -> dict[str, list[tuple[int, ...]]]:
    run = w.cluster.jobs.rows[job].run
    assert run is not None
    return {part.host: [bind.cpus for bind in part.binds] for part in run.parts}


def test_jobs_share_no_core_and_the_next_waits():
    w = world()
    first = w.submit(slots=6, resreq="affinity[core(1)] span[hosts=1]")
    second = w.submit(slots=10, resreq="affinity[core(1)]")
    assert w.step() == {first: {"h1": 6}, second: {"h1": 2, "h2": 8}}
    taken = [cpu for job in (first, second) for cpus_ in binds_of(w, job)["h1"] for cpu in cpus_]
    assert sorted(taken) == list(range(16))
    third = w.submit(resreq="affinity[thread(1)]")
    plain = w.submit(slots=3)
    assert w.step() == {plain: {"h1": 3}}
    assert dict(w.why_names(third)) == {"HOST_NO_CPUS": ("h1", "h2"), "HOST_NO_TOPOLOGY": ("h3",)}
    w.finish(first)
    assert w.step() == {third: {"h1": 1}}
    check_invariants(w.cluster)


def test_what_no_host_can_ever_give():
    w = world()
    job = w.submit(resreq="affinity[core(9)]")
    w.step()
    assert w.why_names(job)[0][0] == "NEVER_CPUS"


def test_a_host_without_affinity():
    w = world()
    w.configure(hosts=(HostConfig(name="h1", affinity=False),))
    job = w.submit(resreq="affinity[core(1)]")
    assert w.step() == {job: {"h2": 1}}


def test_an_array_of_bound_elements():
    w = world()
    job = w.submit(array="1-20", resreq="affinity[core(2,same=socket)]")
    assert len(w.step()) == 8
    assert w.step() == {}
    w.finish(job | 3 << 32)
    assert len(w.step()) == 1
    check_invariants(w.cluster)


def test_compound_parts_have_their_own_affinity():
    w = world()
    job = w.submit(slots=3, resreq="1*{affinity[socket(1)]}+2*{affinity[core(1)]}")
    assert w.step() == {job: {"h1": 3}}
    assert binds_of(w, job) == {"h1": [(0, 1, 2, 3, 8, 9, 10, 11), (4, 12), (5, 13)]}


def test_accept_plan_drops_what_would_take_a_core_twice():
    w = world()
    jobs = [w.submit(resreq="affinity[core(1)]") for _ in range(2)]
    part = Placed(host="h1", slots=1, binds=(Binding(cpus=(0, 8)),))
    other = Placed(host="h1", slots=1, binds=(Binding(cpus=(8,)),))
    plan = Plan(w.cluster.version, (Placement(jobs[0], (part,)), Placement(jobs[1], (other,))))
    accepted = accept_plan(w.cluster, plan, w.now, "s")
    assert [event.key for event in accepted if isinstance(event, ev.JobDispatched)] == jobs[:1]
    assert len(accepted) == 1
    beyond = replace(part, binds=(Binding(cpus=(99,)),))
    assert accept_plan(w.cluster, Plan(w.cluster.version, (Placement(jobs[0], (beyond,)),)), w.now, "s") == []


def test_a_seeded_bug_is_caught():
    """A scheduler that forgets what is taken is stopped by the master's re-check; past it, the invariants speak."""
    w = world()
    jobs = [w.submit(resreq="affinity[core(1)]") for _ in range(2)]
    parts = (Placed(host="h1", slots=1, binds=(Binding(cpus=(0, 8)),)),)
    for number, key in enumerate(jobs):
        w.apply(ev.JobDispatched(at=w.now, key=key, attempt=1, uid=f"u{number}", parts=parts))
    with pytest.raises(BrokenInvariant, match=r"CPUs \[0, 8\] of host h1 are given to several jobs"):
        check_invariants(w.cluster)
    assert vars(fit)["count_tasks"] is count_tasks
