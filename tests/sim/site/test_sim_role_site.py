"""A site of jobs with roles under seeded faults; its seed is in the failure's text."""

from __future__ import annotations

import os
from collections import Counter

from lavad.core import events as ev
from tests.sim.site.role_site import RoleSiteSimulation

SEEDS = max(2, int(os.environ.get("LAVA_SIM_SEEDS", "32")) // 16)


def test_a_site_of_jobs_with_roles() -> None:
    """Each starts with the tasks that it asks for, none waits for ever, and no plan depends on what the scheduler remembers."""
    happened: Counter[str] = Counter()
    for seed in range(SEEDS):
        for event in RoleSiteSimulation(seed).run().disk.events:
            happened[type(event).__name__] += 1
            if isinstance(event, ev.JobDispatched):
                happened["GPUs"] += any(part.gpus for part in event.parts)
                happened["hosts"] += len(event.parts) > 1
    for kind in ("GPUs", "hosts", "TaskRetried", "JobRequeued", "Configured", "HostSwitched"):
        assert happened[kind], happened
