"""GPUs of tasks of several sizes: joined where glink asks for it, by NUMA node where gtile does; beside brute force."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.lang.gpureq import GpuReq, merge, parse
from lavad.core.plan.volatile import GpuState
from lavad.core.rules.gpu_tasks import give_tasks
from lavad.core.rules.gpus import is_joined
from lavad.core.site.host import Gpu
from tests.support.examples import examples

TWO_BY_FOUR = (0, 0, 0, 0, 1, 1, 1, 1)
SIX_AND_TWO = (0, 0, 0, 0, 0, 0, 1, 1)
CROSSED = (0, 1, 0, 1)
THREE = (0, 0, 0, 1, 1, 1, 2, 2)


def cards(islands: Sequence[int]) -> tuple[Gpu, ...]:
    links = ["".join("N" if one == other else "S" for other in islands) for one in islands]
    return tuple(Gpu(uuid=f"G{at}", index=at, memory=80_000, links=row, numa=at // 4) for at, row in enumerate(links))


def given_to(islands: Sequence[int], req: str, sizes: Sequence[int], taken: str = "") -> str | None:
    book = GpuBook({f"G{at}": 1_000_000 for at in taken})
    found = give_tasks(cards(islands), book, want(req), sizes)
    return None if found is None else "".join(uuid[1:] for uuid in found)


def want(req: str) -> GpuReq:
    return merge(parse(f"num=1:j_exclusive=yes{req}"), GpuReq())


def test_each_task_has_its_own_side_by_side():
    assert given_to(CROSSED, "", (2, 2)) == "0213"
    assert given_to(CROSSED, "", (0, 1, 2), "0") == "213"
    assert given_to(TWO_BY_FOUR, "", (2, 2, 5)) is None


def test_with_glink_a_task_is_within_one_island():
    assert given_to(TWO_BY_FOUR, ":glink=yes", (3, 3)) == "012456"
    assert given_to(TWO_BY_FOUR, ":glink=yes", (3, 3, 2)) is None
    assert given_to(TWO_BY_FOUR, "", (3, 3, 2)) is not None
    assert given_to(SIX_AND_TWO, ":glink=yes", (1, 2, 5)) is not None
    assert given_to(SIX_AND_TWO, ":glink=yes", (3, 0, 3, 2)) == "01234567"


def test_gtile_is_about_the_gpus_of_all_tasks():
    assert given_to(TWO_BY_FOUR, ":gtile=2", (2, 2)) == "0145"
    assert given_to(TWO_BY_FOUR, ":gtile=2", (2, 3)) is None
    assert given_to(TWO_BY_FOUR, ":gtile=!", (1, 1, 4)) is not None
    assert given_to(TWO_BY_FOUR, ":gtile=!", (1, 1, 4), "456") is None


def test_tasks_that_share_get_gpus_with_the_least_memory_in_use():
    states = {
        "G0": GpuState(uuid="", mem_used=30_000),
        "G1": GpuState(uuid="", mem_used=9_000),
        "G2": GpuState(uuid="", mem_used=30_000),
    }
    req = merge(parse("num=1"), GpuReq())
    assert give_tasks(cards((0, 1, 2, 3)), GpuBook(), req, (1, 1), states) == ("G1", "G3")


@settings(max_examples=examples(300))
@given(
    st.sampled_from([TWO_BY_FOUR, SIX_AND_TWO, CROSSED, THREE]),
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
    st.sets(st.integers(0, 7), max_size=4),
)
def test_there_is_a_way_exactly_where_there_is_one(islands: tuple[int, ...], sizes: list[int], taken: set[int]):
    """Brute force over the islands of the tasks."""
    gpus = cards(islands)
    book = GpuBook({f"G{at}": 1_000_000 for at in taken})
    found = give_tasks(gpus, book, want(":glink=yes"), sizes)
    rooms = [0] * 3
    for at, island in enumerate(islands):
        rooms[island] += at not in taken

    @cache
    def fits(left: tuple[int, ...], at: int) -> bool:
        if at == len(sizes):
            return True
        shrunk = (tuple(n - sizes[at] * (i == one) for i, n in enumerate(left)) for one in range(3) if left[one] >= sizes[at])
        return any(fits(one, at + 1) for one in shrunk)

    assert (found is not None) == fits(tuple(rooms), 0)
    if found is not None:
        assert len(set(found)) == sum(sizes)
        assert not {int(uuid[1:]) for uuid in found} & taken
        assert is_joined(gpus, found, want(":glink=yes"), sizes)
