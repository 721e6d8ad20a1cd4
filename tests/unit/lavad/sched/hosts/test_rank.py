"""order[binpack] and order[spread], with slots, memory and GPUs all counted; beside brute force."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.queue import QueueConfig
from config.read.load import load
from lavad.configure.resolve import resolve
from lavad.core.site.conf import Params
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World


def world(hosts: int = 4, **facts) -> World:
    world = World()
    world.hosts(*(f"h{at}" for at in range(1, hosts + 1)), **({"slots": 4, "mem": 16_000} | facts))
    return world


def hosts_of(w: World) -> Counter[str]:
    return Counter(host for places in w.running().values() for host in places)


@pytest.mark.parametrize("few", [1, 64])
def test_jobs_of_one_cycle_are_packed_or_spread(few):
    for word, wanted in (("binpack", [4, 2]), ("spread", [2, 2, 1, 1])):
        w = world()
        w.memory = SchedulerCache(few=few)
        for _ in range(6):
            w.submit(resreq=f"order[{word}]")
        w.step()
        assert sorted(hosts_of(w).values(), reverse=True) == wanted


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize(("order", "first"), [("r15s:pg", "h1"), ("mem", "h3"), ("-mem", "h2"), ("tmp:-mem", "h2"), ("pg", "h1")])
def test_without_order_hosts_are_tried_as_the_site_says(few, order, first):
    w = World()
    w.configure(params=Params(default_resreq_order=order))
    w.memory = SchedulerCache(few=few)
    for name, mem in (("h1", 8000), ("h2", 4000), ("h3", 16000)):
        w.hosts(name, slots=4, mem=mem)
    plain, own = w.submit(), w.submit(resreq="order[mem]")
    begun = w.step()
    assert (begun[plain], begun[own]) == ({first: 1}, {"h3": 1})


def test_an_array_is_spread_too_and_a_queue_may_ask_for_it():
    w = world()
    w.queues(QueueConfig(name="normal", res_req="order[spread]"))
    w.submit(array="1-8")
    w.step()
    assert hosts_of(w) == {"h1": 2, "h2": 2, "h3": 2, "h4": 2}


def test_gpus_count():
    """With slots alone h1 would be the fullest."""
    w = world(3, gpus=4)
    w.submit(slots=2, hosts=("h1",))
    w.submit(gpu="num=3:j_exclusive=yes", hosts=("h2",))
    w.step()
    packed, spread = (w.submit(gpu="num=1:j_exclusive=yes", resreq=f"order[{word}]") for word in ("binpack", "spread"))
    assert w.step() == {packed: {"h2": 1}, spread: {"h3": 1}}


def test_memory_counts():
    w = world(3)
    w.submit(slots=1, resreq="rusage[mem=12000]", hosts=("h2",))
    w.submit(slots=1, hosts=("h1",))
    w.step()
    packed, spread = (w.submit(resreq=f"order[{word}] rusage[mem=4000]") for word in ("binpack", "spread"))
    assert w.step() == {packed: {"h2": 1}, spread: {"h3": 1}}


def test_a_site_may_weigh():
    w = world(3, gpus=4)
    w.configure(params=Params(lava_pack_weights=(("slots", 0.0), ("gpus", 1.0))))
    w.submit(slots=4, gpu="num=1:j_exclusive=yes", hosts=("h1",))
    w.submit(slots=1, gpu="num=2:j_exclusive=yes", hosts=("h2",))
    w.submit(slots=3, hosts=("h3",))
    w.step()
    job = w.submit(gpu="num=1:j_exclusive=yes", resreq="order[binpack]")
    assert w.step() == {job: {"h2": 1}}


def test_weights_are_read(tmp_path: Path):
    good = {"slots": 0.0, "mem": 1.0, "gpus": 4.0}
    for text, wanted in (("slots=0 gpus=4", good), ("cpus=1", {}), ("mem=0 slots=0 gpus=0", {}), ("mem=-1", {})):
        (tmp_path / "lsf.conf").write_text(f"LAVA_PACK_WEIGHTS={text}\n")
        loaded = load(str(tmp_path))
        assert dict(resolve(loaded.config).params.lava_pack_weights) == wanted
        assert bool(loaded.problems) == (not wanted)


def test_preferred_hosts_go_first():
    w = world()
    jobs = [w.submit(resreq="order[spread]", hosts=("h3+2", "h2+1", "others")) for _ in range(6)]
    assert [next(iter(places)) for places in w.step().values()] == ["h3"] * 4 + ["h2"] * 2
    assert len(jobs) == 6


sizes = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=6)


def least_hosts(jobs: list[tuple[int, int, int]]) -> int:
    """Brute force: of hosts with 4 slots, 4 parts of memory and 4 GPUs."""
    return min(
        len(set(places))
        for places in product(range(len(jobs)), repeat=len(jobs))
        if all(place <= at for at, place in enumerate(places))
        and all(
            sum(job[kind] for job, place in zip(jobs, places, strict=True) if place == host) <= 4
            for host in set(places)
            for kind in range(3)
        )
    )


@settings(max_examples=examples(80))
@given(sizes)
def test_binpack_uses_at_most_one_host_more_than_need_be(jobs):
    w = world(6, gpus=4)
    for slots, memory, gpus in jobs:
        gpu = f"num={gpus}:j_exclusive=yes" if gpus else ""
        w.submit(slots=slots, resreq=f"order[binpack] span[hosts=1] rusage[mem={memory * 4000}]", gpu=gpu)
    w.step()
    assert len(w.running()) == len(jobs)
    assert len(hosts_of(w)) <= least_hosts(jobs) + 1
