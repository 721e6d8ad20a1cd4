"""bmod -nnodes: how many slots a job has then, and on how many hosts."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core.lang.asks import Refused
from tests.support.worlds.bench import Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmod


@pytest.mark.parametrize(
    ("given", "asked", "slots", "tile"),
    [
        ({"nnodes": "4"}, {"nnodes": "2"}, 2, 1),
        ({"nnodes": "2"}, {"nnodes": "4"}, 4, 1),
        ({"nnodes": "2", "n": "4"}, {"nnodes": "4"}, 4, 1),
        ({"nnodes": "2"}, {"nnodes": "2", "n": "6"}, 6, 3),
        ({"n": "4"}, {"nnodes": "2"}, 4, 2),
    ],
)
def test_a_slot_on_each_node_or_the_tasks_that_were_asked_for(
    bench: Bench, given: dict[str, Any], asked: dict[str, Any], slots: int, tile: int
) -> None:
    key = bench.bsub(**given)["job"]
    bmod(bench, key, **asked)
    spec = bench.cluster.spec_of(key)
    assert (spec.slots, spec.max_slots, spec.resreq) == (slots, slots, f"span[ptile={tile}]")


@pytest.mark.parametrize(("given", "asked"), [({"n": "4"}, {"nnodes": "6"}), ({"nnodes": "2"}, {"nnodes": "6", "n": "4"})])
def test_fewer_tasks_than_nodes(bench: Bench, given: dict[str, Any], asked: dict[str, Any]) -> None:
    key = bench.bsub(**given)["job"]
    with pytest.raises(Refused, match=r"^6: the tasks of -n cannot be spread evenly over so many nodes$"):
        bmod(bench, key, **asked)
