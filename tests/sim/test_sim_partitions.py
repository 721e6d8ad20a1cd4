"""Masters, database and hosts are parted, stopped, put to sleep and set to other times: no job runs twice.

LAVA_PARTITION_SEEDS=10000 makes a longer run of it.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from agent.core.lease import Granted
from lavad.core.cluster.cluster import Cluster
from lavad.hosts.leases import Findings, Leases
from tests.sim.partitions import CutHost, Partitions
from tests.sim.watch import Broken

SEEDS = int(os.environ.get("LAVA_PARTITION_SEEDS", "200"))
CHUNK = 25


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_job_runs_twice_whatever_is_parted(first: int) -> None:
    """No leased job in two places at a time, no other job twice at all, and each of them ends once."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        Partitions(seed).run()


def test_masters_change_and_hosts_are_given_up() -> None:
    """The stories are of what they are to be about."""
    seen: Counter[str] = Counter()
    for seed in range(12):
        story = Partitions(seed).run()
        seen.update(type(event).__name__ for event in story.disk.events)
    assert seen["MasterStarted"] > 24
    assert seen["PartFenced"] > 6
    assert seen["HostDown"] > 24
    assert seen["LeasesExtended"] > 4


class AnswersForEver(Leases):
    """Answers hosts after its own lease may have run out."""

    def is_certain(self, now: float) -> bool:
        return True


class CountsFromItsStart(Leases):
    """Does not wait for what an earlier master may have answered."""

    def __init__(self, taken_over: float, held_until: float = math.inf) -> None:
        super().__init__(taken_over - 300.0, held_until)


class ForgetsExtensions(Leases):
    """Knows of no extension that it did not grant itself, and tells hosts all the same."""

    def _passed(self, cluster: Cluster, host: str, now: float) -> Iterator[int]:
        kept, self._extended = self._extended, 0.0
        yield from list(super()._passed(cluster, host, now))
        self._extended = kept


class GivesUpAtOnce(Leases):
    """The margin is not waited for, nor the lease."""

    def look(self, cluster: Cluster, now: float) -> Findings:
        return super().look(cluster, now + 150.0)


class FromWhenItCame(CutHost):
    """Its agent counts leases from when an answer came."""

    def echoed(self, sent: float, extended: float) -> None:
        super().echoed(self.time.now, extended)


class KeepsNoLease(CutHost):
    """Its shepherds look at no deadline."""

    keeps_lease = False


BROKEN: dict[str, dict[str, Any]] = {
    "a master answers for ever": {"leases": AnswersForEver},
    "a master counts from its start": {"leases": CountsFromItsStart},
    "a master forgets extensions": {"leases": ForgetsExtensions},
    "a master gives up at once": {"leases": GivesUpAtOnce},
    "an agent counts from the answer": {"host": FromWhenItCame},
    "shepherds keep no lease": {"host": KeepsNoLease},
    "no margin": {"margin": 0},
}
MOST = 400
"""Seeds after which a broken rule should have shown."""


def play_all(**broken: Any) -> None:
    for seed in range(MOST):
        Partitions(seed, **broken).run()


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_that_is_broken_shows(name: str) -> None:
    with pytest.raises(Broken, match="runs twice at the same time"):
        play_all(**BROKEN[name])


def test_what_an_agent_grants_is_what_was_answered() -> None:
    """The stories use the agent's own rule."""
    host = Partitions(0).hosts["h0"]
    host.echoed(1_000_500.0, 0.0)
    assert host.granted == Granted(1_000_500.0)
