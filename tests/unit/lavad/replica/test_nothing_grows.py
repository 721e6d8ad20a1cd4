"""Memory of the cluster, its soft state, the cache of its scheduler and its streams follows what is live, not what has ended."""

from __future__ import annotations

from typing import Any, cast

from lavad.core import events as ev
from lavad.core.cluster import cluster as tables
from lavad.core.lang.ids import key_of
from lavad.core.plan.volatile import PartUsage, Soft, SoftUpdate, WhyClass, forget, of_live_parts, update
from lavad.hosts.outbox import Outbox
from lavad.hosts.sessions import Session, Sessions
from lavad.replica import protocol as feed
from lavad.sched.state import scheduler_cache
from tests.support.worlds.world import World


def sizes(what: object, path: str = "", seen: set[int] | None = None) -> dict[str, int]:
    """The path of each dict, list and set in the attributes of an object, and how many entries it has."""
    seen = set() if seen is None else seen
    if id(what) in seen or not type(what).__module__.startswith("lavad"):
        return {}
    seen.add(id(what))
    names = [*getattr(what, "__dict__", {}), *(name for name in getattr(type(what), "__slots__", ()) if hasattr(what, name))]
    found: dict[str, int] = {}
    for name in names:
        value = getattr(what, name)
        if isinstance(value, dict | list | set):
            found[f"{path}.{name}"] = len(value)
        found |= sizes(value, f"{path}.{name}", seen)
    return found


def live_a_little(world: World, jobs: int) -> None:
    """Jobs, each with a project, a group and a requirement of its own, and arrays, all of which end."""
    for at in range(jobs):
        own: dict[str, Any] = {"project": f"p{world.cluster.next_job}", "group": f"/g{world.cluster.next_job}"}
        key = world.submit(resreq=f"select[mem>{world.cluster.next_job}] rusage[mem=1:swp=1]", **own)
        array = world.submit(name="a", array="1-2", **own)
        world.step()
        for one in [key, key_of(array, 1), key_of(array, 2)]:
            for host in world.running()[one]:
                run = world.cluster.jobs.rows[one].run
                assert run is not None
                news = [PartUsage(key=one, attempt=run.number, at=world.now)]
                update(world.soft, SoftUpdate(usage=of_live_parts(world.cluster, host, news)))
            world.finish(one)
        feed.fold(world.cluster, world.soft, [])
        if not at % 50:
            world.step()


def test_what_has_ended_leaves_the_memory() -> None:
    world = World()
    world.hosts("h1", "h2", slots=4)
    spare = tables.KEPT_SPECS + scheduler_cache.SPARE + 10
    whole = [world.cluster, world.soft, world.memory]
    live_a_little(world, 50)
    before = {path: size for one in whole for path, size in sizes(one, type(one).__name__).items()}
    live_a_little(world, 1200)
    after = {path: size for one in whole for path, size in sizes(one, type(one).__name__).items()}
    kept = {path: size for path, size in after.items() if size > max(10, before.get(path, 0))}
    assert set(kept) <= {
        "Cluster.specs.rows",
        "Cluster.spec_numbers",
        "Cluster.idle_specs",
        "Cluster.jobs.rows._shared._seen",
        "Cluster.jobs.rows._shared._times",
        "SchedulerCache.eligibilities",
    }, "of all else there is as much as before"
    assert max(kept.values()) <= spare
    assert len(before) > 60


def sample(world: World, key: int, attempt: int = 1) -> PartUsage:
    return PartUsage(key=key, attempt=attempt, at=world.now)


def test_a_sample_that_comes_after_the_end_is_not_taken() -> None:
    world = World()
    world.hosts("h1", "h2", slots=1)
    key = world.submit()
    world.step()
    (host,) = world.running()[key]
    other = "h2" if host == "h1" else "h1"
    assert of_live_parts(world.cluster, host, [sample(world, key)]) == [(host, sample(world, key))]
    assert of_live_parts(world.cluster, host, [sample(world, key, attempt=2)]) == []
    assert of_live_parts(world.cluster, other, [sample(world, key)]) == []
    assert of_live_parts(world.cluster, "unknown", [sample(world, key)]) == []
    world.finish(key)
    assert of_live_parts(world.cluster, host, [sample(world, key)]) == []


def test_soft_state_of_what_is_over_is_dropped() -> None:
    soft, world = Soft(), World()
    for key in (1, 2, 3):
        soft.usage[key] = {"h1": sample(world, key)}
    soft.load = {"h1": {}, "h2": {}}
    soft.why = {number: WhyClass(reasons=()) for number in range(2000)}
    forget(soft, world.cluster, [ev.JobRequeued(at=0.0, key=2), ev.HostLeft(at=0.0, host="h2")], [1])
    assert (list(soft.usage), list(soft.load), len(soft.why)) == ([3], ["h1"], 0)


def test_what_was_sent_for_attempts_that_were_requeued_is_forgotten() -> None:
    world = World()
    world.hosts("h1", slots=1)
    sessions, session = Sessions(), Session("h1", 0)
    sessions.open(session)
    outbox = Outbox(world.cluster, sessions, cast(Any, None), b"secret", lambda: world.now, cast(Any, None))
    key = world.submit(rerunnable=True)
    for _ in range(20):
        world.now += 100.0
        world.step()
        run = world.cluster.jobs.rows[key].run
        assert run is not None
        outbox.greeted(session)
        sessions.sent.setdefault("h1", {})[run.uid] = key
        world.apply(ev.PartGone(at=world.now, key=key, attempt=run.number, host="h1"))
        world.apply(ev.JobRequeued(at=world.now, key=key))
    assert len(session._sent) == len(sessions.sent["h1"]) == 20
    world.now += 100.0
    world.step()
    outbox.greeted(session)
    outbox.overdue(session, world.now)
    assert (len(session._sent), len(sessions.sent["h1"])) == (1, 0)
    sessions.forget_host_left("h1")
    assert not sessions.sent
    assert not sessions.rows
