"""Whole clusters in virtual time under seeded faults; what must hold is in ``simulation``, its seed in the failure's text.

LAVA_SIM_SEEDS=10000 makes a longer run of it.
"""

from __future__ import annotations

import os

import pytest

from tests.sim.simulation import Simulation

SEEDS = int(os.environ.get("LAVA_SIM_SEEDS", "200"))
CHUNK = max(1, SEEDS // 20)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_job_ends_once_and_never_runs_twice(first: int) -> None:
    """No job is lost, none runs twice at a time, none that may not repeat repeats, no host is over its slots."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        Simulation(seed).run()


def test_a_seed_is_a_story() -> None:
    """The same seed gives the same events, so that a failure can be looked at again."""
    one, other = Simulation(7).run(), Simulation(7).run()
    assert one.disk.events == other.disk.events


def test_faults_really_happen() -> None:
    """The runs are not calm: masters come and go, attempts are repeated, hosts are fenced, jobs are lost."""
    epochs = attempts = fences = 0
    for seed in range(12):
        simulation = Simulation(seed).run()
        names = [type(event).__name__ for event in simulation.disk.events]
        epochs += simulation.disk.epoch
        attempts += names.count("JobRequeued")
        fences += names.count("PartFenced")
    assert epochs > 24
    assert attempts > 12
    assert fences > 2
