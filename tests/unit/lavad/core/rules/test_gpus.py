"""GPUs that are joined best go together; NVLink only where it is asked for; processors near them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.job.job import Placed
from lavad.core.lang.gpureq import GpuReq, merge, parse
from lavad.core.plan.plan import Placement, Plan
from lavad.core.plan.volatile import GpuState
from lavad.core.rules.gpus import pick, room
from lavad.core.site.gpu_links import choose
from lavad.core.site.host import Facts, Gpu
from tests.support.examples import examples
from tests.support.topologies import regular
from tests.support.worlds.world import World

TWO_BY_FOUR = tuple("".join("X" if a == b else "N" if a // 4 == b // 4 else "S" for b in range(8)) for a in range(8))
SIX_AND_TWO = tuple("".join("X" if a == b else "N" if (a < 6) == (b < 6) else "D" for b in range(8)) for a in range(8))
SWITCHES = tuple("".join("X" if a == b else "P" if a // 2 == b // 2 else "D" if a // 4 == b // 4 else "S" for b in range(8)) for a in range(8))  # fmt: skip # noqa: E501


def cards(links: tuple[str, ...]) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(uuid=f"G{at}", index=at, model="H200", memory=140_000, links=row, numa=at // 4) for at, row in enumerate(links)
    )


def got(links: tuple[str, ...], req: str, taken: str = "", slots: int = 1) -> str:
    uuids = pick(cards(links), GpuBook({f"G{at}": 1_000_000 for at in map(int, taken)}), want(req), slots)
    return "".join(uuid[1:] for uuid in uuids)


def want(text: str) -> GpuReq:
    return merge(parse(text), GpuReq())


@pytest.mark.parametrize(
    ("links", "req", "taken", "wanted"),
    [
        (TWO_BY_FOUR, "num=4", "", "0123"),
        (TWO_BY_FOUR, "num=4", "0", "4567"),
        (TWO_BY_FOUR, "num=2", "0", "12"),
        (TWO_BY_FOUR, "num=3", "01", "456"),
        (TWO_BY_FOUR, "num=6", "", "012345"),
        (TWO_BY_FOUR, "num=5", "07", "12345"),
        (SIX_AND_TWO, "num=2", "", "67"),
        (SIX_AND_TWO, "num=4", "", "0123"),
        (SIX_AND_TWO, "num=8", "", "01234567"),
        (SWITCHES, "num=2", "0", "23"),
        (SWITCHES, "num=4", "5", "0123"),
        (SWITCHES, "num=3", "0", "123"),
        (("",) * 8, "num=3", "1", "023"),
    ],
)
def test_a_job_gets_what_is_joined_best_and_leaves_whole_islands(links, req, taken, wanted):
    """A 4-GPU job takes one island of 2x4."""
    assert got(links, req + ":j_exclusive=yes", taken) == wanted


def test_nvlink_only():
    """6 + 2 joined GPUs refuse a strict 8."""
    eight, six, two = (want(f"num={n}:glink=yes:j_exclusive=yes") for n in (8, 6, 2))
    assert room(cards(SIX_AND_TWO), GpuBook(), eight) == 6
    assert room(cards(TWO_BY_FOUR), GpuBook({"G0": 1_000_000}), two) == 4
    assert room(cards(SIX_AND_TWO), GpuBook(), want("num=4/task:glink=yes")) == 4
    assert room(cards(("",) * 8), GpuBook(), two) == 1
    assert got(SIX_AND_TWO, "num=6:glink=yes:j_exclusive=yes") == "012345"
    assert room(cards(SIX_AND_TWO), GpuBook({"G1": 1_000_000}), six) == 5


def test_each_task_has_its_own_island():
    assert got(TWO_BY_FOUR, "num=3/task:glink=yes:j_exclusive=yes", slots=2) == "012456"
    assert got(TWO_BY_FOUR, "num=2/task:j_exclusive=yes", "0", slots=3) == "124567"


def test_the_gpus_of_one_task_stand_side_by_side():
    """Of four that are joined as 0-2 and 1-3: a task takes its pair, and has it at its own place in the list."""
    crossed = tuple("".join("X" if a == b else "N" if a % 2 == b % 2 else "S" for b in range(4)) for a in range(4))
    assert got(crossed, "num=2/task:j_exclusive=yes", slots=2) == "0213"
    assert got(crossed, "num=4:j_exclusive=yes") == "0123"


def test_gtile_is_by_numa_node():
    assert got(TWO_BY_FOUR, "num=4:gtile=!:j_exclusive=yes") == "0145"
    assert got(TWO_BY_FOUR, "num=3:gtile=2:j_exclusive=yes", "4") == "015"
    taken = dict.fromkeys(("G4", "G5", "G6"), 1_000_000)
    assert room(cards(TWO_BY_FOUR), GpuBook(taken), want("num=4:gtile=2:j_exclusive=yes")) == 3


def test_gtile_with_gpus_for_each_task_is_about_all_of_them_on_the_host():
    assert got(TWO_BY_FOUR, "num=1/task:gtile=!:j_exclusive=yes", slots=4) == "0145"
    assert got(TWO_BY_FOUR, "num=2/task:gtile=2:glink=yes:j_exclusive=yes", "04", slots=2) == "1256"
    taken = dict.fromkeys(("G4", "G5", "G6"), 1_000_000)
    assert room(cards(TWO_BY_FOUR), GpuBook(taken), want("num=1/task:gtile=!:j_exclusive=yes")) == 3
    assert room(cards(TWO_BY_FOUR), GpuBook(taken), want("num=1/task:gtile=3:j_exclusive=yes")) == 4
    assert room(cards(TWO_BY_FOUR), GpuBook(taken), want("num=2/task:gtile=3:glink=yes:j_exclusive=yes")) == 2


def test_shared_jobs_go_where_few_are_and_gpack_where_many_are():
    gpus = cards(TWO_BY_FOUR)
    taken = {"G0": 1, "G1": 1, "G5": 2}
    assert pick(gpus, GpuBook(taken), want("num=2"), 1) == ("G2", "G3")
    assert pick(gpus, GpuBook(taken), want("num=2:gpack=yes"), 1) == ("G0", "G5")


def test_shared_jobs_go_where_the_least_memory_is_in_use():
    """Of GPUs that as many jobs are on; a GPU's noise decides nothing, nor what is measured where memory is reserved."""
    gpus = cards(("",) * 4)
    used = {f"G{at}": GpuState(uuid=f"G{at}", mem_used=mb) for at, mb in enumerate((30_000, 20_100, 20_000, -1))}
    book = GpuBook(dict.fromkeys(("G0", "G1", "G2"), 1) | {"G3": 2})
    assert pick(gpus, book, want("num=1"), 1, used) == ("G1",)
    assert pick(gpus, book, want("num=3"), 1, used) == ("G0", "G1", "G2")
    assert pick(gpus, book, want("num=1:gmem=1G"), 1, used) == ("G0",)
    assert pick(gpus, book, want("num=1:gpack=yes"), 1, used) == ("G3",)
    assert pick(gpus, GpuBook(), want("num=1"), 1, used) == ("G3",)


def world(links: tuple[str, ...]) -> World:
    world = World()
    facts = Facts(ncpus=16, max_mem=64_000, gpus=cards(links), topology=regular(2, 1, 4, 2))
    world.apply(ev.HostJoined(at=world.now, host="h1", facts=facts), ev.HostUp(at=world.now, host="h1"))
    world.load("h1", mem=64_000.0)
    return world


def test_a_strict_job_waits_and_the_master_checks_it_too():
    w = world(SIX_AND_TWO)
    job = w.submit(gpu="num=8:glink=yes:j_exclusive=yes")
    fits = w.submit(gpu="num=6:glink=yes:j_exclusive=yes")
    assert list(w.step()) == [fits]
    assert [name for name, _ in w.why_names(job)] == ["NEVER_GPU_LINKS", "GPU_BUSY"]
    w.finish(fits)
    wrong = w.submit(gpu="num=2:glink=yes:j_exclusive=yes")
    part = Placed(host="h1", slots=1, gpus=("G5", "G6"))
    assert accept_plan(w.cluster, Plan(w.cluster.version, (Placement(wrong, (part,)),)), w.now, "s") == []
    part = replace(part, gpus=("G6", "G7"))
    assert len(accept_plan(w.cluster, Plan(w.cluster.version, (Placement(wrong, (part,)),)), w.now, "s")) == 1


def test_processors_near_the_gpus():
    w = world(TWO_BY_FOUR)
    first = w.submit(gpu="num=4:j_exclusive=yes", resreq="affinity[core(2)]")
    second = w.submit(gpu="num=4:j_exclusive=yes", resreq="affinity[core(2)]")
    w.step()
    binds = [w.cluster.jobs.rows[job].run.parts[0].binds[0].cpus for job in (first, second)]  # type: ignore[union-attr]
    assert binds == [(0, 1, 8, 9), (4, 5, 12, 13)]


matrices = st.lists(st.sampled_from("NPBHDS"), min_size=28, max_size=28)


@settings(max_examples=examples(200))
@given(matrices, st.sets(st.integers(0, 7), min_size=1), st.integers(1, 8))
def test_no_choice_has_a_better_worst_island(kinds, free, count):
    """The kind of links that a choice needs to be one island is never further than the nearest that could do."""
    pairs = dict(zip(combinations(range(8), 2), kinds, strict=True))
    rows = tuple("".join("X" if a == b else pairs[min(a, b), max(a, b)] for b in range(8)) for a in range(8))
    gpus = cards(rows)
    order = sorted(free)
    found = choose(gpus, order, count, strict=False)
    if count > len(order):
        assert found == []
        return
    assert len(set(found)) == count
    assert set(found) <= free

    def level(some: tuple[int, ...]) -> int:
        for near in range(1, 7):
            edge, seen = [some[0]], set()
            while edge:
                at = edge.pop()
                seen.add(at)
                edge += [b for b in range(8) if b not in seen and rows[at][b] in "NPBHDS"[:near]]
            if seen >= set(some):
                return near
        return 9

    assert level(tuple(found)) == min(level(some) for some in combinations(order, count))


PAIRS = tuple("".join("X" if a == b else "P" if a // 2 == b // 2 else "S" for b in range(8)) for a in range(8))
MESH = tuple("".join("X" if a == b else "N" for b in range(8)) for a in range(8))
requirements = st.fixed_dictionaries(
    {
        "num": st.integers(1, 8),
        "per": st.sampled_from(["", "/task"]),
        "more": st.sampled_from(
            ["", ":glink=yes", ":gtile=1", ":gtile=2", ":gtile=!", ":gmodel=H100", ":gmem=100G", ":gpack=yes"]
        ),
        "mode": st.sampled_from(["", ":j_exclusive=yes"]),
    }
)


@settings(max_examples=examples(300))
@given(
    st.sampled_from([TWO_BY_FOUR, SIX_AND_TWO, PAIRS, MESH, ("",) * 8]),
    requirements,
    st.lists(st.sampled_from([0, 0, 0, 1, 2, 1_000_000]), min_size=8, max_size=8),
    st.sets(st.integers(0, 7), max_size=3),
    st.lists(st.sampled_from(["H200", "H100"]), min_size=8, max_size=8),
    st.integers(1, 3),
)
def test_what_is_picked_is_free_and_as_asked_for(links, words, jobs, closed, models, slots):
    gpus = tuple(replace(gpu, model=model) for gpu, model in zip(cards(links), models, strict=True))
    book = GpuBook({f"G{at}": count for at, count in enumerate(jobs) if count}, {"G1": 90_000.0}, {f"G{at}" for at in closed})
    req = want(f"num={words['num']}{words['per']}{words['more']}{words['mode']}")
    num, tasks = words["num"], slots if words["per"] else 1
    if room(gpus, book, req) < num * tasks:
        return
    found = [int(uuid[1:]) for uuid in pick(gpus, book, req, slots)]
    assert len(set(found)) == num * tasks
    top = 0 if words["mode"] else 2
    for at in found:
        assert at not in closed
        assert jobs[at] <= top
        assert "H100" not in words["more"] or models[at] == "H100"
        assert "gmem" not in words["more"] or at != 1
    sets = [found[at : at + num] for at in range(0, len(found), num)]
    if "glink" in words["more"]:
        islands = [set(range(8))] if links is MESH else [{0, 1, 2, 3}, {4, 5, 6, 7}] if links is TWO_BY_FOUR else []
        islands = [set(range(6)), {6, 7}] if links is SIX_AND_TWO else islands or [{at} for at in range(8)]
        assert all(any(set(one) <= island for island in islands) for one in sets)
    if "gtile" in words["more"]:
        most = -(-len(found) // 2) if "!" in words["more"] else int(words["more"][-1])
        assert all(sum(at // 4 == node for at in found) <= most for node in (0, 1))


@settings(max_examples=examples(150))
@given(st.sampled_from([TWO_BY_FOUR, SIX_AND_TWO, PAIRS, MESH]), st.sets(st.integers(0, 7), min_size=1), st.integers(1, 8))
def test_no_other_choice_is_spread_over_fewer_islands(links, free, count):
    """Beside brute force over all sets of free GPUs."""
    if count > len(free):
        return
    joined = [frozenset(b for b in range(8) if b == a or links[a][b] in "NP") for a in range(8)]

    def spread(some: Iterable[int]) -> int:
        return len({joined[at] for at in some})

    found = choose(cards(links), sorted(free), count, strict=False)
    assert spread(found) == min(map(spread, combinations(sorted(free), count)))
