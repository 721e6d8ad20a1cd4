"""bkill -s STOP, CONT and TSTP, which are bstop and bresume; and bstop by an administrator of what its owner has stopped."""

from __future__ import annotations

import pytest

from lavad.core.decide.control import control
from lavad.core.lang.asks import Caller, Kill, Resume, Select, Stop
from lavad.core.lang.states import JobState
from lavad.core.rules.effects import SignalPart, effects_due
from tests.support.worlds.bench import ADMIN, ROOT, Bench


def ids(*texts: object) -> Select:
    return Select(ids=[str(text) for text in texts])


@pytest.mark.parametrize(
    ("state", "stopped", "resumed"),
    [("PEND", "PSUSP", "PEND"), ("PSUSP", "PSUSP", "PEND"), ("RUN", "USUSP", "RUN"), ("USUSP", "USUSP", "RUN")],
)
def test_bkill_s_STOP_and_CONT_are_bstop_and_bresume(bench: Bench, state: str, stopped: str, resumed: str) -> None:
    key = bench.placed(state)
    assert bench.asked(control.kill, Kill(jobs=ids(key), signal=19, reason="later")) == [(str(key), "")]
    assert bench.job(key).state.name == stopped
    assert bench.asked(control.kill, Kill(jobs=ids(key), signal=18)) == [(str(key), "")]
    assert bench.job(key).state.name == resumed
    assert bench.job(key).run is None or not bench.run(key).pending_signals


def test_bkill_s_CONT_needs_the_rights_of_bresume(bench: Bench) -> None:
    key = bench.placed()
    bench.asked(control.kill, Kill(jobs=ids(key), signal=19), ADMIN)
    assert bench.asked(control.kill, Kill(jobs=ids(key), signal=18)) == [(str(key), "User permission denied")]
    assert bench.job(key).state is JobState.USUSP


def test_bkill_s_CONT_of_a_job_that_stopped_itself_is_a_signal(bench: Bench) -> None:
    key = bench.placed()
    bench.asked(control.kill, Kill(jobs=ids(key), signal=18))
    assert [pending.signal for pending in bench.run(key).pending_signals] == [18]


@pytest.mark.parametrize(("slots", "state"), [(1, "RUN"), (2, "USUSP")])
def test_bkill_s_TSTP_is_bstop_for_a_parallel_job(bench: Bench, slots: int, state: str) -> None:
    key = bench.placed(slots=slots, max_slots=slots)
    bench.asked(control.kill, Kill(jobs=ids(key), signal=20))
    assert bench.job(key).state.name == state
    assert [pending.signal for pending in bench.run(key).pending_signals] == ([20] if state == "RUN" else [])


def test_bkill_s_STOP_and_CONT_of_waiting_elements(bench: Bench) -> None:
    job = int(bench.bsub(J="a[1-4]")["job"])
    assert bench.asked(control.kill, Kill(jobs=ids(f"{job}[2-3]"), signal=19)) == [(f"{job}[{n}]", "") for n in (2, 3)]
    assert list(bench.cluster.arrays.rows[job].held) == [2, 3]
    bench.asked(control.kill, Kill(jobs=ids(f"{job}[3]"), signal=18))
    assert list(bench.cluster.arrays.rows[job].held) == [2]


@pytest.mark.parametrize("caller", [ADMIN, ROOT])
@pytest.mark.parametrize("state", ["PEND", "RUN"])
def test_an_administrator_stops_what_its_owner_has_stopped(bench: Bench, state: str, caller: Caller) -> None:
    key = bench.placed(state)
    bench.asked(control.stop, Stop(jobs=ids(key)))
    since, stopped = bench.job(key).since, bench.job(key).state
    bench.now += 60
    bench.asked(control.stop, Stop(jobs=ids(key)), caller)
    assert (bench.job(key).stopper, bench.job(key).since, bench.job(key).state) == (caller.user, since, stopped)
    assert bench.asked(control.resume, Resume(jobs=ids(key))) == [(str(key), "User permission denied")]
    bench.asked(control.stop, Stop(jobs=ids(key)))
    assert bench.job(key).stopper == caller.user
    assert bench.asked(control.resume, Resume(jobs=ids(key)), ADMIN) == [(str(key), "")]


def test_an_administrator_stops_elements_that_their_owner_has_stopped(bench: Bench) -> None:
    job = int(bench.bsub(J="a[1-4]")["job"])
    bench.asked(control.stop, Stop(jobs=ids(f"{job}[2-3]")))
    bench.asked(control.stop, Stop(jobs=ids(f"{job}[2-3]")), ADMIN)
    denied = [(f"{job}[{n}]", "User permission denied") for n in (2, 3)]
    assert bench.asked(control.resume, Resume(jobs=ids(f"{job}[2-3]"))) == denied
    for elements in ("[4]", "[2-3]"):
        bench.asked(control.stop, Stop(jobs=ids(f"{job}{elements}")))
        assert bench.asked(control.resume, Resume(jobs=ids(f"{job}[2-3]"))) == denied, "who stops more, or these, gets none"
    bench.asked(control.resume, Resume(jobs=ids(f"{job}")), ADMIN)
    bench.asked(control.stop, Stop(jobs=ids(f"{job}[4]")))
    assert bench.asked(control.resume, Resume(jobs=ids(f"{job}[4]"))) == [(f"{job}[4]", "")]


@pytest.mark.parametrize("signal", [18, 19])
def test_bkill_r_never_stops_or_resumes(bench: Bench, signal: int) -> None:
    job, key = int(bench.bsub(J="a[1-4]")["job"]), bench.placed("PEND")
    asked = Kill(jobs=ids(key, f"{job}[2]"), signal=signal, now=True)
    assert {why for _, why in bench.asked(control.kill, asked)} == {"Job has not started yet"}
    assert not bench.cluster.arrays.rows[job].held


def test_a_signal_that_ends_a_job_is_no_kill(bench: Bench) -> None:
    """The job may take it as it likes: what it ends with says what becomes of it, and nothing else is sent."""
    key = bench.placed(requeue="3")
    bench.asked(control.kill, Kill(jobs=ids(key), signal=15))
    assert [effect.pending.signal for effect in effects_due(bench.job(key)) if isinstance(effect, SignalPart)] == [15]
    assert bench.ended(key, "h1", status=3 << 8) == ["JobRequeued"]
