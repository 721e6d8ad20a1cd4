"""Who ends a part, and why: what is kept of it for the master, whatever else befalls the part meanwhile."""

from __future__ import annotations

import signal

import pytest
from msgspec.structs import replace

from agent.core import decide
from agent.core.effects import KillAll, Run, Send
from agent.core.part import Part, Request, RequestKind, Rules, Stage


def running(rules: Rules) -> Part:
    return decide.started(Part("u", 7, 1, rules), 100.0)


@pytest.mark.parametrize("status", [signal.SIGUSR2, signal.SIGKILL, signal.SIGXCPU, 0, 3 << 8])
def test_the_limit_for_which_it_was_ended_is_why_it_ended(status: int) -> None:
    for limit in ("TERM_RUNLIMIT", "TERM_MEMLIMIT"):
        part = replace(running(Rules(run=5, cpu=9, mem=1_000, enforce_memory=True)), limit=limit)
        assert decide.limit_of_end(part, status, 99.0, 2_000, True) == limit


@pytest.mark.parametrize(
    ("own", "first"), [(str(int(signal.SIGHUP)), Send("u", signal.SIGHUP)), ("stop.sh", Run("u", "stop.sh"))]
)
def test_a_job_that_its_queue_ends_in_another_way_is_being_killed_from_then_on(own: str, first: Send | Run) -> None:
    """The usual sequence follows three intervals later, and once, however often the user asks."""
    part, effects = decide.asked(running(Rules(terminate=own)), Request(1, RequestKind.KILL, reason="TERM_OWNER"), 200.0)
    assert first in effects
    assert (part.killing, part.reason, decide.wake_at(part)) == (True, "TERM_OWNER", 230.0)
    again, effects = decide.asked(part, Request(2, RequestKind.KILL, reason="TERM_ADMIN"), 210.0)
    assert first not in effects
    assert (again.reason, decide.wake_at(again)) == ("TERM_OWNER", 230.0)


def test_a_part_that_does_not_run_yet_is_ended_at_once() -> None:
    part, effects = decide.asked(Part("u", 7, 1, Rules(), Stage.PREPARED), Request(1, RequestKind.KILL, reason="TERM_OWNER"), 5.0)
    assert KillAll("u") in effects
    assert (part.killing, part.reason, decide.wake_at(part)) == (True, "TERM_OWNER", None)


def test_sigkill_ends_a_kill_sequence_that_is_under_way() -> None:
    part, _ = decide.asked(running(Rules()), Request(1, RequestKind.KILL, reason="TERM_OWNER"), 200.0)
    part, effects = decide.asked(part, Request(2, RequestKind.SIGNAL, signal=signal.SIGKILL, reason="TERM_ADMIN"), 201.0)
    assert KillAll("u") in effects
    assert (part.killing, part.reason, decide.wake_at(part)) == (True, "TERM_OWNER", None)


def test_a_job_that_was_warned_of_its_end_is_not_warned_again_at_its_run_limit() -> None:
    warning = Send("u", signal.SIGURG)
    rules = Rules(run=60, warn=f"{signal.SIGURG:d}", warn_before=20)
    part, effects = decide.asked(running(rules), Request(1, RequestKind.KILL, reason="TERM_OWNER", notice=120), 130.0)
    assert warning in effects
    assert decide.wake_at(part) == 150.0
    part, effects = decide.tick(part, 145.0)
    assert warning not in effects


def test_what_exceeds_a_limit_while_it_is_killed_for_one_stays_killed_for_the_first() -> None:
    part, _ = decide.used(running(Rules(mem=1_000, enforce_memory=True, cpu=9)), 200.0, 1.0, 2_000, 0, 1)
    assert (part.limit, part.killing) == ("TERM_MEMLIMIT", True)
    assert decide.used(part, 201.0, 99.0, 2_000, 0, 1) == (part, [])
    assert decide.used(running(Rules(cpu=9)), 200.0, 9.0, 0, 0, 1)[1] == []
