"""Hosts whose load is within all thresholds are not looked at for jobs to suspend; one whose load rises is."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import Thresholds
from lavad.sched.needs.rows import Row
from lavad.sched.policy.suspend import SuspendResume
from tests.support.worlds.world import World

HOSTS = [f"h{number:02d}" for number in range(12)]


def test_only_a_host_beyond_a_threshold_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.queues(
        QueueConfig(name="normal", priority=30, thresholds=Thresholds(stop=(("r1m", 3.0),))),
        QueueConfig(name="other", priority=20),
    )
    world.hosts(*HOSTS, slots=1)
    for host in HOSTS:
        world.load(host, r1m=2.0)
    keys = [world.submit() for _ in HOSTS]
    assert len(world.step()) == len(HOSTS)
    looked: list[str] = []
    compared: list[str] = []
    overloaded_on, beyond = SuspendResume._overloaded_on, SuspendResume._beyond

    def on(self: SuspendResume, row: Row) -> object:
        looked.append(row.name)
        return overloaded_on(self, row)

    def compare(self: SuspendResume, row: Row, thresholds: tuple[tuple[str, float], ...]) -> list[str]:
        compared.append(row.name)
        return beyond(self, row, thresholds)

    monkeypatch.setattr(SuspendResume, "_overloaded_on", on)
    monkeypatch.setattr(SuspendResume, "_beyond", compare)
    world.submit()
    assert not world.schedule().suspensions
    world.submit()
    assert not world.schedule().suspensions
    assert looked == compared == []
    world.load(HOSTS[3], it=0.0, r1m=4.0)
    [suspended] = world.schedule().suspensions
    assert suspended.key in keys
    assert set(looked) == set(compared) == {HOSTS[3]}
