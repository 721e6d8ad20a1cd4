"""What the sections of a requirement make of a placement: rusage, span, same, alternatives, compound."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.cluster import HostConfig
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.by_time import decay_rusage
from lavad.core.site.conf import Params, ResourceConf
from tests.support.examples import examples
from tests.support.worlds.world import World


def world_of(*slots: int, **fields) -> World:
    world = World()
    for at, count in enumerate(slots):
        world.hosts(f"h{at + 1}", slots=count, **fields)
    return world


def mem(world: World, host: str = "h1") -> float:
    return world.cluster.use.hosts[host].reserved.get("mem", 0.0)


def test_a_reservation_lasts_as_long_as_it_says():
    world = world_of(4)
    first = world.submit(resreq="rusage[mem=10000:duration=10]")
    second = world.submit(resreq="rusage[mem=9000]")
    assert world.step() == {first: {"h1": 1}}
    world.later(599)
    assert world.step() == {}
    assert world.cluster.use.decaying == {first: world.now + 1}
    world.later(1)
    assert mem(world) == 0
    assert world.step() == {second: {"h1": 1}}
    world.finish(first)
    check_invariants(world.cluster)


def test_a_decaying_reservation_goes_down_in_steps_and_is_never_below_the_line():
    world = world_of(4)
    job = world.submit(resreq="rusage[mem=8000:duration=8:decay=1]")
    world.step()
    start, seen = world.now, []
    while world.cluster.use.decaying:
        world.later(7)
        assert mem(world) >= 8000 * (1 - (world.now - start) / 480) - 1e-6
        seen.append(mem(world))
    assert sorted(set(seen), reverse=True) == [8000, 7000, 6000, 5000, 4000, 3000, 2000, 1000, 0]
    assert world.now - start < 490
    assert decay_rusage(world.cluster, world.now).events == []
    world.finish(job)
    check_invariants(world.cluster)


def test_one_step_for_many_missed_ones():
    world = world_of(4)
    world.submit(resreq="rusage[mem=8000:duration=8:decay=1]")
    world.step()
    world.later(250)
    assert mem(world) == 4000
    world.later(10_000)
    assert (mem(world), world.cluster.use.decaying) == (0, {})


def test_a_licence_that_fades_lets_the_next_job_start_at_once():
    world = world_of(4)
    world.configure(resources=(ResourceConf(name="lic", kind="numeric", consumable=True, locations=((1.0, ("all",)),)),))
    jobs = [world.submit(resreq="rusage[lic=1:duration=1]") for _ in range(3)]
    assert list(world.step()) == jobs[:1]
    assert world.step() == {}
    world.later(60)
    assert list(world.step()) == jobs[1:2]


def test_the_first_rusage_that_can_be_had_is_taken_on_all_hosts():
    world = world_of(2, 2)
    job = world.submit(slots=4, resreq="rusage[mem=20000 || mem=5000 || mem=1]")
    assert world.step() == {job: {"h1": 2, "h2": 2}}
    assert (mem(world), mem(world, "h2")) == (5000, 5000)
    run = world.cluster.jobs.rows[job].run
    assert run is not None
    assert run.way == 1


def test_per_job_is_reserved_once_and_the_first_host_must_have_it():
    world = world_of(2, 2)
    world.submit(resreq="rusage[mem=9000] select[hname==h1]")
    world.step()
    job = world.submit(slots=3, resreq="rusage[mem=8000/job]")
    assert world.step() == {job: {"h2": 2, "h1": 1}}
    assert (mem(world), mem(world, "h2")) == (9000, 8000)


def test_per_task_is_the_sites_choice():
    world = world_of(4)
    world.configure(params=Params(resource_reserve_per_task=True))
    world.submit(slots=2, resreq="rusage[mem=3000]")
    world.submit(slots=2, resreq="rusage[mem=3000/host]")
    world.step()
    assert mem(world) == 9000


@pytest.mark.parametrize(
    ("span", "slots", "wanted"),
    [
        ("block=2", 6, {"h1": 4, "h2": 2}),
        ("block=3", 6, {"h1": 3, "h2": 3}),
        ("block=3", 7, {"h1": 3, "h2": 4}),
        ("block=4", 13, {}),
        ("stripe", 6, {"h1": 2, "h2": 2, "h3": 2}),
        ("stripe", 8, {"h1": 3, "h2": 3, "h3": 2}),
        ("stripe", 10, {"h1": 4, "h2": 4, "h3": 2}),
        ("stripe=1", 3, {"h1": 1, "h2": 1, "h3": 1}),
        ("stripe=3", 7, {"h1": 3, "h2": 3, "h3": 1}),
        ("stripe=1", 4, {}),
        ("ptile='!'", 10, {"h1": 4, "h2": 4, "h3": 2}),
        ("ptile='!',BIG:3", 8, {"h1": 3, "h2": 3, "h3": 2}),
        ("hosts=-1", 9, {"h1": 4, "h2": 4, "h3": 1}),
    ],
)
def test_span_says_how_many_on_each_host(span, slots, wanted):
    world = world_of(4, 4)
    world.hosts("h3", slots=2)
    kinds = {"h1": "BIG", "h2": "BIG", "h3": "SMALL"}
    world.configure(hosts=tuple(HostConfig(name=name, slots=2 if name == "h3" else 4, type=kind) for name, kind in kinds.items()))
    job = world.submit(slots=slots, resreq=f"span[{span}]")
    assert world.step() == ({job: wanted} if wanted else {})


def test_same_keeps_a_job_on_equal_hosts():
    world = world_of(2, 2, 4, 4)
    world.configure(
        hosts=tuple(HostConfig(name=f"h{at}", model="old" if at < 3 else "new") for at in range(1, 5)),
    )
    small, large = world.submit(slots=4, resreq="same[model]"), world.submit(slots=6, resreq="same[model]")
    blocked = world.submit(slots=4, resreq="same[model]")
    assert world.step() == {small: {"h1": 2, "h2": 2}, large: {"h3": 4, "h4": 2}}
    assert world.why(blocked)[0][0] in (1305, 312)


def test_a_job_gets_hosts_whose_starters_speak_the_same_protocol():
    world = world_of(2, 2, 4, 4)
    for name in ("h3", "h4"):
        facts = replace(world.cluster.hosts.rows[name].facts, starter=2)
        world.apply(ev.HostJoined(at=world.now, host=name, facts=facts))
    small, large = world.submit(slots=4), world.submit(slots=6)
    too_large = world.submit(slots=9)
    placed = world.step()
    assert [set(placed[job]) for job in (small, large)] == [{"h1", "h2"}, {"h3", "h4"}]
    assert too_large not in placed
    single = [world.submit() for _ in range(2)]
    assert set(world.step()) == set(single)


def test_a_job_that_waits_for_equal_starters_gets_its_hosts_when_they_are_equal():
    world = world_of(2, 2)
    world.apply(ev.HostJoined(at=world.now, host="h2", facts=replace(world.cluster.hosts.rows["h2"].facts, starter=2)))
    job = world.submit(slots=4)
    assert world.step() == {}
    assert world.step() == {}
    world.apply(ev.HostJoined(at=world.now, host="h1", facts=replace(world.cluster.hosts.rows["h1"].facts, starter=2)))
    assert world.step() == {job: {"h1": 2, "h2": 2}}


def test_an_alternative_waits_for_its_delay():
    world = world_of(2, 2)
    job = world.submit(slots=2, resreq="{select[ncpus>=8]} || {span[ptile=1]}@3")
    assert world.step() == {}
    assert world.wake_at == world.now + 180
    world.later(179)
    assert world.step() == {}
    world.later(1)
    assert world.step() == {job: {"h1": 1, "h2": 1}}
    assert world.cluster.jobs.rows[job].run.way == 1  # type: ignore[union-attr]


def test_no_host_can_ever_is_said_only_if_no_alternative_can_be():
    world = world_of(2, 2)
    never = world.submit(resreq="{select[ncpus>=8]} || {rusage[mem=99000]}")
    later = world.submit(resreq="{rusage[mem=99000]} || {rusage[mem=1]}@9")
    world.step()
    assert world.why(never)[0][1] == 0
    assert all(count for _, count in world.why(later))


def test_a_compound_requirement_gives_each_part_its_hosts():
    world = world_of(4, 4, 4)
    world.configure(hosts=(HostConfig(name="h3", resources=(("gpuhost", ""),)),), resources=(ResourceConf(name="gpuhost"),))
    text = "2*{select[gpuhost] rusage[mem=9000]}+4*{select[!gpuhost] span[ptile=2] rusage[mem=100/task]}"
    job = world.submit(slots=6, resreq=text)
    assert world.step() == {job: {"h3": 2, "h1": 2, "h2": 2}}
    assert (mem(world, "h3"), mem(world, "h1")) == (9000, 200)


def test_the_parts_of_a_compound_job_may_share_a_host_and_the_last_takes_the_rest():
    world = world_of(8)
    job = world.submit(slots=5, max_slots=7, resreq="1*{rusage[mem=8000]}+{rusage[mem=1000/task]}")
    assert world.step() == {job: {"h1": 7}}
    assert mem(world) == 14_000
    world.finish(job)
    check_invariants(world.cluster)


def test_a_compound_job_that_does_not_fit_takes_nothing_and_says_why():
    world = world_of(4, 4)
    job = world.submit(slots=9, resreq="1*{select[ncpus>=8]}+8*{}")
    other = world.submit(slots=4)
    assert world.step() == {other: {"h1": 4}}
    assert world.why(job)[0][0] in (9001, 9002)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"slots": 9}, 9001),
        ({"resreq": "rusage[mem=17000]"}, 2901 + 10),
        ({"resreq": "rusage[tmp=11000]"}, 2901 + 8),
        ({"resreq": "rusage[lic=3]"}, 2601 + 11),
        ({"gpu": "num=3"}, 9013),
        ({"gpu": "num=1:gmodel=B300"}, 9051),
    ],
)
def test_what_asks_for_too_much_of_anything_waits_and_says_of_what(fields, reason):
    """CPUs, GPUs, memory, local scratch and shared tokens."""
    world = world_of(4, 4, gpus=2)
    world.configure(resources=(ResourceConf(name="lic", kind="numeric", consumable=True, locations=((2.0, ("all",)),)),))
    job = world.submit(**fields)
    assert world.step() == {}
    assert reason in {code for code, _ in world.why(job)}


Hosts = list[tuple[int, bool, bool]]
hosts = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=4)
terms = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["", "a", "b", "!a"])), min_size=2, max_size=3)


def suits(host: tuple[int, bool, bool], want: str) -> bool:
    return {"": True, "a": host[1], "b": host[2], "!a": not host[1]}[want]


def splits(count: int, room: list[int]) -> Iterator[tuple[int, ...]]:
    return (split for split in product(*(range(min(count, free) + 1) for free in room)) if sum(split) == count)


def fits(found: Hosts, parts: list[tuple[int, str]], free: list[int]) -> bool:
    """Brute force: whether any way to give out slots holds the job."""
    if not parts:
        return True
    (count, want), *rest = parts
    room = [left if suits(host, want) else 0 for host, left in zip(found, free, strict=True)]
    return any(fits(found, rest, [left - took for left, took in zip(free, split, strict=True)]) for split in splits(count, room))


@settings(max_examples=examples(300))
@given(hosts, terms)
def test_a_compound_job_starts_exactly_where_brute_force_finds_a_place(found, parts):
    world = World()
    names = [f"h{at}" for at in range(len(found))]
    world.configure(
        resources=(ResourceConf(name="a"), ResourceConf(name="b")),
        hosts=tuple(
            HostConfig(name=name, slots=host[0], resources=tuple((word, "") for word, at in (("a", 1), ("b", 2)) if host[at]))
            for name, host in zip(names, found, strict=True)
        ),
    )
    world.hosts(*names, slots=4)
    text = "+".join(f"{count}*{{{f'select[{want}]' if want else 'rusage[mem=1]'}}}" for count, want in parts)
    job = world.submit(slots=sum(count for count, _ in parts), resreq=text)
    assert (job in world.step()) == fits(found, parts, [host[0] for host in found])
