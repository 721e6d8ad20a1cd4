"""By what a part is stopped and resumed: usual signals, those of the site, signals and commands of its queue."""

from __future__ import annotations

import signal

import pytest
from msgspec.structs import replace

from agent.core import decide
from agent.core.effects import KillAll, ReportStopped, Run
from agent.core.part import Request, RequestKind, Rules
from tests.unit.agent.core.test_decide import running, sent


def test_a_parallel_job_is_stopped_by_tstp() -> None:
    """And by SIGSTOP a moment later, as the kernel drops SIGTSTP for sessions without a terminal; unless it goes on first."""
    stopped, effects = decide.stop(running(Rules(soft_stop=True)), True, 130.0)
    assert sent(effects) == [signal.SIGTSTP]
    assert sent(decide.tick(stopped, 130.0 + decide.SOFT_STOP)[1]) == [signal.SIGSTOP]
    going_on, effects = decide.stop(stopped, False, 130.5)
    assert sent(effects) == [signal.SIGCONT]
    assert sent(decide.tick(going_on, 140.0)[1]) == []


@pytest.mark.parametrize("soft", [False, True])
def test_a_site_says_by_which_signal_jobs_are_stopped(soft: bool) -> None:
    """LSB_SIGSTOP. KILL ends them, by the usual sequence; a queue's own JOB_CONTROLS go before."""
    stopped, effects = decide.stop(running(Rules(soft_stop=soft, stop_signal=signal.SIGUSR1)), True, 130.0)
    assert (sent(effects), stopped.stopped, stopped.steps) == ([signal.SIGUSR1], True, ())
    assert sent(decide.stop(stopped, False, 131.0)[1]) == [signal.SIGCONT]
    ending, effects = decide.stop(running(Rules(soft_stop=soft, stop_signal=signal.SIGKILL)), True, 130.0)
    assert sent(effects) == [signal.SIGCONT, signal.SIGINT]
    assert ReportStopped("u", True) in effects
    assert sent(decide.tick(ending, 140.0)[1]) == [signal.SIGTERM]
    assert KillAll("u") in decide.tick(ending, 150.0)[1]
    assert sent(decide.stop(running(Rules(suspend="20", stop_signal=9)), True, 130.0)[1]) == [20]


def test_a_queues_own_signals_stop_resume_and_end_a_job() -> None:
    part = running(Rules(suspend="20", resume="18", terminate="15", interval=5.0))
    part, effects = decide.stop(part, True, 110.0)
    assert sent(effects)[0] == 20
    assert (part.stopped, any(isinstance(effect, ReportStopped) for effect in effects)) == (True, True)
    part, effects = decide.stop(part, False, 111.0)
    assert sent(effects)[0] == 18
    part, effects = decide.asked(part, Request(1, RequestKind.KILL), 120.0)
    assert sent(effects) == [18, 15]
    part, effects = decide.tick(part, 134.9)
    assert effects == []
    part, effects = decide.tick(part, 135.0)
    assert sent(effects) == [18, 2], "the usual sequence follows after three of its intervals"


def test_a_queues_own_commands_run_on_the_first_host() -> None:
    rules = Rules(suspend="touch /s", terminate="kill $LSB_JOBPIDS")
    part, effects = decide.stop(running(rules), True, 110.0)
    assert Run("u", "touch /s") in effects
    _, effects = decide.asked(part, Request(1, RequestKind.KILL), 120.0)
    assert Run("u", "kill $LSB_JOBPIDS") in effects
    _, effects = decide.stop(running(replace(rules, first=False)), True, 110.0)
    assert not any(isinstance(effect, Run) for effect in effects)
