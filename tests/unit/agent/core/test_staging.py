"""When a generation is copied to the shared folder: one at a time, the newest, again after a failure, before an end is told."""

from __future__ import annotations

import signal

import pytest

from agent.core import staging
from agent.core.effects import ReportStaged, StageGeneration
from agent.core.staging import FIRST_RETRY, RETRY, Staging


def test_the_newest_is_copied_and_nothing_twice() -> None:
    state = Staging("u")
    assert staging.look(1.0, state, -1) == (state, [])
    state, effects = staging.look(1.0, state, 3)
    assert effects == [StageGeneration("u", 3)]
    assert staging.look(2.0, state, 5) == (state, []), "one is under way"
    state, effects = staging.done(4.0, state, 100, "")
    assert effects == [ReportStaged("u", 3, 3.0, 100)]
    assert staging.look(4.0, state, 3) == (state, [])
    state, effects = staging.look(4.0, state, 7)
    assert effects == [StageGeneration("u", 7)], "those between are passed over"


def test_a_failure_is_told_once_and_tried_again() -> None:
    state, _ = staging.look(1.0, Staging("u"), 3)
    state, effects = staging.done(2.0, state, 0, "full")
    assert effects == [ReportStaged("u", 3, 1.0, why="full")]
    assert staging.look(2.0, state, 4) == (state, [])
    state, effects = staging.look(2.0 + RETRY, state, 4)
    assert effects == [StageGeneration("u", 4)]
    state, effects = staging.done(100.0, state, 0, "full")
    assert effects == []
    state, _ = staging.look(1000.0, state, 4)
    state, effects = staging.done(1001.0, state, 5, "")
    assert effects == [ReportStaged("u", 4, 1.0, 5)]
    state, _ = staging.look(1001.0, state, 5)
    assert staging.done(1002.0, state, 0, "full")[1], "it is news again"


def test_the_end_tries_once_more() -> None:
    state, _ = staging.look(1.0, Staging("u"), 3)
    state, _ = staging.done(2.0, state, 0, "full")
    state = staging.part_ended(state, 3.0)
    state, effects = staging.look(3.0, state, 3)
    assert effects == [StageGeneration("u", 3)]
    state, _ = staging.done(4.0, state, 0, "full")
    state = staging.part_ended(state, 4.0)
    assert state.ended == 3.0
    assert staging.look(4.0, state, 3)[1] == []


def test_a_copy_from_before_the_agent_started() -> None:
    state = staging.found(5.0, Staging("u"), 2)
    assert staging.look(5.0, state, 2) == (state, [])
    assert staging.done(9.0, state, 8, "")[1] == [ReportStaged("u", 2, 4.0, 8)]


@pytest.mark.parametrize(
    ("status", "reason", "waits"),
    [
        (0, "", False),
        (signal.SIGKILL, "", True),
        (1 << 8, "", True),
        (signal.SIGKILL, "TERM_CHKPNT", True),
        (signal.SIGKILL, "TERM_PREEMPT", True),
        (signal.SIGKILL, "TERM_OWNER", False),
        (signal.SIGKILL, "TERM_FORCE_ADMIN", False),
        (signal.SIGKILL, "TERM_REQUEUE_OWNER", False),
    ],
)
def test_which_ends_wait_for_the_copy(status: int, reason: str, waits: bool) -> None:
    assert staging.is_waited_for(status, reason) is waits


def test_a_copy_that_is_given_up_is_not_begun_again() -> None:
    state = staging.given_up(Staging("u"))
    assert not staging.is_due(1e9, state, 3)
    assert staging.is_due(1e9, Staging("u"), 3)
    assert not staging.is_due(1e9, Staging("u", staged=3), 3)


def test_copies_go_to_the_host_that_was_named_last() -> None:
    state = Staging("u", away=True)
    assert staging.look(1.0, state, 3) == (state, []), "none is named yet"
    state = staging.to_host(state, "h2")
    assert staging.to_host(state, "h2") is state
    state, effects = staging.look(1.0, state, 3)
    assert effects == [StageGeneration("u", 3)]
    state, effects = staging.done(2.0, state, 100, "")
    assert effects == [ReportStaged("u", 3, 1.0, 100, host="h2")]
    assert staging.look(3.0, state, 3)[1] == []
    state, effects = staging.look(3.0, staging.to_host(state, "h3"), 3)
    assert effects == [StageGeneration("u", 3)], "the other one has none"
    state = staging.to_host(state, "h2")
    state, effects = staging.done(4.0, state, 100, "")
    assert effects == [ReportStaged("u", 3, 1.0, 100, host="h3")]
    assert staging.look(4.0, state, 3)[1] == [StageGeneration("u", 3)]


def test_a_host_is_blamed_for_what_is_its_fault_alone_and_given_time() -> None:
    state, _ = staging.look(1.0, Staging("u", away=True, holder="h2"), 3)
    broken, effects = staging.done(2.0, state, 0, "refused", by_host=True)
    assert effects == [ReportStaged("u", 3, 1.0, why="refused", host="h2")]
    assert staging.look(3.0, staging.to_host(broken, "h3"), 3)[1] == [], "no host is tried at once"
    assert staging.look(2.0 + FIRST_RETRY, staging.to_host(broken, "h3"), 3)[1] == [StageGeneration("u", 3)]
    assert staging.done(2.0, state, 0, "damaged")[1] == [ReportStaged("u", 3, 1.0, why="damaged")]
    pauses = []
    for _ in range(7):
        pauses.append(broken.retry - 2.0)
        broken, _ = staging.done(2.0, staging.look(broken.retry, broken, 3)[0], 0, "full", by_host=True)
    assert pauses == [FIRST_RETRY, *(RETRY * times for times in (1, 2, 4, 8, 16, 16))], "hosts may be full for long"


def test_a_copy_of_before_the_agent_started_is_made_again() -> None:
    state = staging.found(1.0, Staging("u", away=True), 3)
    state, effects = staging.done(2.0, staging.to_host(state, "h2"), 100, "")
    assert effects == []
    assert staging.look(2.0, state, 3)[1] == [StageGeneration("u", 3)]


SEVERAL = Staging("u", named=True)


def test_of_a_job_on_several_hosts_the_master_says_what_is_copied() -> None:
    assert staging.look(1.0, SEVERAL, 5) == (SEVERAL, []), "it has named none"
    state, effects = staging.look(1.0, staging.name(SEVERAL, 3), 5)
    assert effects == [StageGeneration("u", 3)]
    assert staging.name(state, 3) is state
    state = staging.name(state, 5)
    assert staging.is_given_up(state)
    state, effects = staging.done(2.0, state, 0, "the copy was ended")
    assert effects == []
    state, effects = staging.look(2.0, state, 5)
    assert effects == [StageGeneration("u", 5)]
    assert staging.done(3.0, state, 100, "")[1] == [ReportStaged("u", 5, 1.0, 100)]


def test_a_failure_is_told_of_each_generation_that_was_named() -> None:
    state, _ = staging.look(1.0, staging.name(SEVERAL, 3), 3)
    state, effects = staging.done(2.0, state, 0, "full")
    assert effects == [ReportStaged("u", 3, 1.0, why="full")]
    state, effects = staging.look(2.0, staging.name(state, 4), 4)
    assert effects == [StageGeneration("u", 4)], "another one is tried at once"
    assert staging.done(3.0, state, 0, "full")[1] == [ReportStaged("u", 4, 1.0, why="full")]


def test_hosts_but_the_first_tell_nothing_and_try_again() -> None:
    state, _ = staging.look(1.0, staging.name(Staging("u", named=True, first=False), 3), -1)
    assert staging.done(2.0, state, 100, "")[1] == []
    state, effects = staging.done(2.0, state, 0, "full")
    assert effects == []
    assert staging.look(2.0, state, -1)[1] == []
    assert staging.look(2.0 + RETRY, state, -1)[1] == [StageGeneration("u", 3)]


def test_what_is_given_up_stays_so() -> None:
    state = staging.name(staging.given_up(SEVERAL), 3)
    assert staging.look(1e9, state, 3)[1] == []
    assert not staging.awaits(1e9, state, 3)


def test_what_an_end_waits_for() -> None:
    assert not staging.awaits(1.0, Staging("u"), 5), "a job on one host is told by its copy alone"
    assert staging.awaits(1.0, SEVERAL, 5)
    assert not staging.awaits(1.0, SEVERAL, -1)
    assert staging.awaits(1.0, Staging("u", named=True, first=False), -1)
    assert staging.is_waited_for(0, "", first=False)
    assert not staging.is_waited_for(9, "TERM_OWNER", first=False)
