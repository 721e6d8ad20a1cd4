"""Two jobs that each want all four GPUs: as gangs none is held idle; piece by piece both hold two, and that is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.lang.states import JobState
from lavad.services.held_gpu_metrics import HeldGpus
from tests.scenario.queue_site import QueueSite

FOUR = {"n": "4", "gpu": "num=1/task:j_exclusive=yes"}


class Watched(QueueSite):
    """One host with four GPUs, a cycle each ten seconds, and what waiting jobs hold noted after each."""

    def __init__(self, folder: Path, lines: str) -> None:
        super().__init__(folder, lines)
        self.hosts("h1", slots=8, gpus=4)
        self.held = HeldGpus()
        self.deadlocked: set[int] = set()

    def cycles(self, count: int) -> None:
        for _ in range(count):
            events = self.accept(self.schedule())
            self.deadlocked |= {event.key for event in events if isinstance(event, ev.JobDeadlocked)}
            self.held.note(self.cluster.jobs.rows.values(), self.now)
            self.now += 10

    @property
    def gpu_held_idle_seconds(self) -> float:
        return self.held.seconds(self.now)


def test_gangs_hold_no_gpu_idle(tmp_path: Path) -> None:
    site = Watched(tmp_path, "GANG = Y")
    one, two = site.bsub(**FOUR), site.bsub(**FOUR)
    site.cycles(6)
    assert set(site.cluster.started) == {one}
    site.finish(one)
    site.cycles(6)
    assert set(site.cluster.started) == {two}
    assert site.gpu_held_idle_seconds == 0.0
    assert not site.deadlocked


def test_piece_by_piece_both_hold_two_and_the_deadlock_is_told(tmp_path: Path) -> None:
    site = Watched(tmp_path, "GANG = N")
    one, two = site.bsub(**FOUR), site.bsub(**FOUR)
    site.cycles(6)
    rows = site.cluster.jobs.rows
    assert [sum(len(part.gpus) for part in rows[key].promised) for key in (one, two)] == [2, 2]
    assert site.deadlocked == {one, two}
    assert site.gpu_held_idle_seconds == pytest.approx(4 * 60.0), "four GPUs for a minute"
    killed = rows[one]
    site.apply(ev.JobFinished(at=site.now, key=one, state=JobState.EXIT))
    site.held.note([replace(killed, promised=())], site.now)
    site.cycles(3)
    assert set(site.cluster.started) == {two}
    total = site.gpu_held_idle_seconds
    site.cycles(3)
    assert site.gpu_held_idle_seconds == total, "what runs holds nothing idle"
