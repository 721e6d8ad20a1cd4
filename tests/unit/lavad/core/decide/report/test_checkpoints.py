"""What reports about checkpoints change: generations, failures, lost work, and the period of ``-k "DIR auto"``."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.decide.control import control
from lavad.core.decide.control.checkpoint import checkpoint
from lavad.core.lang.asks import Checkpoint, Migrate, Select
from lavad.core.lang.states import HostState
from lavad.core.rules.checkpoint_interval import DAY, FIRST_COST, PRIOR, best_interval
from lavad.core.rules.effects import ChangeText, effects_due
from lavad.queries.facts import checkpoints as told
from tests.support.worlds.bench import Bench


def running(bench: Bench, k: str = "/ckpt") -> int:
    return bench.started(k=k)


def test_generations_failures_and_lost_work_are_known(bench: Bench) -> None:
    key = running(bench)
    bench.now += 100
    assert bench.said("checkpointed", key, "h1", 1, 5.0, 3 << 20, "app") == ["CheckpointMade"]
    bench.now += 50
    assert bench.said("checkpointed", key, "h1", 2, 7.0, 0, "app", "file a is gone") == ["CheckpointFailed"]
    found = bench.checkpoints(key)
    assert [(one.number, one.seconds, one.size, one.method) for one in found.generations] == [(1, 5.0, 3 << 20, "app")]
    assert (found.cost, found.failed, found.why, bench.job(key).checkpoint) == (12.0, 1, "file a is gone", 1)
    bench.now += 10
    bench.ended(key, "h1", 0, lost="gone with its host")
    assert (bench.checkpoints(key).lost, bench.checkpoints(key).restarts) == (60.0, 1)
    text = told.section(bench.checkpoints(key))
    assert "3.0 Mbytes" in text or "3 Mbytes" in text, text
    assert "Failed: 1" in text
    assert "Work lost in 1 restarts: 60 seconds" in text


def test_which_generations_are_staged_is_known_and_told_once(bench: Bench) -> None:
    key = running(bench)
    for generation in (1, 2):
        bench.said("checkpointed", key, "h1", generation, 0.0, 8 << 20)
    assert "STAGED" not in told.section(bench.checkpoints(key))
    assert bench.said("checkpointed", key, "h1", 2, 3.0, 0, "", "no space", None, True) == ["CheckpointStaged"]
    assert " Not staged: no space\n" in told.section(bench.checkpoints(key))
    assert bench.said("checkpointed", key, "h1", 2, 4.0, 1 << 20, "", "", None, True) == ["CheckpointStaged"]
    assert bench.said("checkpointed", key, "h1", 2, 0.0, 1 << 20, "", "", None, True) == [], "a copy is found again at each start"
    found = bench.checkpoints(key)
    assert ([one.staged for one in found.generations], found.not_staged, found.failed) == ([0, 1 << 20], "", 0)
    rows = told.section(found).splitlines()
    assert rows[2].split() == ["GENERATION", "TIME", "SECONDS", "SIZE", "STAGED", "METHOD"]
    assert rows[4].endswith(" 8 Mbytes  1 Mbytes  -")
    assert len(rows[2]) - len("METHOD") == rows[4].rindex("-"), "columns stand below their names"
    assert bench.run(key).checkpoint == 2
    bench.said("checkpointed", key, "h1", 3)
    assert bench.checkpoints(key).generations[-1].staged == 0
    bench.said("checkpointed", key, "h1", 3, 4.0, 0, "", "", None, True)
    assert bench.checkpoints(key).generations[-1].staged, "also one of empty files is there"


def test_a_start_that_finds_its_generation_damaged_goes_on_from_the_one_before(bench: Bench) -> None:
    key = running(bench)
    for generation in (1, 2):
        bench.said("checkpointed", key, "h1", generation)
    bench.ended(key, "h1", 0, lost="gone with its host")
    bench.step()
    bench.start(key)
    assert bench.run(key).checkpoint == 2
    assert bench.said("checkpointed", key, "h1", 2, 0.0, 0, "app", "damaged", 1) == ["CheckpointFailed"]
    assert (bench.run(key).checkpoint, bench.job(key).checkpoint) == (1, 1)
    assert bench.said("checkpointed", key, "h1", 2) == ["CheckpointMade"], "the program writes that number again"
    bench.said("checkpointed", key, "h1", 3, 0.0, 0, "app", "damaged", 9)
    assert bench.job(key).checkpoint == 2, "no report makes a generation known that never was whole"


def test_the_period_of_auto_follows_cost_and_failures(bench: Bench) -> None:
    key = running(bench, "/ckpt auto")
    first = bench.checkpoints(key)
    assert first.period == pytest.approx(best_interval(FIRST_COST, PRIOR), rel=0.1)
    (effect,) = [one for one in effects_due(bench.job(key)) if isinstance(one, ChangeText)]
    assert dict(effect.values) == {"checkpoint_period": str(first.period)}
    assert bench.said("checkpointed", key, "h1", 1, 31.0) == ["CheckpointMade"], "a like cost changes nothing"
    assert bench.said("checkpointed", key, "h1", 2, 300.0) == ["CheckpointMade", "CheckpointPeriodSet"]
    assert bench.checkpoints(key).next_cost == pytest.approx(165.5)
    assert bench.checkpoints(key).period > 2 * first.period
    assert f"Period: {bench.checkpoints(key).period} seconds: a checkpoint takes 165.5 seconds" in told.section(
        bench.checkpoints(key)
    )


@pytest.mark.parametrize("k", ["/ckpt 60", "/ckpt auto"])
def test_a_period_that_a_user_sets_while_the_job_runs_stays(bench: Bench, k: str) -> None:
    """A new stream of the host has it told again, as its agent may have been started again; auto does not change it."""
    key = running(bench, k)
    bench.asked(checkpoint, Checkpoint(jobs=Select(ids=[str(key)]), period=5))
    (effect,) = [one for one in effects_due(bench.job(key)) if isinstance(one, ChangeText)]
    assert dict(effect.values) == {"checkpoint_period": "300"}
    assert bench.said("checkpointed", key, "h1", 1, 300.0) == ["CheckpointMade"]
    assert "Period" not in told.section(bench.checkpoints(key))


def test_hosts_that_fail_make_the_period_shorter(bench: Bench) -> None:
    for _ in range(10):
        bench.now += DAY
        bench.apply(ev.HostDown(at=bench.now, host="h1"))
        bench.apply(ev.HostUp(at=bench.now, host="h1"))
    host = bench.cluster.hosts.rows["h1"]
    assert (host.failures, host.state) == (10, HostState.OK)
    assert host.up == pytest.approx(10 * DAY, rel=0.01)
    bench.now += DAY
    bench.apply(ev.HostUp(at=bench.now, host="h1"))
    assert bench.cluster.hosts.rows["h1"].up == pytest.approx(11 * DAY, rel=0.01), "its agent has connected again"
    bench.apply(ev.HostSwitched(at=bench.now, host="h1", closed=True, by="root"))
    bench.apply(ev.HostDown(at=bench.now, host="h1"))
    assert bench.cluster.hosts.rows["h1"].failures == 10, "it was closed for this"
    bench.apply(ev.HostUp(at=bench.now, host="h1"))
    bench.apply(ev.HostSwitched(at=bench.now, host="h1", closed=False, by="root"))
    key = running(bench, "/ckpt auto")
    assert bench.checkpoints(key).period < 0.6 * best_interval(FIRST_COST, PRIOR)


def test_a_migration_whose_checkpoint_fails_is_over_and_the_job_runs_on(bench: Bench) -> None:
    key = running(bench)
    bench.asked(control.migrate, Migrate(jobs=Select(ids=[str(key)])))
    (wish,) = bench.run(key).pending_signals
    assert wish.notice == 0, "it has as long as a checkpoint may take"
    assert bench.said("granted", key, "h1", wish.number, True, "") == []
    assert bench.run(key).is_ending
    assert bench.said("granted", key, "h1", wish.number, False, "no process of the job catches SIGUSR1") == ["SignalHandled"]
    assert not bench.run(key).is_ending, "it may be migrated again"
