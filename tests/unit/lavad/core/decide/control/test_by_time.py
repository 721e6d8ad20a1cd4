"""What time alone brings about: bsub -mig, bsub -t."""

from __future__ import annotations

from collections.abc import ValuesView
from typing import Any

import pytest

from config.model.cluster import HostConfig
from config.model.queue import ApplicationConfig, QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.job_rows import JobRows
from lavad.core.decide.control.by_time import deadlines, migrate_after, migrations
from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import SignalKind
from tests.support.worlds.bench import Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmod


@pytest.mark.parametrize(("own", "queue", "wanted"), [(300, None, 300), (300, 60, 300), (0, 60, 0), (-1, 60, 60)])
def test_the_jobs_own_threshold_goes_before_the_queues(bench: Bench, own: int, queue: int | None, wanted: int) -> None:
    bench.queues(QueueConfig(name="normal", mig=queue))
    key = bench.placed("SSUSP", rerunnable=True, migrate_after=own)
    since = bench.job(key).since
    assert not wanted or migrations(bench.cluster, since + wanted - 1).events == []
    (requested,) = migrations(bench.cluster, since + wanted).events
    assert isinstance(requested, ev.SignalRequested)
    assert requested.pending.kind is SignalKind.MIGRATE


@pytest.mark.parametrize(
    ("state", "fields", "app", "host", "wanted"),
    [
        ("SSUSP", {"rerunnable": True}, None, None, 60),
        ("SSUSP", {"rerunnable": True}, 20, None, 20),  # the profile's goes before the queue's
        ("SSUSP", {"rerunnable": True, "migrate_after": 90}, 20, None, 90),
        ("SSUSP", {"rerunnable": True, "migrate_after": 90}, None, 30, 30),  # the shorter one of its host before all
        ("SSUSP", {"rerunnable": True}, None, 300, 60),
        ("SSUSP", {}, None, None, None),
        ("USUSP", {"rerunnable": True}, None, None, None),
        ("RUN", {"rerunnable": True}, None, None, None),
    ],
)
def test_only_what_the_system_has_suspended_and_may_run_again_migrates(
    bench: Bench, state: str, fields: dict[str, Any], app: int | None, host: int | None, wanted: int | None
) -> None:
    bench.configure(
        queues=(QueueConfig(name="normal", mig=60),),
        apps=(ApplicationConfig("sim", mig=app),),
        hosts=tuple(HostConfig(name=name, mig=host) for name in ("h1", "h2", "h3")),
    )
    key = bench.placed(state, app="sim", **fields)
    assert migrate_after(bench.cluster, bench.job(key)) == wanted


def test_a_job_migrates_once_and_keeps_its_checkpoint(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", mig=60))
    key = bench.placed("SSUSP", rerunnable=True)
    events = migrations(bench.cluster, bench.now + 60).events
    bench.apply(*events)
    assert [pending.kill_after for pending in bench.run(key).pending_signals] == [True]
    assert migrations(bench.cluster, bench.now + 600).events == []


def test_it_is_given_in_minutes_and_taken_back(bench: Bench) -> None:
    key = bench.bsub(mig="5")["job"]
    assert bench.cluster.spec_of(key).migrate_after == 300
    bmod(bench, key, mign=True)
    assert bench.cluster.spec_of(key).migrate_after == -1


@pytest.mark.parametrize("text", ["", "-1", "x", "1:00", "9" * 20, "٣"])
def test_what_is_no_threshold(bench: Bench, text: str) -> None:
    with pytest.raises(Refused, match="Bad migration threshold"):
        bench.bsub(mig=text)


def test_a_deadline_ends_what_waits_and_kills_what_runs(bench: Bench) -> None:
    at = bench.now + 60
    running = bench.placed("RUN", deadline=at)
    waiting, array = bench.submit(deadline=at), bench.submit(array="1-3", deadline=at)
    bench.submit()
    assert deadlines(bench.cluster, at - 1).events == []
    events = deadlines(bench.cluster, at).events
    assert {(type(event).__name__, event.key) for event in events if isinstance(event, ev.JobEvent)} == {
        ("SignalRequested", running),
        ("JobFinished", waiting),
        ("ElementsKilled", array),
    }
    bench.apply(*events)
    assert deadlines(bench.cluster, at + 1).events == [], "a kill is asked for once"


class Counted(JobRows):
    """Counts how often all of them are looked through."""

    looks = 0

    def values(self) -> ValuesView[Job]:
        Counted.looks += 1
        return super().values()


def test_jobs_are_looked_through_only_while_one_lives_whose_deadline_has_passed(bench: Bench) -> None:
    bench.cluster.jobs.rows = Counted()
    at = bench.now + 60
    bench.submit(deadline=at)
    bench.submit()
    assert deadlines(bench.cluster, at - 1).events == []
    assert Counted.looks == 0
    bench.apply(*deadlines(bench.cluster, at).events)
    assert (len(bench.cluster.jobs.rows), Counted.looks) == (1, 1)
    assert any(spec.deadline for spec in bench.cluster.specs.rows.values()), "kept for the next job that has it"
    assert deadlines(bench.cluster, at + 1).events == []
    assert Counted.looks == 1
