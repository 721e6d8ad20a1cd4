"""When a job is asked for checkpoints, and what a new generation leads to."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from agent.checkpoint import app
from agent.core import checkpoint
from agent.core.checkpoint import LAST_LOOK, SIGNAL, WAIT, Look
from agent.core.effects import Answer, KillAll, MakeCheckpoint, ReportCheckpoint, Send
from agent.starter.part.generations import MANIFEST
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
        if at == 1140:
            state, effects = checkpoint.found(float(at), state, 1, 5 << 20)
            assert effects == [ReportCheckpoint("u", 1, 110.0, 5 << 20)]
    assert asked == [1030, 1230], "none is asked for while another is under way"
    state = checkpoint.begin("u", -1, 0.0, 0.0, 1000.0)
    assert checkpoint.tick(1e9, state) == (state, [])


def test_a_request_is_answered_when_the_next_generation_is_complete() -> None:
    state = checkpoint.begin("u", 3, 0.0, 0.0, 0.0)
    state, effects = checkpoint.ask(1.0, state, 5, False)
    assert effects == [ASK]
    state, effects = checkpoint.ask(1.0, state, 5, False)
    assert effects == []
    state, effects = checkpoint.found(2.0, state, 3)
    assert effects == []
    state, effects = checkpoint.ask(2.0, state, 6, True)
    state, effects = checkpoint.found(2.0, state, 4)
    assert effects == [ReportCheckpoint("u", 4, 0.0), Answer("u", 5), Answer("u", 6), KillAll("u")]
    assert checkpoint.found(2.0, state, 4) == (state, [])


def test_a_checkpoint_that_does_not_come_has_failed() -> None:
    state, _ = checkpoint.ask(1.0, checkpoint.begin("u", -1, 0.0, 0.0, 0.0), 5, True)
    assert checkpoint.tick(WAIT, state) == (state, [])
    state, effects = checkpoint.tick(WAIT + 1, state)
    why = "no checkpoint was written within 600 seconds"
    assert effects == [Answer("u", 5, False, why), ReportCheckpoint("u", -1, WAIT, why=why)]
    _, effects = checkpoint.found(2.0, state, 1)
    assert effects == [ReportCheckpoint("u", 1)]


def test_a_job_that_does_not_catch_the_signal_is_told_of() -> None:
    state, _ = checkpoint.ask(0.0, checkpoint.begin("u", -1, 0.0, 0.0, 0.0), 5, True)
    state, effects = checkpoint.signal_ignored(state)
    assert effects == [Answer("u", 5, False, "no process of the job catches SIGUSR1")]
    assert checkpoint.signal_ignored(state) == (state, [])


def test_a_damaged_generation_does_not_count() -> None:
    state, _ = checkpoint.ask(10.0, checkpoint.begin("u", 3, 0.0, 0.0, 0.0), 5, True)
    state, effects = checkpoint.damaged(14.0, state, 4, "file a has 3 bytes")
    assert effects == [
        ReportCheckpoint("u", 4, 4.0, why="file a has 3 bytes"),
        Answer("u", 5, False, "checkpoint generation 4 is damaged: file a has 3 bytes"),
    ]
    assert (state.known, state.seen) == (3, 4)
    assert checkpoint.damaged(15.0, state, 4, "file a has 3 bytes") == (state, []), "it is told once"
    _, effects = checkpoint.found(16.0, state, 5, 1)
    assert effects == [ReportCheckpoint("u", 5, 0.0, 1)]


def test_a_start_that_left_an_older_generation_is_told_of() -> None:
    state, effects = checkpoint.listed(checkpoint.begin("u", 3, 0.0, 0.0, 0.0), 2)
    assert [(effect.generation, effect.newest) for effect in effects if isinstance(effect, ReportCheckpoint)] == [(3, 2)]
    _, effects = checkpoint.found(5.0, state, 3, 1)
    assert effects == [ReportCheckpoint("u", 3, 0.0, 1)], "the program writes that number again"
    state, effects = checkpoint.listed(checkpoint.begin("u", 3, 0.0, 0.0, 0.0), 4)
    assert (state.listed, effects) == (True, [])


def test_only_whole_generations_count(tmp_path: Path) -> None:
    def look() -> int:
        order = FindFolders("u", User("me", 1, 1, ()), str(tmp_path), "gen-", MANIFEST)
        return app.newest(find_folders(order).names)

    assert look() == -1
    for name in ("gen-1", "gen-2", "gen-10", "gen-11", "gen-12.tmp"):
        (tmp_path / name).mkdir()
    for name in ("gen-1", "gen-2", "gen-10", "gen-12.tmp"):
        (tmp_path / name / "MANIFEST").touch()
    assert look() == 10


def test_a_part_that_is_to_end_does_so_without_the_checkpoint_that_fails() -> None:
    begun = checkpoint.begin("u", 3, 0.0, 0.0, 0.0)
    state, effects = checkpoint.ask(1.0, begun, 5, True, 30.0)
    assert effects == [ASK]
    assert checkpoint.tick(30.9, state) == (state, [])
    assert checkpoint.tick(31.0, state)[1] == [Answer("u", 5), KillAll("u")]
    assert checkpoint.signal_ignored(state)[1] == [Answer("u", 5), KillAll("u")]
    assert checkpoint.found(9.0, state, 4)[1] == [ReportCheckpoint("u", 4, 8.0), Answer("u", 5), KillAll("u")]


def test_a_warning_asks_for_a_checkpoint_that_nobody_waits_for() -> None:
    state, effects = checkpoint.ask(1.0, checkpoint.begin("u", 3, 0.0, 0.0, 0.0), 0, False)
    assert effects == [ASK]
    assert checkpoint.ask(2.0, state, 0, False) == (state, [])
    assert checkpoint.found(3.0, state, 4)[1] == [ReportCheckpoint("u", 4, 2.0)]


def test_a_sites_program_makes_one_at_a_time_and_serves_whoever_asks_meanwhile() -> None:
    state = checkpoint.begin("u", 1, 100.0, 0.0, 0.0, "count", 5.0)
    state, effects = checkpoint.tick(100.0, state)
    assert effects == [MakeCheckpoint("u")]
    state, effects = checkpoint.ask(101.0, state, 1, True)
    assert (effects, checkpoint.waits_for_it(state)) == ([], True)
    state, effects = checkpoint.tick(300.0, state)
    assert effects == [], "its time is kept by who runs it, and no other is begun"
    state, effects = checkpoint.found(301.0, state, 2, 7)
    assert effects == [ReportCheckpoint("u", 2, 201.0, 7), Answer("u", 1), KillAll("u")]
    state, effects = checkpoint.ask(302.0, state, 2, True)
    assert effects == [MakeCheckpoint("u", True)]
    state, effects = checkpoint.not_made(303.0, state, "the disk is full")
    assert effects == [ReportCheckpoint("u", -1, 1.0, why="the disk is full"), Answer("u", 2, False, "the disk is full")]
    assert not checkpoint.waits_for_it(state)
    state, _ = checkpoint.ask(304.0, state, 3, True, 30.0)
    state, effects = checkpoint.tick(334.0, state)
    assert effects == [Answer("u", 3), KillAll("u")], "one that is to end by now ends without it"
    assert not checkpoint.waits_for_it(state), "what is being written is given up"


def test_the_site_says_how_long_a_program_has_for_its_checkpoint() -> None:
    state = checkpoint.begin("u", 1, 0.0, 0.0, 0.0, wait=5.0)
    state, _ = checkpoint.ask(0.0, state, 1, False)
    state, effects = checkpoint.tick(6.0, state)
    assert Answer("u", 1, False, "no checkpoint was written within 5 seconds") in effects


@pytest.mark.parametrize(
    ("status", "reason", "may"),
    [
        (0, "", False),
        (signal.SIGKILL, "", True),
        (1 << 8, "", True),
        (signal.SIGKILL, "TERM_PREEMPT", True),
        (signal.SIGKILL, "TERM_OWNER", False),
        (signal.SIGKILL, "TERM_FORCE_ADMIN", False),
        (signal.SIGKILL, "TERM_REQUEUE_OWNER", True),
    ],
)
def test_after_which_ends_it_matters_what_was_written_last(status: int, reason: str, may: bool) -> None:
    state = checkpoint.begin("u", -1, 0.0, 0.0, 0.0)
    assert checkpoint.may_go_on(state, status, reason) is may


def test_what_somebody_has_asked_for_matters_after_a_good_end() -> None:
    state, _ = checkpoint.ask(1.0, checkpoint.begin("u", -1, 0.0, 0.0, 0.0), 5, True)
    assert checkpoint.may_go_on(state, 0, "")


@pytest.mark.parametrize(
    ("passed", "under_way", "begun", "look"),
    [
        (0.0, False, False, Look.BEGIN),
        (0.0, True, False, Look.WAIT),
        (1.0, True, True, Look.WAIT),
        (1.0, False, True, Look.NONE),
        (LAST_LOOK, True, True, Look.NONE),
        (LAST_LOOK, False, False, Look.NONE),
    ],
)
def test_an_end_waits_for_one_look_that_began_after_it(passed: float, under_way: bool, begun: bool, look: Look) -> None:
    assert checkpoint.last_look(1000.0 + passed, 1000.0, under_way, begun) is look


def test_what_has_ended_is_not_killed() -> None:
    state, _ = checkpoint.ask(1.0, checkpoint.begin("u", -1, 0.0, 0.0, 0.0), 5, True)
    _, effects = checkpoint.after_end(checkpoint.found(2.0, state, 1))
    assert effects == [ReportCheckpoint("u", 1, 1.0), Answer("u", 5)]
