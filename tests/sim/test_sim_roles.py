"""Jobs with roles under faults, and under whatever users ask of them at each moment of their life: each comes to an end.

LAVA_SIM_SEEDS=10000 makes a longer run of it.
"""

from __future__ import annotations

import os
from collections import Counter

from tests.sim.roles import RoleSimulation

SEEDS = max(4, int(os.environ.get("LAVA_SIM_SEEDS", "32")) // 8)


def test_every_job_with_roles_comes_to_an_end() -> None:
    """None waits for ever, no task runs twice at a time, none is left; and all of it has really happened."""
    happened: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for seed in range(SEEDS):
        story = RoleSimulation(seed, jobs=16, preempts=seed % 4 == 3)
        story.run()
        happened.update(type(event).__name__ for event in story.disk.events)
        asked.update(story.asked)
    names = (
        "TaskEnded",
        "TaskRetried",
        "TasksRecalled",
        "TasksReturned",
        "JobJudged",
        "JobRequeued",
        "SignalHandled",
        "CheckpointMade",
    )
    assert min(happened[name] for name in names) > 2, happened
    assert min(asked.values()) > 2, asked
