"""Whatever happens at a simulated site: a load of its store and a replay of its events give the cluster that it had."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.store.writer import Store
from tests.sim.site.needs import NeedsSimulation
from tests.sim.site.policies import PolicySimulation
from tests.sim.site.role_site import RoleSiteSimulation
from tests.sim.site.site import SiteSimulation
from tests.support.stores.folded import FoldedStore

MOST = 40
"""Events of one batch."""
SEEDS = max(1, int(os.environ.get("LAVA_SIM_SEEDS", "32")) // 32)


def of_no_lease(event: ev.Event) -> ev.Event:
    """In this store no master has taken office."""
    return replace(event, epoch=0) if isinstance(event, ev.MasterStarted) else event


@pytest.mark.parametrize("simulation", [SiteSimulation, PolicySimulation, NeedsSimulation, RoleSiteSimulation])
def test_what_is_stored_is_what_was_there(tmp_path: Path, simulation: type[SiteSimulation]) -> None:
    for seed in range(1, 1 + SEEDS):
        events = [of_no_lease(event) for event in simulation(seed).run().disk.events]
        sizes = random.Random(seed)
        url = f"sqlite:///{tmp_path}/{seed}.db"
        Store.open(url).close()
        store = FoldedStore(url)
        try:
            while events:
                batch, events = events[: (size := sizes.randint(1, MOST))], events[size:]
                for event in batch:
                    store.apply(event)
                store.commit()
        finally:
            store.close()
