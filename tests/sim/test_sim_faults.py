"""Whole clusters in virtual time under seeded faults; what must hold is in ``simulation``, its seed in the failure's text.

LAVA_SIM_SEEDS=10000 makes a longer run of it.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from lavad.core import events as ev
from tests.sim.simulation import Simulation

SEEDS = int(os.environ.get("LAVA_SIM_SEEDS", "32"))
EVENTFUL = 12
"""The first of them, whose stories are looked at for what has happened in them, too."""
CHUNK = max(1, min(50, SEEDS // 20))


@pytest.mark.parametrize("first", range(EVENTFUL, SEEDS, CHUNK))
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
    for seed in range(EVENTFUL):
        simulation = Simulation(seed).run()
        names = [type(event).__name__ for event in simulation.disk.events]
        epochs += simulation.disk.epoch
        attempts += names.count("JobRequeued")
        fences += names.count("PartFenced")
    assert epochs > 24
    assert attempts > 12
    assert fences > 2


def test_jobs_that_grow_and_shrink_under_faults() -> None:
    """Hosts join and leave running jobs while everything fails: nothing lost, nothing twice."""
    resizes: Counter[str] = Counter()
    for seed in range(max(7, SEEDS // 10)):
        simulation = Simulation(seed, hosts=5, faulty=2500.0, elastic=1.0).run()
        names = [type(event).__name__ for event in simulation.disk.events]
        resizes.update(name for name in names if name in ("JobGrew", "JobShrank", "JobResized", "PartLeft", "ResizeAsked"))
    assert len(resizes) == 5, resizes
    assert min(resizes.values()) > 5, resizes


def test_jobs_that_are_preempted_under_faults() -> None:
    """Suspended, run again or made smaller for jobs of a higher queue while everything fails: nothing lost, nothing twice."""
    happened: Counter[str] = Counter()
    for seed in range(max(4, SEEDS // 10)):
        simulation = Simulation(60 + seed, jobs=20, preempts=True).run()
        for event in simulation.disk.events:
            if isinstance(event, ev.JobSuspended | ev.JobShrank | ev.SignalRequested) and event.beneficiary:
                happened[type(event).__name__] += 1
    assert len(happened) == 3, happened


def test_jobs_in_chunks_under_faults() -> None:
    """Jobs that wait at a host behind others of their chunk: none lost, none twice, no host over its slots."""
    waits: Counter[bool] = Counter()
    for seed in range(max(3, SEEDS // 10)):
        simulation = Simulation(seed, elastic=0.0, chunk=4).run()
        waits.update(event.waits for event in simulation.disk.events if isinstance(event, ev.JobDispatched))
    assert waits[True] > 100, waits
