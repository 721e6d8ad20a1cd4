"""Jobs in chunks: how many share a slot, and what keeps jobs from it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import FairShare, Limits
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.job.groups import JobGroup
from lavad.core.job.job import Placed
from lavad.core.lang.ids import index_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Placement, Plan
from lavad.core.rules import reserved
from lavad.core.rules.chunk_size import chunk_size
from lavad.core.site.conf import Conf, Params
from lavad.sched.hosts.ends import end_of
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.chunks import ChunkWorld

RUN, WAIT = JobState.RUN, JobState.WAIT


@pytest.mark.parametrize("array", [True, False], ids=["array", "separate"])
@pytest.mark.parametrize("few", [1, 64], ids=["columns", "rows"])
def test_jobs_wait_behind_others_once_each_slot_has_one(array: bool, few: int) -> None:
    world = ChunkWorld(3)
    world.memory = SchedulerCache(few=few, chunks=True)
    if array:
        world.submit(array="1-20")
    else:
        for _ in range(20):
            world.submit()
    jobs = world.starts()
    assert [job.state for job in jobs].count(WAIT) == 8
    assert Counter(len(keys) for keys in world.chunks().values()) == {3: 4}
    assert world.cluster.use.hosts["h1"].slots == world.cluster.use.hosts["h2"].slots == 2
    assert world.cluster.use.queues["q"][:3] == [20 - 4, 0, 4], "those that wait in chunks count as pending, as in LSF"
    check_invariants(world.cluster)
    assert world.starts() == [], "no slot is free"


def test_the_first_jobs_of_all_run_first() -> None:
    world = ChunkWorld(4, hosts=("h1",), slots=3)
    job = world.submit(array="1-10")
    world.starts()
    rows = world.cluster.jobs.rows.values()
    assert [index_of(one.key) for one in rows if one.state is RUN] == [1, 2, 3]
    assert sorted([index_of(key) for key in keys] for keys in world.chunks().values()) == [[1, 4, 7, 10], [2, 5, 8], [3, 6, 9]]
    assert not world.cluster.arrays.rows[job].pending


@pytest.mark.parametrize(("jobs", "sizes"), [(3, [1] * 3), (4, [1] * 4), (5, [1] * 3 + [2]), (8, [2] * 4), (9, [2] * 3 + [3])])
def test_no_more_share_a_slot_than_leave_none_waiting(jobs: int, sizes: list[int]) -> None:
    world = ChunkWorld(5)
    world.submit(array=f"1-{jobs}")
    world.starts()
    assert sorted(len(keys) for keys in world.chunks().values()) == sizes
    alone = [keys[0] for keys in world.chunks().values() if len(keys) == 1]
    assert all(world.run_of(key).chunk == "" and world.cluster.jobs.rows[key].state is RUN for key in alone)


def test_a_slot_is_free_once_the_last_of_its_chunk_is_over() -> None:
    world = ChunkWorld(2, hosts=("h1",), slots=1)
    job = world.submit(array="1-3")
    first, second = (key for keys in [[one.key for one in world.starts()]] for key in keys)
    world.ends(first)
    assert world.starts() == []
    assert world.cluster.jobs.rows[second].state is WAIT
    world.begins(second)
    assert world.cluster.jobs.rows[second].state is RUN
    world.ends(second)
    assert [index_of(one.key) for one in world.starts()] == [3]
    check_invariants(world.cluster)
    assert job in world.cluster.arrays.rows


def test_what_a_job_reserves_is_reserved_once_for_its_slot() -> None:
    world = ChunkWorld(3, hosts=("h1",), slots=4)
    world.submit(array="1-20", resreq="rusage[mem=7000]")
    world.starts()
    assert [len(keys) for keys in world.chunks().values()] == [3, 3], "16000 MB are there for two at a time"
    assert dict(world.cluster.use.hosts["h1"].reserved) == {"mem": 14_000}


@pytest.mark.parametrize(
    ("queue", "fields", "started"),
    [({"ujob_limit": 2}, {}, [3, 3]), ({"qjob_limit": 1}, {}, [3]), ({}, {"limit": 5}, [1, 1, 1, 2]), ({}, {"limit": 2}, [1, 1])],
)
def test_limits_count_slots_and_those_of_arrays_their_elements(queue: Any, fields: Any, started: list[int]) -> None:
    world = ChunkWorld(3, **queue)
    world.submit(array="1-20", **fields)
    world.starts()
    assert sorted(len(keys) for keys in world.chunks().values()) == started
    check_invariants(world.cluster)


def test_a_host_whose_agent_does_not_know_chunks_gets_none() -> None:
    world = ChunkWorld(3, hosts=("h1",))
    world.hosts("old", slots=2)
    world.submit(array="1-20")
    world.starts()
    hosts = Counter(world.run_of(key).parts[0].host for keys in world.chunks().values() for key in keys)
    assert hosts == {"h1": 6, "old": 2}


def test_for_a_prediction_each_job_has_a_slot_of_its_own() -> None:
    world = ChunkWorld(3)
    world.submit(array="1-20")
    plan = world.schedule(SchedulerCache())
    assert (len(plan.placements), plan.chunks) == (4, ())


def test_a_plan_that_is_old_starts_what_still_holds() -> None:
    world = ChunkWorld(3, hosts=("h1",), slots=3)
    job = world.submit(array="1-9")
    plan = world.schedule()
    other = world.submit(user="bob")
    world.accept(Plan(world.cluster.version, (Placement(other, (Placed(host="h1", slots=1),)),)))
    world.apply(ev.ElementsKilled(at=world.now, key=job, elements=Ranges.span(2, 2)))
    world.accept(plan)
    assert sorted([index_of(key) for key in keys] for keys in world.chunks().values()) == [[0], [1, 4, 6], [3, 5, 7]]
    check_invariants(world.cluster)


SIZES = [
    ({}, {}, 4),
    ({"slots": 2}, {}, 1),
    ({"interactive": True}, {}, 1),
    ({"exclusive": True}, {}, 1),
    ({"gpu": "num=1"}, {}, 1),
    ({"reservation": "r"}, {}, 1),
    ({"limits": Limits(run=1800)}, {}, 4),
    ({"limits": Limits(run=1801)}, {}, 1),
    ({"limits": Limits(cpu=3600)}, {}, 1),
    ({"estimate": 3600}, {}, 1),
    ({"app": "one"}, {}, 1),
    ({"app": "more"}, {}, 9),
    ({"app": "silent"}, {}, 4),
    ({}, {"chunk_job_duration": 60}, 1),
    ({"limits": Limits(run=60)}, {"chunk_job_duration": 60}, 4),
    ({"limits": Limits(run=61)}, {"chunk_job_duration": 60}, 1),
    ({"limits": Limits(run=3600)}, {"chunk_job_duration": 3600}, 4),
]


@pytest.mark.parametrize(("fields", "params", "size"), SIZES)
def test_which_jobs_go_into_chunks(fields: dict[str, Any], params: dict[str, Any], size: int) -> None:
    world = ChunkWorld(4)
    apps = (ApplicationConfig(name="one", chunk_job_size=1), ApplicationConfig(name="more", chunk_job_size=9))
    queues = (QueueConfig(name="q", chunk_job_size=4),)
    world.configure(Conf(queues=queues, apps=(*apps, ApplicationConfig(name="silent")), params=Params(**params)))
    assert chunk_size(world.cluster, world.cluster.specs.rows[world.spec(**fields)]) == size


def test_a_run_limit_of_the_queue_counts() -> None:
    world = ChunkWorld(4, limits=Limits(run=3600))
    assert chunk_size(world.cluster, world.cluster.specs.rows[world.spec()]) == 1


def test_a_slot_is_expected_to_be_free_when_all_of_its_chunk_have_had_their_time() -> None:
    world = ChunkWorld(3, hosts=("h1",), slots=1)
    world.submit(array="1-3", limits=Limits(run=60))
    first, _, last = world.starts()
    state = CycleState(world.cluster, world.soft, world.now, world.local, world.memory)
    spec = world.cluster.specs.rows[last.spec]
    assert [end_of(state, job, spec) - world.now for job in (first, last)] == [60, 180]
    assert reserved.end_of(world.cluster, last, spec, "h1") - world.now == 180


@pytest.mark.parametrize("array", [True, False], ids=["array", "separate"])
def test_users_take_turns_by_fair_share_a_slot_at_a_time(array: bool) -> None:
    world = ChunkWorld(4, hosts=("h1",), slots=6, share=FairShare(shares=(("ann", 2), ("bob", 1))))
    for user in ("ann", "bob"):
        world.submit(array="1-40", user=user) if array else [world.submit(user=user) for _ in range(40)]
    world.starts()
    chunks = [world.cluster.spec_of(keys[0]).user for keys in world.chunks().values()]
    assert Counter(chunks) == {"ann": 4, "bob": 2}
    assert all(len(keys) == 4 for keys in world.chunks().values())
    check_invariants(world.cluster)
    for key in list(world.cluster.started):
        world.begins(key)
        world.ends(key)
    world.starts()
    assert len(world.chunks()) == 6


def test_who_has_few_jobs_gets_a_slot_for_each_in_turn() -> None:
    world = ChunkWorld(4, hosts=("h1",), slots=6, share=FairShare(shares=(("default", 1),)))
    world.submit(array="1-3", user="ann")
    world.submit(array="1-40", user="bob")
    world.starts()
    sizes = {(world.cluster.spec_of(keys[0]).user, len(keys)) for keys in world.chunks().values()}
    assert sizes == {("ann", 1), ("bob", 4)}


@pytest.mark.parametrize(
    ("queue", "fields"),
    [
        ({"run_window": "0:00-23:59"}, {}),
        ({}, {"deadline": 2_000_000.0}),
        ({}, {"resreq": "rusage[mem=10:duration=1]"}),
        ({"slot_reserve": 100}, {}),
    ],
    ids=["window", "deadline", "decay", "promise"],
)
def test_where_the_time_of_one_job_is_looked_at_each_has_its_own_slot(queue: dict[str, Any], fields: dict[str, Any]) -> None:
    world = ChunkWorld(3, hosts=("h1",), slots=4, **queue)
    if "slot_reserve" in queue:
        world.submit(slots=5, user="bob")
        world.hosts("h2", slots=1, chunks=True)
        world.starts()
    world.submit(array="1-20", **fields)
    world.starts()
    assert all(len(keys) == 1 for keys in world.chunks().values())


def test_none_waits_in_a_chunk_for_jobs_that_cannot_start() -> None:
    world = ChunkWorld(4, slots=2)
    ready = [world.submit() for _ in range(4)]
    later = [world.submit() for _ in range(20)]
    for key in later:
        world.cluster.jobs.put(key, replace(world.cluster.jobs.rows[key], not_before=world.now + 100, failures=1))
    assert [job.key for job in world.starts()] == ready
    assert all(len(keys) == 1 for keys in world.chunks().values())


def test_none_waits_in_a_chunk_for_the_limit_of_a_group() -> None:
    world = ChunkWorld(4, slots=2)
    world.apply(ev.GroupSet(at=world.now, value=JobGroup(name="/g", owner="alice", limit=4)))
    world.submit(array="1-20", group="/g")
    world.starts()
    assert sorted(len(keys) for keys in world.chunks().values()) == [1, 1, 1, 1]


def test_users_whose_jobs_alternate_get_chunks_in_their_order() -> None:
    world = ChunkWorld(4, slots=2)
    keys = [(world.submit(user="ann"), world.submit(user="bob")) for _ in range(20)]
    world.starts()
    owners = Counter(world.cluster.spec_of(mine[0]).user for mine in world.chunks().values())
    assert owners == {"ann": 2, "bob": 2}
    assert {keys[0][0], keys[0][1]} <= set(world.cluster.started)
    check_invariants(world.cluster)
