"""A scheduler that miscounts is stopped by the master's own check of its plan: each bug that is sown here is caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.lang.cpus import give_cpus
from lavad.core.rules.gpus import pick
from lavad.core.site.conf import Params, UnitConf
from lavad.sched.cycle import place_class
from lavad.sched.hosts import choose, compound, fit
from tests.support.topologies import regular
from tests.support.worlds.world import World


def world() -> World:
    world = World()
    world.configure(
        host_groups=(("r1", ("h1", "h2")),),
        params=Params(compute_unit_types=("rack",), units=(UnitConf("r1", "rack"),)),
    )
    world.hosts("h1", "h2", slots=8, gpus=2, topology=regular(1, 1, 4, 1))
    return world


def refused(w: World) -> int:
    """Placements of a plan that the master does not make true."""
    plan = w.schedule()
    return len(plan.placements) - len(w.accept(plan))


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], dict[str, Any]]] = {
    "memory that is not there": (
        lambda patch: patch.setattr(fit, "copies", lambda room, amount: 9),
        {"resreq": "rusage[mem=9000]"},
    ),
    "cores of others": (
        lambda patch: patch.setattr(fit, "give_cpus", lambda t, taken, w, n, near=(): give_cpus(t, (), w, n)),
        {"resreq": "affinity[core(1)]"},
    ),
    "GPUs of others": (
        lambda patch: patch.setattr(fit, "pick", lambda gpus, book, req, slots, states: pick(gpus, GpuBook(), req, slots)),
        {"gpu": "num=1:j_exclusive=yes"},
    ),
    "a part of a compound job forgotten": (
        lambda patch: patch.setattr(compound, "_merged", lambda parts, per_task: tuple(parts[:1])),
        {"resreq": "2*{}+1*{rusage[mem=5]}", "slots": 3},
    ),
    "slots of others": (
        lambda patch: patch.setattr(choose, "_stripes", lambda top, offers, most: [(offers[0][0], most)] if offers else []),
        {"resreq": "span[stripe]", "slots": 12},
    ),
    "units of others": (
        lambda patch: patch.setattr(place_class, "whole_units", lambda view, need, parts: ("h1", "h2")),
        {"resreq": "same[model]", "slots": 2},
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_scheduler_gives_nothing_twice(monkeypatch, bug):
    sow, wish = BUGS[bug]
    healthy, w = world(), world()
    for one in (healthy, w):
        one.submit(hosts=("h2",))
        one.step()
        for _ in range(3):
            one.submit(**wish)
    assert refused(healthy) == 0
    sow(monkeypatch)
    assert refused(w) > 0
