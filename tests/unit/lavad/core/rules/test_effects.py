"""What is due is read from a job's state alone."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.decide.control import control
from lavad.core.job.endpoint import Endpoint
from lavad.core.lang.asks import Kill, Select
from lavad.core.lang.states import JobState
from lavad.core.rules.effects import ReleasePart, effects_due, effects_of_end
from lavad.hosts.sessions import Session, Sessions
from tests.support.worlds.bench import Bench


def due(bench: Bench, key: int) -> list[str]:
    return [f"{type(effect).__name__}@{effect.host}" for effect in effects_due(bench.job(key))]


@pytest.mark.parametrize("state", ["PEND", "PSUSP"])
def test_nothing_is_due_for_what_waits(bench: Bench, state: str) -> None:
    assert due(bench, bench.placed(state)) == []


def test_a_job_is_started_once_it_is_dispatched(bench: Bench) -> None:
    key = bench.submit()
    bench.step()
    assert due(bench, key) == ["StartPart@h1"]
    bench.start(key)
    assert due(bench, key) == []


def test_a_gang_is_prepared_and_then_released(bench: Bench) -> None:
    key = bench.submit(slots=8)
    bench.step()
    assert due(bench, key) == ["StartPart@h1", "StartPart@h2"]
    bench.said("prepared", key, "h1", "root:1")
    assert due(bench, key) == ["StartPart@h2"]
    bench.said("prepared", key, "h2", "b:1")
    assert due(bench, key) == ["ReleasePart@h1", "ReleasePart@h2"]
    released = [effect for effect in effects_due(bench.job(key)) if isinstance(effect, ReleasePart)]
    assert [effect.root for effect in released] == [Endpoint("root", 1)] * 2
    bench.start(key, "h1")
    assert due(bench, key) == ["ReleasePart@h2"]


def test_stop_and_go_are_due_until_they_are_so(bench: Bench) -> None:
    key = bench.placed("USUSP")
    assert due(bench, key) == ["StopPart@h1"]
    bench.said("stopped", key, "h1", True)
    assert due(bench, key) == []
    bench.apply(ev.JobResumed(at=bench.now, key=key))
    assert due(bench, key) == ["StopPart@h1"]


def test_a_job_stopped_before_it_started_is_stopped_then(bench: Bench) -> None:
    key = bench.submit()
    bench.step()
    bench.apply(ev.JobSuspended(at=bench.now, key=key, state=JobState.USUSP))
    assert due(bench, key) == ["StartPart@h1"]
    bench.start(key)
    assert due(bench, key) == ["StopPart@h1"]


def test_a_signal_is_due_after_the_start(bench: Bench) -> None:
    key = bench.submit()
    bench.step()
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)])))
    assert due(bench, key) == ["StartPart@h1", "SignalPart@h1"]


@pytest.mark.parametrize("slots", [1, 8])
def test_what_is_taken_out_of_the_system_is_killed(bench: Bench, slots: int) -> None:
    """bkill -r does not wait for the host, and yet leaves nothing running there."""
    key = bench.placed(slots=slots)
    hosts = [part.host for part in bench.run(key).parts]
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)]), now=True))
    assert [effect.host for effect in effects_of_end(bench.finished(key))] == hosts


def test_nothing_is_due_for_what_ended_by_itself(bench: Bench) -> None:
    key = bench.placed()
    bench.ended(key, "h1")
    assert effects_of_end(bench.finished(key)) == []


def taken(session: Session) -> list[str]:
    return [type(effect).__name__ for effect in session.take_due()]


def test_a_stream_is_told_once_and_again_when_it_is_due_again(bench: Bench) -> None:
    """Stop, go on, stop: the second stop must go out too."""
    sessions = Sessions()
    session = Session("h1", 0)
    sessions.open(session)
    key = bench.placed()
    for stopped in (True, False, True, False):
        event = ev.JobSuspended if stopped else ev.JobResumed
        bench.apply(event(at=bench.now, key=key))
        for _ in range(2):
            sessions.offer([bench.job(key)])
        assert taken(session) == ["StopPart"]
        bench.said("stopped", key, "h1", stopped)
        sessions.offer([bench.job(key)])
        assert taken(session) == []


def test_a_new_stream_is_told_all_again(bench: Bench) -> None:
    sessions = Sessions()
    key = bench.submit()
    bench.step()
    for _ in range(2):
        session = Session("h1", 0)
        sessions.open(session)
        sessions.offer([bench.job(key)])
        assert taken(session) == ["StartPart"]


def test_a_finished_attempt_is_forgotten_and_what_is_left_of_it_killed(bench: Bench) -> None:
    sessions = Sessions()
    session = Session("h1", 0)
    sessions.open(session)
    key = bench.placed()
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)]), now=True))
    sessions.end_attempts([bench.finished(key)])
    assert taken(session) == ["KillPart"]
    sessions.end_attempts([bench.finished(key)])
    assert taken(session) == ["KillPart"]
