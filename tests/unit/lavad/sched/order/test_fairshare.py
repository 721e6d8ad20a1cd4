"""Who is served first: fair share, trees, several queues, turns, dominant shares, absolute priority, growing priority."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from config.model.queue import QueueConfig
from config.model.values import Aps, FairShare
from lavad.core import events as ev
from lavad.core.job.job import Placed
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Conf, Params
from lavad.sched.order.fairshare import make_tree, queue_policies
from lavad.sched.order.share_tree import Tree
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.worlds.world import World

HOUR = 3600.0


def world_of(*queues: QueueConfig, slots: int = 6, mem: int = 16_000, **conf: Any) -> World:
    world = World(Conf(queues=queues, **conf))
    world.hosts("h1", slots=slots, mem=mem)
    return world


def fair(name: str = "fair", priority: int = 30, aps: Aps | None = None, **share: Any) -> QueueConfig:
    return QueueConfig(name=name, priority=priority, share=FairShare(**share), aps_priority=aps)


def started_users(world: World) -> list[str]:
    """Users of the jobs that a cycle starts, in the order of the plan."""
    plan = world.schedule()
    users = [world.cluster.spec_of(placement.key).user for placement in plan.placements]
    world.accept(plan)
    return users


def tree_of(world: World, queue: str = "fair") -> Tree:
    return make_tree(queue_policies(world.cluster.conf)[queue], world.cluster, world.soft, world.now)


def priority(world: World, user: str) -> float:
    tree = tree_of(world)
    leaf = tree.leaf(user, "")
    assert leaf is not None
    return tree.priority(leaf)


def test_slots_of_one_cycle_go_by_shares() -> None:
    world = world_of(fair(shares=(("ann", 1), ("bob", 2), ("cid", 3))), slots=12)
    for user in ("ann", "bob", "cid"):
        for _ in range(12):
            world.submit(user=user)
    users = started_users(world)
    assert {user: users.count(user) for user in ("ann", "bob", "cid")} == {"ann": 2, "bob": 4, "cid": 6}


def test_an_array_takes_turns_with_the_jobs_of_others() -> None:
    world = world_of(fair(shares=(("default", 1),)), slots=6)
    world.submit(user="ann", array="1-1000")
    for _ in range(10):
        world.submit(user="bob")
    assert started_users(world) == ["ann", "bob", "ann", "bob", "ann", "bob"]


def test_a_user_without_a_share_comes_last() -> None:
    world = world_of(fair(shares=(("ann", 1),)), slots=3)
    world.submit(user="zoe")
    for _ in range(2):
        world.submit(user="ann")
    assert started_users(world) == ["ann", "ann", "zoe"]


def test_groups_default_and_others() -> None:
    groups = (("dev", ("ann", "bob")), ("ops", ("cid", "dan")))
    share = (("dev", 4), ("ops@", 2), ("eve", 8), ("default", 1))
    world = world_of(fair(shares=share), user_groups=groups, group_shares=(("dev", (("ann", 3), ("others", 1))),))
    policy = queue_policies(world.cluster.conf)["fair"]
    assert policy.find_path("ann", "") == (("dev", 4, 0), ("ann", 3, 0))
    assert policy.find_path("bob", "") == (("dev", 4, 0), ("others", 1, 1))
    assert policy.find_path("cid", "") == (("cid", 2, 1),)
    assert policy.find_path("eve", "") == (("eve", 8, 2),)
    assert policy.find_path("zoe", "") == (("zoe", 1, 3),)


def test_dash_g_chooses_among_the_groups_of_a_user() -> None:
    groups = (("dev", ("ann",)), ("ops", ("ann", "bob")))
    world = world_of(fair(shares=(("dev", 4), ("ops", 2))), user_groups=groups)
    policy = queue_policies(world.cluster.conf)["fair"]
    assert policy.find_path("ann", "") == (("dev", 4, 0),)
    assert policy.find_path("ann", "ops") == (("ops", 2, 1),)
    assert policy.find_path("zoe", "") is None


@pytest.mark.parametrize(
    ("group", "path"),
    [
        ("~dev", ("ops", "sub", "ann")),
        ("~ops", ("dev",)),
        ("~sub", ("dev",)),
        ("~dev ~ops", ("ann",)),
        ("~dev ~sub", ("ann",)),
        ("~dev ~sub ~one", ("ann",)),
        ("~nosuch", ("dev",)),
    ],
)
def test_dash_g_leaves_groups_out(group: str, path: tuple[str, ...]) -> None:
    """The groups below one that is left out go with it on the way through it."""
    groups = (("dev", ("ann",)), ("sub", ("ann",)), ("ops", ("sub", "bob")), ("one", ("ann",)))
    inner = (("ops", (("sub", 1), ("bob", 1))), ("sub", (("ann", 1),)))
    world = world_of(fair(shares=(("dev", 4), ("ops", 2), ("one@", 5), ("default", 1))), user_groups=groups, group_shares=inner)
    found = queue_policies(world.cluster.conf)["fair"].find_path("ann", group)
    assert found is not None
    assert tuple(name for name, *_ in found) == path
    if group == "~dev ~ops":
        assert found[0][1] == 5
    if "one" in group:
        assert found[0][1] == 1


def test_dash_g_chooses_among_groups_whose_members_have_shares_of_their_own() -> None:
    groups = (("dev", ("ann",)), ("ops", ("ann", "bob")), ("all", ("dev", "ops")))
    world = world_of(
        fair(shares=(("dev@", 4), ("ops@", 2))),
        fair("tree", shares=(("all", 1),)),
        user_groups=groups,
        group_shares=(("all", (("dev@", 4), ("ops@", 2))),),
    )
    policies = queue_policies(world.cluster.conf)
    assert policies["fair"].find_path("ann", "") == policies["fair"].find_path("ann", "dev") == (("ann", 4, 0),)
    assert policies["fair"].find_path("ann", "ops") == (("ann", 2, 1),)
    assert policies["tree"].find_path("ann", "ops") == (("all", 1, 0), ("ann", 2, 1))


def test_slots_that_are_held_count_for_the_group_that_the_job_names() -> None:
    groups = (("dev", ("ann",)), ("ops", ("ann", "bob")))
    world = world_of(fair(shares=(("dev", 4), ("ops", 2))), user_groups=groups)
    waits = world.submit(user="ann", user_group="ops", slots=3)
    world.apply(ev.SlotsReserved(at=world.now, key=waits, parts=(Placed(host="h1", slots=3),)))
    reserved = {node.name: node.reserved for node in tree_of(world).root.children.values()}
    assert reserved.get("ops") == 3
    assert not reserved.get("dev")


def test_the_formula_is_the_documented_one() -> None:
    """Precedence row 17: the default factors, and one of the GPU term inside the denominator."""
    share = FairShare(shares=(("ann", 10), ("bob", 10)), gpu_run_time_factor=0.5, committed_run_time_factor=0.2)
    world = World(Conf(queues=(QueueConfig(name="fair", share=share),)))
    world.hosts("h1", slots=4, gpus=4)
    from config.model.values import Limits

    key = world.submit(user="ann", slots=2, gpu="num=1", limits=Limits(run=int(4 * HOUR)))
    world.step()
    world.apply(ev.PartStarted(at=world.now, key=key, attempt=1, host="h1", started=world.now))
    world.now += HOUR
    run, committed, gpu = 2.0, 2 * 4.0, 1.0
    wanted = 10 / (run * 0.7 + (committed - run) * 0.2 + (1 + 2) * 3.0 + gpu * 0.5)
    assert priority(world, "ann") == pytest.approx(wanted)
    assert priority(world, "bob") == pytest.approx(10 / 3.0)


@pytest.mark.parametrize(("hist_run", "run"), [(False, 0.0), (True, 1.0)])
def test_history_decays_to_a_tenth_in_hist_hours(hist_run: bool, run: float) -> None:
    world = world_of(fair(shares=(("default", 1),), hist_hours=5.0, enable_hist_run_time=hist_run))
    key = world.submit(user="ann")
    world.step()
    world.apply(ev.PartStarted(at=world.now, key=key, attempt=1, host="h1", started=world.now))
    world.now += 0.001
    from lavad.core.job.job import End

    # a job that used an hour of CPU in no time, so that nothing of it has decayed when it ends
    end = End(at=world.now, started=world.now - 0.001, utime=HOUR)
    world.apply(ev.PartGone(at=world.now, key=key, attempt=1, host="h1"))
    world.apply(ev.JobFinished(at=world.now, key=key, state=JobState.DONE, end=end))
    assert priority(world, "ann") == pytest.approx(1 / (0.7 + 3.0), rel=1e-6)
    world.now += 5 * HOUR
    assert priority(world, "ann") == pytest.approx(1 / (0.07 + 3.0), rel=1e-6)
    assert run in (0.0, 1.0)


def test_queues_that_follow_one_policy_are_served_by_user_first() -> None:
    master = fair("high", 40, shares=(("default", 1),), queues=("low",))
    world = world_of(master, QueueConfig(name="low", priority=20), QueueConfig(name="mid", priority=30), slots=4)
    for _ in range(4):
        world.submit(user="ann", queue="high")
    for _ in range(4):
        world.submit(user="bob", queue="low")
    world.submit(user="cid", queue="mid")
    assert started_users(world) == ["ann", "bob", "ann", "bob"]


def test_dispatch_order_queue_puts_the_queue_first() -> None:
    master = fair("high", 40, shares=(("default", 1),), queues=("low",), by_queue=True)
    world = world_of(master, QueueConfig(name="low", priority=20), QueueConfig(name="mid", priority=30), slots=4)
    for _ in range(2):
        world.submit(user="bob", queue="low")
        world.submit(user="ann", queue="high")
    world.submit(user="cid", queue="mid")
    assert started_users(world) == ["ann", "ann", "cid", "bob"]


def test_round_robin_serves_one_job_of_each_in_turn() -> None:
    turns = FairShare(shares=(("default", 1),), round_robin=True, cpu_time_factor=0.0, run_time_factor=0.0, run_job_factor=1.0)
    world = world_of(QueueConfig(name="rr", share=turns), slots=7)
    for user in ("ann", "ann", "ann", "ann", "bob", "bob", "cid"):
        world.submit(user=user)
    assert started_users(world) == ["ann", "bob", "cid", "ann", "bob", "ann", "ann"]


def test_dominant_resource_fairness_as_in_the_paper() -> None:
    """9 CPUs and 18 GB; tasks of <1 CPU, 4 GB> and <3 CPUs, 1 GB>: three and two of them run."""
    world = world_of(fair(shares=(("default", 1),), dominant_resources=("slots", "mem")), slots=9, mem=18_000)
    for _ in range(9):
        world.submit(user="ann", slots=1, resreq="rusage[mem=4000]")
        world.submit(user="bob", slots=3, resreq="rusage[mem=1000]")
    users = started_users(world)
    assert (users.count("ann"), users.count("bob")) == (3, 2)


def test_dominant_share_counts_gpus() -> None:
    world = World(Conf(queues=(fair(shares=(("default", 1),), dominant_resources=("slots", "gpus")),)))
    world.hosts("h1", slots=16, gpus=8)
    for _ in range(16):
        world.submit(user="ann", gpu="num=1")
        world.submit(user="bob")
    users = started_users(world)
    # a GPU is 1/8 and a slot 1/16: bob gets two slots for each GPU of ann's
    assert users[:12].count("ann") == 4
    assert users[:12].count("bob") == 8


APS = [
    ((("JPRIORITY", 1.0), ("QPRIORITY", 10.0)), (), (), {"sp": 50, "queue": 30}, 350.0),
    ((("WORK", 2.0), ("JPRIORITY", 1.0)), (), (), {"sp": 50}, 100.0),
    ((("PROC", -1.0), ("JPRIORITY", 1.0)), (), (), {"sp": 50, "slots": 8}, 42.0),
    ((("MEM", 0.5),), (), (), {"mem": 300}, 150.0),
    ((("MEM", 0.5),), (("MEM", 100.0),), (), {"mem": 300}, 100.0),
    ((("MEM", -0.5),), (("RSRC", 100.0),), (), {"mem": 300}, -100.0),
    ((("SWAP", -10.0), ("JPRIORITY", 1.0)), (), (), {"sp": 5, "swp": 2}, -15.0),
    ((("JPRIORITY", 1.0), ("QPRIORITY", 1.0)), (), (("JPRIORITY", 60.0),), {"sp": 50, "waited": 59}, 30.0),
    ((("JPRIORITY", 1.0), ("QPRIORITY", 1.0)), (), (("JPRIORITY", 60.0),), {"sp": 50, "waited": 60}, 80.0),
    ((("JPRIORITY", 1.0),), (), (), {"sp": 50, "growth": (3, 60), "waited": 150}, 56.0),
]


@pytest.mark.parametrize(("weights", "limits", "graces", "job", "wanted"), APS)
def test_absolute_priority(
    weights: tuple[Any, ...], limits: tuple[Any, ...], graces: tuple[Any, ...], job: dict[str, Any], wanted: float
) -> None:
    from lavad.sched.line.queue_iterator import aps_value
    from lavad.sched.state.cycle_state import CycleState

    aps = Aps(weights=weights, limits=limits, graces=graces)
    queue = QueueConfig(name="q", priority=job.get("queue", 30), aps_priority=aps)
    world = world_of(queue, params=Params(job_priority_over_time=job.get("growth")))
    asked = " ".join(f"rusage[{name}={job[name]}]" for name in ("mem", "swp") if name in job)
    key = world.submit(priority=job.get("sp", -1), slots=job.get("slots", 1), resreq=asked)
    world.now += job.get("waited", 0)
    view = CycleState(world.cluster, world.soft, world.now, world.local, SchedulerCache())
    assert aps_value(view, world.cluster.get(key).spec, key) == pytest.approx(wanted)


def test_jobs_of_an_aps_queue_go_by_their_value() -> None:
    aps = Aps(weights=(("JPRIORITY", 1.0), ("PROC", 10.0)))
    world = world_of(QueueConfig(name="q", aps_priority=aps), slots=8)
    small = world.submit(user="a", priority=10)
    wide = world.submit(user="b", slots=3)
    keen = world.submit(user="c", priority=35)
    plan = world.schedule()
    assert [placement.key for placement in plan.placements] == [keen, wide, small]


def test_fair_share_is_a_factor_of_absolute_priority() -> None:
    aps = Aps(weights=(("FS", 100.0),))
    world = world_of(fair("q", shares=(("ann", 1), ("bob", 2)), aps=aps), slots=6)
    for user in ("ann", "bob"):
        for _ in range(6):
            world.submit(user=user)
    users = started_users(world)
    assert (users.count("ann"), users.count("bob")) == (2, 4)


def test_priority_grows_with_waiting() -> None:
    """JOB_PRIORITY_OVER_TIME: an older job passes a keener one once it has waited long enough."""
    world = world_of(QueueConfig(name="q"), slots=1, params=Params(max_user_priority=100, job_priority_over_time=(1, 60)))
    old = world.submit(user="a", priority=50)
    world.now += 600
    world.submit(user="b", priority=55)
    assert list(world.step()) == [old]
    late = world_of(QueueConfig(name="q"), slots=1, params=Params(max_user_priority=100, job_priority_over_time=(1, 60)))
    late.submit(user="a", priority=50)
    late.now += 240
    keen = late.submit(user="b", priority=55)
    assert list(late.step()) == [keen]


def test_jobs_that_run_fade_each_by_its_own_age() -> None:
    """RUN_TIME_DECAY: an old one adds as little beside new ones as alone, and what it is charged at its end."""
    world = world_of(fair(shares=(("ann", 1),), hist_hours=1.0, run_time_decay=True, enable_hist_run_time=True))

    def start() -> int:
        key = world.submit(user="ann")
        world.step()
        world.apply(ev.PartStarted(at=world.now, key=key, attempt=1, host="h1", pid=1, started=world.now, cwd="/"))
        return key

    def used() -> float:
        leaf = tree_of(world).leaf("ann", "")
        assert leaf is not None
        return leaf.run + leaf.hist_run

    old = start()
    world.now += 4 * HOUR
    alone = used()
    for _ in range(4):
        start()
    assert used() == pytest.approx(alone) == pytest.approx(HOUR * (1 - 0.1**4) / log(10))
    world.apply(ev.PartGone(at=world.now, key=old, attempt=1, host="h1"))
    world.apply(ev.JobFinished(at=world.now, key=old, state=JobState.DONE))
    assert used() == pytest.approx(alone)


def test_what_runs_counts_in_full_unless_run_time_fades_too() -> None:
    """RUN_TIME_DECAY: a job that began two hours ago has used what is left of two hours, evenly used."""
    found = []
    for decays in (False, True):
        world = world_of(fair(shares=(("ann", 1),), hist_hours=1.0, run_time_decay=decays))
        key = world.submit(user="ann")
        world.step()
        world.apply(ev.PartStarted(at=world.now, key=key, attempt=1, host="h1", pid=1, started=world.now, cwd="/"))
        world.now += 2 * HOUR
        leaf = tree_of(world).leaf("ann", "")
        assert leaf is not None
        found.append(leaf.run)
    assert found == [pytest.approx(2 * HOUR), pytest.approx(HOUR * (1 - 0.1**2) / log(10))]


def test_listings_show_all_that_the_configuration_names() -> None:
    """``g@``: its members apart; groups with shares of their own with what these name; everybody else under nobody's name."""
    shares = (("dave", 3), ("pair@", 2), ("team", 4), ("default", 1))
    groups = (("pair", ("ann", "bob")), ("team", ("inner/", "cid")), ("inner", ("eve",)))
    inner = (("team", (("inner", 5), ("cid", 6))), ("inner", (("eve", 7), ("team", 1))))
    world = world_of(fair(shares=shares), user_groups=groups, group_shares=inner)
    paths = queue_policies(world.cluster.conf)["fair"].entries()
    assert [[(name, count) for name, count, _ in path] for path in paths] == [
        [("dave", 3)],
        [("ann", 2)],
        [("bob", 2)],
        [("team", 4)],
        [("team", 4), ("inner", 5)],
        [("team", 4), ("inner", 5), ("eve", 7)],
        [("team", 4), ("inner", 5), ("team", 1)],
        [("team", 4), ("cid", 6)],
    ]
