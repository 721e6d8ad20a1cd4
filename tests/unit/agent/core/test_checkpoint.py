"""When a job is asked for checkpoints, and what a new generation leads to."""

from __future__ import annotations

from pathlib import Path

from agent.checkpoint import app
from agent.core import checkpoint
from agent.core.checkpoint import SIGNAL, WAIT
from agent.core.effects import Answer, KillAll, ReportCheckpoint, Send
from agent.starter.part.user_files import find_folders
from agent.starter.protocol.orders import FindFolders
from agent.starter.protocol.part import User

ASK = Send("u", SIGNAL, True)


def test_periodic_checkpoints_are_asked_for_after_initial_and_period() -> None:
    state = checkpoint.begin("u", -1, 100.0, 30.0, 1000.0)
    asked = []
    for at in range(1000, 1300):
        state, effects = checkpoint.tick(float(at), state)
        asked += [at] if effects == [ASK] else []
    assert asked == [1030, 1130, 1230]
    state = checkpoint.begin("u", -1, 0.0, 0.0, 1000.0)
    assert checkpoint.tick(1e9, state) == (state, [])


def test_a_request_is_answered_when_the_next_generation_is_complete() -> None:
    state = checkpoint.begin("u", 3, 0.0, 0.0, 0.0)
    state, effects = checkpoint.ask(1.0, state, 5, False)
    assert effects == [ASK]
    state, effects = checkpoint.ask(1.0, state, 5, False)
    assert effects == []
    state, effects = checkpoint.found(state, 3)
    assert effects == []
    state, effects = checkpoint.ask(2.0, state, 6, True)
    state, effects = checkpoint.found(state, 4)
    assert effects == [ReportCheckpoint("u", 4), Answer("u", 5), Answer("u", 6), KillAll("u")]
    assert checkpoint.found(state, 4) == (state, [])


def test_a_checkpoint_that_does_not_come_has_failed() -> None:
    state, _ = checkpoint.ask(0.0, checkpoint.begin("u", -1, 0.0, 0.0, 0.0), 5, True)
    assert checkpoint.tick(WAIT - 1, state) == (state, [])
    state, effects = checkpoint.tick(WAIT, state)
    assert effects == [Answer("u", 5, False, "no checkpoint was written within 600 seconds")]
    _, effects = checkpoint.found(state, 1)
    assert effects == [ReportCheckpoint("u", 1)]


def test_a_job_that_does_not_catch_the_signal_is_told_of() -> None:
    state, _ = checkpoint.ask(0.0, checkpoint.begin("u", -1, 0.0, 0.0, 0.0), 5, True)
    state, effects = checkpoint.signal_ignored(state)
    assert effects == [Answer("u", 5, False, "no process of the job catches SIGUSR1")]
    assert checkpoint.signal_ignored(state) == (state, [])


def test_only_whole_generations_count(tmp_path: Path) -> None:
    def look() -> int:
        order = FindFolders("u", User("me", 1, 1, ()), str(tmp_path), "gen-", app.MANIFEST)
        return app.newest(find_folders(order).names)

    assert look() == -1
    for name in ("gen-1", "gen-2", "gen-10", "gen-11", "gen-12.tmp"):
        (tmp_path / name).mkdir()
    for name in ("gen-1", "gen-2", "gen-10", "gen-12.tmp"):
        (tmp_path / name / "MANIFEST").touch()
    assert look() == 10
