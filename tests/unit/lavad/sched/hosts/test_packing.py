"""Jobs with GPUs leave whole hosts and whole islands to jobs that need them; beside brute force."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.site.conf import Params
from lavad.core.site.host import Facts, Gpu
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World

TWO_BY_FOUR = tuple("".join("X" if a == b else "N" if a // 4 == b // 4 else "S" for b in range(8)) for a in range(8))
ONE_SWITCH = tuple("".join("X" if a == b else "N" for b in range(8)) for a in range(8))
HALF = tuple(row[:4] for row in TWO_BY_FOUR[:4])


def world(*hosts: tuple[str, ...], slots: int = 64) -> World:
    """Hosts h1, h2 … with GPUs of these links."""
    world = World()
    world.configure(params=Params(parallel_sched_by_slot=True))
    for number, links in enumerate(hosts, 1):
        cards = tuple(
            Gpu(uuid=f"{number}.{at}", index=at, model="H200", memory=140_000, links=row) for at, row in enumerate(links)
        )
        facts = Facts(ncpus=slots, max_mem=640_000, gpus=cards)
        world.apply(ev.HostJoined(at=world.now, host=f"h{number}", facts=facts), ev.HostUp(at=world.now, host=f"h{number}"))
        world.load(f"h{number}", mem=640_000.0)
    return world


def submit(w: World, num: int, slots: int = 1, per: str = "", more: str = "j_exclusive=yes", **fields: Any) -> int:
    return w.submit(slots=slots, gpu=f"num={num}{per}:{more}" if more else f"num={num}", **fields)


def run(w: World, num: int, host: str) -> int:
    """A job that runs on this host."""
    key = submit(w, num, hosts=(host,))
    assert w.step()[key] == {host: 1}
    return key


def gpus(w: World, key: int) -> list[str]:
    attempt = w.cluster.jobs.rows[key].run
    assert attempt is not None
    return [gpu for part in attempt.parts for gpu in part.gpus]


@pytest.mark.parametrize("few", [1, 64])
def test_small_jobs_leave_whole_hosts(few):
    """With the first host that fits all four would be broken after the jobs of 5."""
    w = world(*[ONE_SWITCH] * 4)
    w.memory = SchedulerCache(few=few)
    for _ in range(2):
        submit(w, 5)
    for num in (1, 2, 2, 1):
        submit(w, num)
    w.step()
    assert sum(len({gpu[0] for gpu in gpus(w, key)}) == 1 for key in w.running()) == 6
    assert len({host for places in w.running().values() for host in places}) == 2
    whole = [submit(w, 8) for _ in range(2)]
    assert set(w.step()) == set(whole)


def test_small_jobs_fill_broken_islands_and_one_of_four_takes_a_whole_one():
    w = world(TWO_BY_FOUR, TWO_BY_FOUR, TWO_BY_FOUR)
    run(w, 4, "h2")
    run(w, 1, "h3")
    one, four = submit(w, 1), submit(w, 4)
    w.step()
    assert gpus(w, one) == ["3.1"]
    assert sorted(gpus(w, four)) in (["2.4", "2.5", "2.6", "2.7"], ["3.4", "3.5", "3.6", "3.7"])


def test_a_job_goes_to_a_whole_island_rather_than_to_parts_of_two():
    """Of hosts that are in use; an idle host is broken for it only where no other has the room."""
    w = world(TWO_BY_FOUR, TWO_BY_FOUR, TWO_BY_FOUR)
    run(w, 3, "h1")
    run(w, 3, "h1")
    run(w, 1, "h2")
    jobs = [submit(w, 4), submit(w, 2)]
    w.step()
    assert [gpus(w, job)[0] for job in jobs] == ["2.4", "2.1"]


def test_a_small_host_is_broken_before_a_large_one():
    w = world(ONE_SWITCH, HALF)
    job = submit(w, 2)
    w.step()
    assert gpus(w, job) == ["2.0", "2.1"]


def test_a_job_goes_where_it_keeps_a_host_from_being_idle_the_least():
    w = world(ONE_SWITCH, ONE_SWITCH, ONE_SWITCH)
    for host, hours in (("h1", 1), ("h2", 9), ("h3", 3)):
        submit(w, 4, hosts=(host,), limits=Limits(run=3600 * hours))
    w.step()
    jobs = [submit(w, 2, limits=Limits(run=seconds)) for seconds in (60, 4 * 3600, 20 * 3600, 20 * 3600)]
    w.step()
    assert [gpus(w, job)[0][0] for job in jobs] == ["1", "2", "2", "3"]


def test_a_job_without_a_run_limit_goes_where_another_has_none():
    w = world(ONE_SWITCH, ONE_SWITCH, ONE_SWITCH)
    for host, limits in (("h1", Limits(run=3600)), ("h2", Limits())):
        submit(w, 4, hosts=(host,), limits=limits)
    w.step()
    jobs = [submit(w, 2) for _ in range(3)]
    w.step()
    assert [gpus(w, job)[0][0] for job in jobs] == ["2", "2", "1"]


def test_a_gang_gets_whole_hosts_and_the_rest_where_it_fits_best():
    w = world(ONE_SWITCH, ONE_SWITCH, ONE_SWITCH, ONE_SWITCH)
    run(w, 4, "h1")
    run(w, 5, "h2")
    gang = submit(w, 1, slots=18, per="/task")
    assert w.step()[gang] == {"h3": 8, "h4": 8, "h2": 2}


def test_the_order_of_the_job_and_of_the_site_win():
    w = world(ONE_SWITCH, ONE_SWITCH)
    run(w, 4, "h2")
    spread = submit(w, 1, resreq="order[spread]")
    by_name = submit(w, 1, resreq="order[mem]")
    w.load("h1", mem=640_001.0)
    assert w.step() == {spread: {"h1": 1}, by_name: {"h1": 1}}
    w.configure(params=Params(lava_pack_weights=(("gpus", 0.0),)))
    run(w, 2, "h2")
    plain = submit(w, 1)
    assert w.step() == {plain: {"h1": 1}}
    w.configure(params=Params(), queues=(QueueConfig(name="normal", res_req="order[mem]"),))
    ordered = submit(w, 1)
    assert w.step() == {ordered: {"h1": 1}}


def test_preferred_hosts_go_first():
    w = world(ONE_SWITCH, ONE_SWITCH, ONE_SWITCH)
    run(w, 4, "h2")
    job = submit(w, 1, hosts=("h3+1", "others"))
    assert w.step() == {job: {"h3": 1}}


def test_shared_jobs_take_idle_gpus_first_and_with_gpack_used_ones():
    w = world(HALF, HALF)
    shared = [submit(w, 2, more="") for _ in range(4)]
    w.step()
    assert sorted(gpu for key in shared for gpu in gpus(w, key)) == sorted(f"{host}.{at}" for host in (1, 2) for at in range(4))
    w.finish(shared[0])
    packed = submit(w, 2, more="gpack=yes")
    w.step()
    assert not set(gpus(w, packed)) & {"1.0", "1.1"}


def test_two_gangs_of_four_do_not_block_each_other():
    w = world(HALF, slots=8)
    gangs = [submit(w, 1, slots=4, per="/task") for _ in range(2)]
    assert list(w.step()) == gangs[:1]
    assert [name for name, _ in w.why_names(gangs[1])] == ["GPU_BUSY"]
    w.finish(gangs[0])
    assert list(w.step()) == gangs[1:]


sizes = st.lists(st.sampled_from([1, 1, 2, 2, 3, 4, 5, 8]), min_size=1, max_size=5)


def most_whole(jobs: list[int], hosts: int) -> int:
    """Brute force: hosts of 8 GPUs that can be left without a job."""
    ways = (way for way in product(range(hosts), repeat=len(jobs)) if all(at <= place for place, at in enumerate(way)))
    fitting = (way for way in ways if all(sum(n for n, at in zip(jobs, way, strict=True) if at == host) <= 8 for host in way))
    return max((hosts - len(set(way)) for way in fitting), default=0)


@settings(max_examples=examples(40), deadline=None)
@given(sizes, st.sampled_from([TWO_BY_FOUR, ONE_SWITCH]))
def test_at_most_one_host_more_is_broken_than_need_be(jobs, links):
    """The jobs come one after the other, so that none can know of the next."""
    w = world(*[links] * 5)
    for num in jobs:
        submit(w, num)
        w.step()
    used = {gpu[0] for key in w.running() for gpu in gpus(w, key)}
    if len(w.running()) == len(jobs):
        assert 5 - len(used) >= most_whole(jobs, 5) - 1
