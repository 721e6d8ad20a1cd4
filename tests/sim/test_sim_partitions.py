"""Masters, database and hosts are parted, stopped, put to sleep and set to other times: no job runs twice.

LAVA_PARTITION_SEEDS=10000 makes a longer run of it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.control.hosts import leased_parts
from lavad.hosts.leases import Leases
from tests.sim.partitions import CutHost, Partitions
from tests.sim.watch import Broken

SEEDS = int(os.environ.get("LAVA_PARTITION_SEEDS", "30"))
CHUNK = max(1, min(25, SEEDS // 8))
EVENTFUL = 12
"""The first of them, whose stories are looked at for what has happened in them, too."""


@pytest.mark.parametrize("first", range(EVENTFUL, SEEDS, CHUNK))
def test_no_job_runs_twice_whatever_is_parted(first: int) -> None:
    """No leased job in two places at a time, no other job twice at all, and each of them ends once."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        Partitions(seed).run()


def test_masters_change_and_hosts_are_given_up() -> None:
    """The stories are of what they are to be about."""
    seen: Counter[str] = Counter()
    for seed in range(EVENTFUL):
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


class ForgetsExtensions(Leases):
    """Knows of no extension that it did not grant itself, and tells hosts all the same."""

    def _passed(self, cluster: Cluster, host: str, now: float) -> Iterator[int]:
        kept, self._extended = self._extended, 0.0
        yield from list(super()._passed(cluster, host, now))
        self._extended = kept


class GivesUpAtOnce(Leases):
    """Waits for no lease and no margin."""

    def _passed(self, cluster: Cluster, host: str, now: float) -> Iterator[int]:
        return (key for key, _, _ in leased_parts(cluster, host))


class KeepsNoLease(CutHost):
    """Its shepherds look at no deadline."""

    keeps_lease = False


BROKEN: dict[str, dict[str, Any]] = {
    "a master answers for ever": {"leases": AnswersForEver},
    "a master forgets extensions": {"leases": ForgetsExtensions},
    "a master gives up at once": {"leases": GivesUpAtOnce},
    "shepherds keep no lease": {"host": KeepsNoLease},
    "no margin": {"margin": 0},
}
SHOWS_AT = {"a master answers for ever": 115}
"""A seed shortly before one that has shown it, for what few of them show."""
MOST = 400
"""Seeds after which a broken rule should have shown."""


def play_all(first: int, **broken: Any) -> None:
    for seed in range(first, first + MOST):
        Partitions(seed, **broken).run()


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_that_is_broken_shows(name: str) -> None:
    with pytest.raises(Broken, match="runs twice at the same time"):
        play_all(SHOWS_AT.get(name, 0), **BROKEN[name])
