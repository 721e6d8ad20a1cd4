"""The agent's decisions about one part: kill sequences, limits, stopping, requests done once."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.core import decide
from agent.core.effects import Answer, AskCheckpoint, Effect, KillAll, ReportStopped, Run, Save, Send
from agent.core.part import Part, Request, RequestKind, Rules, Stage, run_time

RULES = Rules(interval=10.0)


def running(rules: Rules = RULES, at: float = 100.0) -> Part:
    return decide.started(Part("u", 7, 1, rules), at)


def sent(effects: list[Effect]) -> list[int | str]:
    """Signal numbers, and ``kill`` for the end of everything."""
    return [int(e.signal) if isinstance(e, Send) else "kill" for e in effects if isinstance(e, Send | KillAll)]


def test_the_kill_sequence_is_cont_int_term_kill() -> None:
    part, effects = decide.asked(running(), Request(1, RequestKind.KILL, reason="TERM_OWNER"), 200.0)
    assert sent(effects) == [signal.SIGCONT, signal.SIGINT]
    assert effects[-1] == Answer("u", 1)
    assert (part.reason, decide.wake_at(part)) == ("TERM_OWNER", 210.0)
    part, effects = decide.tick(part, 209.9)
    assert effects == []
    part, effects = decide.tick(part, 210.0)
    assert effects == [Send("u", signal.SIGTERM)]
    part, effects = decide.tick(part, 220.0)
    assert effects == [KillAll("u")]
    assert decide.wake_at(part) is None


@given(st.floats(0.0, 1e8), st.floats(0.0, 1e4), st.integers(20_000, 10**6), st.integers(0, 9_000))
def test_what_it_wakes_up_for_is_due_by_then(since: float, ran: float, run: int, warn_before: int) -> None:
    """To the last bit of the times: else the agent would wake up for it for ever."""
    warn = str(int(signal.SIGUSR1)) if warn_before else ""
    part = replace(running(Rules(run=run, warn=warn, warn_before=warn_before), since), ran=ran)
    times = 0
    while (at := decide.wake_at(part)) is not None:
        part, _ = decide.tick(part, at)
        times += 1
        assert times < 10
    assert (part.limit, part.warned) == ("TERM_RUNLIMIT", bool(warn))


def test_a_second_kill_does_not_begin_the_sequence_again() -> None:
    part, _ = decide.asked(running(), Request(1, RequestKind.KILL), 200.0)
    part, effects = decide.asked(part, Request(2, RequestKind.KILL), 205.0)
    assert sent(effects) == []
    assert decide.wake_at(part) == 210.0


def test_a_parallel_job_is_killed_at_once_unless_the_site_wants_the_sequence() -> None:
    _, effects = decide.asked(running(Rules(sequential=False)), Request(1, RequestKind.KILL), 200.0)
    assert sent(effects) == ["kill"]


def test_a_part_that_does_not_run_yet_is_killed_at_once() -> None:
    _, effects = decide.asked(Part("u", 7, 1, stage=Stage.PREPARED), Request(1, RequestKind.KILL), 200.0)
    assert sent(effects) == ["kill"]


def test_a_wish_is_done_once_and_granted_each_time() -> None:
    part, effects = decide.asked(running(), Request(1, RequestKind.SIGNAL, 10), 200.0)
    assert sent(effects) == [10]
    _, effects = decide.asked(part, Request(1, RequestKind.SIGNAL, 10), 201.0)
    assert effects == [Answer("u", 1)]


def test_an_ended_part_refuses_wishes() -> None:
    _, effects = decide.asked(decide.ended(running()), Request(1, RequestKind.SIGNAL, 10), 200.0)
    assert effects == [Answer("u", 1, False, "Job has already finished")]


@pytest.mark.parametrize("kind", [RequestKind.REQUEUE, RequestKind.MIGRATE])
def test_requeue_and_migration_need_no_manners(kind: RequestKind) -> None:
    part, effects = decide.asked(running(), Request(1, kind, reason="TERM_REQUEUE_OWNER"), 200.0)
    assert sent(effects) == ["kill"]
    assert part.reason == "TERM_REQUEUE_OWNER"


def test_migration_of_a_checkpointable_job_checkpoints_first() -> None:
    _, effects = decide.asked(running(Rules(checkpoint=True)), Request(1, RequestKind.MIGRATE), 200.0)
    assert AskCheckpoint("u", 1, True) in effects
    assert sent(effects) == []
    _, effects = decide.asked(running(Rules(checkpoint=True, first=False)), Request(1, RequestKind.MIGRATE), 200.0)
    assert [e for e in effects if not isinstance(e, Save)] == [Answer("u", 1)]


def test_a_part_that_is_migrated_is_marked_until_that_is_given_up_or_it_is_killed() -> None:
    part, _ = decide.asked(running(Rules(checkpoint=True)), Request(3, RequestKind.MIGRATE), 200.0)
    assert (part.migrating, part.reason) == (3, "TERM_CHKPNT")
    assert decide.given_up(part, 2).migrating == 3
    given_up = decide.given_up(part, 3)
    assert (given_up.migrating, given_up.reason) == (0, "")
    assert decide.asked(part, Request(4, RequestKind.KILL), 201.0)[0].migrating == 0


def test_migration_does_not_wait_for_a_command_that_does_not_run_yet() -> None:
    part = replace(running(Rules(checkpoint=True)), stage=Stage.PREPARED)
    _, effects = decide.asked(part, Request(1, RequestKind.MIGRATE), 200.0)
    assert sent(effects) == ["kill"]
    _, effects = decide.asked(replace(part, rules=Rules(checkpoint=True, first=False)), Request(1, RequestKind.MIGRATE), 200.0)
    assert sent(effects) == []


def test_a_checkpoint_that_is_asked_for_before_the_command_runs_is_made_then() -> None:
    part, request = replace(running(Rules(checkpoint=True)), stage=Stage.SENT), Request(1, RequestKind.CHECKPOINT)
    part, effects = decide.asked(part, request, 200.0)
    assert effects == [], "not answered before it is made"
    part, effects = decide.asked(part, request, 201.0)
    part, effects = decide.asked(part, Request(2, RequestKind.CHECKPOINT, kill_after=True), 202.0)
    assert (effects, part.reason) == ([], "")
    part, effects = decide.asked_before(decide.started(part, 203.0), 203.0)
    assert effects == [Save("u"), AskCheckpoint("u", 1), Save("u"), AskCheckpoint("u", 2, True)]
    assert (part.reason, part.waiting) == ("TERM_CHKPNT", ())


def test_the_run_limit_warns_and_then_kills() -> None:
    part = running(Rules(run=60, warning=30, interval=10.0))
    assert decide.wake_at(part) == 160.0
    part, effects = decide.tick(part, 160.0)
    assert sent(effects) == [signal.SIGUSR2]
    assert part.limit == "TERM_RUNLIMIT"
    times = []
    while (at := decide.wake_at(part)) is not None:
        part, effects = decide.tick(part, at)
        times.append((at, sent(effects)))
    assert times == [(190.0, [signal.SIGCONT, signal.SIGINT]), (200.0, [signal.SIGTERM]), (210.0, ["kill"])]


def test_a_job_that_is_warned_before_its_run_limit_is_ended_at_it() -> None:
    part = running(Rules(run=60, warning=30, warn="23", warn_before=20))
    assert decide.wake_at(part) == 140.0
    part, effects = decide.tick(part, 140.0)
    assert sent(effects) == [23]
    assert decide.wake_at(part) == 160.0
    part, effects = decide.tick(part, 160.0)
    assert sent(effects) == [signal.SIGCONT, signal.SIGINT]
    assert part.limit == "TERM_RUNLIMIT"


def test_a_job_is_warned_before_its_deadline() -> None:
    part = running(Rules(run=600, warn="23", warn_before=20, deadline=150.0))
    assert decide.wake_at(part) == 130.0
    assert decide.tick(part, 129.0) == (part, [])
    part, effects = decide.tick(part, 130.0)
    assert sent(effects) == [23]
    assert decide.wake_at(part) == 700.0
    late = running(Rules(warn="23", warn_before=20, deadline=50.0))
    assert sent(decide.tick(late, 100.0)[1]) == [23]


@pytest.mark.parametrize(
    ("kinds", "again"),
    [
        ((RequestKind.REQUEUE,), True),
        ((RequestKind.MIGRATE,), True),
        ((RequestKind.KILL,), False),
        ((RequestKind.REQUEUE, RequestKind.KILL), False),
        ((RequestKind.KILL, RequestKind.REQUEUE), True),
    ],
)
def test_a_part_knows_whether_its_job_is_to_run_again(kinds: tuple[RequestKind, ...], again: bool) -> None:
    part = running()
    for number, kind in enumerate(kinds, 1):
        part, _ = decide.asked(part, Request(number, kind), 200.0)
    assert part.again is again


def test_a_part_that_was_to_migrate_and_runs_on_is_not_to_run_again() -> None:
    part = replace(running(), again=True, migrating=3)
    assert not decide.given_up(part, 3).again


def test_a_checkpoint_that_fails_takes_no_kill_back() -> None:
    """A migration of a job that is killed meanwhile."""
    part, _ = decide.asked(running(Rules(checkpoint=True)), Request(3, RequestKind.MIGRATE), 200.0)
    part, _ = decide.asked(part, Request(4, RequestKind.KILL, reason="TERM_OWNER"), 201.0)
    assert part.killing
    assert decide.given_up(part, 3) == part
    over = replace(decide.ended(part), killing=False)
    assert decide.given_up(over, 3) == over


REQUEUED = Request(4, RequestKind.REQUEUE, reason="TERM_PREEMPT", notice=30)


def test_a_job_that_the_master_ends_is_warned_and_has_time() -> None:
    part, effects = decide.asked(running(Rules(warn="23", warn_before=20)), REQUEUED, 200.0)
    assert (sent(effects), effects[-1]) == ([23], Answer("u", 4))
    assert (part.reason, decide.wake_at(part)) == ("TERM_PREEMPT", 220.0)
    assert sent(decide.tick(part, 219.0)[1]) == []
    assert sent(decide.tick(part, 220.0)[1]) == ["kill"]
    assert decide.asked(part, REQUEUED, 201.0)[0] is part, "the end does not move"
    _, effects = decide.asked(part, Request(5, RequestKind.KILL), 205.0)
    assert sent(effects) == [signal.SIGCONT, signal.SIGINT], "bkill does not wait"
    long = running(Rules(warn="23", warn_before=600))
    assert decide.wake_at(decide.asked(long, REQUEUED, 200.0)[0]) == 230.0, "the site's time is the most"


def test_a_kill_of_the_master_begins_its_sequence_after_the_notice() -> None:
    rules = Rules(warn="save.sh", warn_before=20, interval=10.0, run=130)
    part, effects = decide.asked(running(rules), replace(REQUEUED, kind=RequestKind.KILL), 200.0)
    assert Run("u", "save.sh") in effects
    assert sent(effects) == []
    part, effects = decide.tick(part, 220.0)
    assert sent(effects) == [signal.SIGCONT, signal.SIGINT]
    part, effects = decide.tick(part, 230.0)
    assert sent(effects) == [signal.SIGTERM], "its run limit at 230 changes nothing"
    other = decide.asked(running(replace(rules, first=False)), replace(REQUEUED, kind=RequestKind.KILL), 200.0)
    assert not any(isinstance(effect, Run) for effect in other[1]), "a command runs on the first host"


@pytest.mark.parametrize(("rules", "within"), [(Rules(), 30.0), (Rules(warn="CHKPNT", warn_before=10), 10.0)])
def test_a_checkpointable_job_without_another_warning_is_asked_for_a_checkpoint(rules: Rules, within: float) -> None:
    part, effects = decide.asked(running(replace(rules, checkpoint=True)), REQUEUED, 200.0)
    assert effects == [Save("u"), AskCheckpoint("u", 4, True, within)]
    assert 4 not in part.requests, "the master requests it again after a restart of the agent"
    _, effects = decide.asked(running(replace(rules, checkpoint=True, first=False)), REQUEUED, 200.0)
    assert effects == [Save("u"), Answer("u", 4)]


@pytest.mark.parametrize("rules", [Rules(), Rules(warn="CHKPNT", warn_before=10)])
def test_a_job_that_would_not_use_the_time_is_ended_at_once(rules: Rules) -> None:
    assert sent(decide.asked(running(rules), REQUEUED, 200.0)[1]) == ["kill"]
    stopped, _ = decide.stop(running(Rules(warn="23", warn_before=10)), True, 150.0)
    assert sent(decide.asked(stopped, REQUEUED, 200.0)[1]) == ["kill"]


def test_when_a_part_must_end() -> None:
    assert decide.ends_at(running(Rules()), 120.0) is None
    part = running(Rules(run=60))
    assert decide.ends_at(part, 120.0) == 160.0
    stopped, _ = decide.stop(part, True, 120.0)
    assert decide.ends_at(stopped, 130.0) is None
    resumed, _ = decide.stop(stopped, False, 150.0)
    assert decide.ends_at(resumed, 155.0) == 190.0
    assert decide.ends_at(Part("u", 7, 1, Rules(run=60, deadline=170.0)), 120.0) == 170.0
    noticed, _ = decide.asked(running(Rules(run=600, warn="23", warn_before=20)), REQUEUED, 200.0)
    assert decide.ends_at(noticed, 201.0) == 220.0


def test_a_host_that_leaves_ends_in_good_order_then_is_killed() -> None:
    part, effects = decide.leave(running(Rules()), 2.0, 100.0)
    assert sent(effects) == [signal.SIGCONT, signal.SIGTERM]
    assert decide.leave(part, 2.0, 101.0) == (part, [])
    _, effects = decide.tick(part, 102.0)
    assert sent(effects) == ["kill"]


def test_the_run_limit_does_not_count_the_time_it_was_stopped() -> None:
    part = running(Rules(run=60))
    part, effects = decide.stop(part, True, 130.0)
    assert effects == [Send("u", signal.SIGSTOP), Save("u"), ReportStopped("u", True)]
    assert decide.wake_at(part) is None
    part, _ = decide.tick(part, 1000.0)
    assert part.limit == ""
    part, effects = decide.stop(part, False, 1000.0)
    assert sent(effects) == [signal.SIGCONT]
    assert decide.wake_at(part) == 1030.0


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 100.0)), max_size=20))
def test_run_time_is_the_sum_of_what_was_not_stopped(steps: list[tuple[bool, float]]) -> None:
    part, at, ran, stopped = running(at=0.0), 0.0, 0.0, False
    for stop, seconds in steps:
        at += seconds
        ran += 0.0 if stopped else seconds
        part, _ = decide.stop(part, stop, at)
        stopped = stop
    assert run_time(part, at) == pytest.approx(ran)


@pytest.mark.parametrize(
    ("rules", "use", "limit", "first"),
    [
        (Rules(mem=1000, enforce_memory=True), (0.0, 1001, 0, 1), "TERM_MEMLIMIT", signal.SIGTERM),
        (Rules(swap=1000), (0.0, 0, 1001, 1), "TERM_SWAP", signal.SIGINT),
        (Rules(swap=1000), (0.0, 901, 100, 1), "TERM_SWAP", signal.SIGINT),
        (Rules(processes=3), (0.0, 0, 0, 4), "TERM_PROCESSLIMIT", signal.SIGINT),
        (Rules(threads=9), (0.0, 0, 0, 1, 10), "TERM_THREADLIMIT", signal.SIGINT),
        (Rules(cpu=60), (60.5, 0, 0, 1), "TERM_CPULIMIT", signal.SIGXCPU),
    ],
)
def test_limits_of_use(rules: Rules, use: tuple[Any, ...], limit: str, first: int) -> None:
    part, effects = decide.used(running(rules), 200.0, *use)
    assert (part.limit, sent(effects)) == (limit, [signal.SIGCONT, first])
    later, effects = decide.used(part, 201.0, *use)
    assert effects == []
    assert later == part
    _, effects = decide.used(running(rules), 200.0, 0.0, 1000, 0, 3)
    assert effects == []


def test_what_wrote_too_much_ends_within_seconds_and_only_once() -> None:
    part, effects = decide.wrote_too_much(running(), 200.0, "TERM_OUTPUTLIMIT")
    assert (part.limit, sent(effects)) == ("TERM_OUTPUTLIMIT", [signal.SIGCONT, signal.SIGTERM])
    assert decide.wrote_too_much(part, 201.0, "TERM_OUTPUTDISK") == (part, [])
    assert sent(decide.tick(part, 200.0 + decide.SHORT_GRACE)[1]) == ["kill"]
    before = Part("u", 1, 1)
    assert decide.wrote_too_much(before, 200.0, "TERM_OUTPUTLIMIT") == (before, [])


def test_memory_is_not_enforced_unless_the_site_wants_it() -> None:
    _, effects = decide.used(running(Rules(mem=1000)), 200.0, 0.0, 10_000, 0, 1)
    assert effects == []


def test_after_a_restart_only_the_last_of_the_steps_that_passed_is_done() -> None:
    part, _ = decide.asked(running(), Request(1, RequestKind.KILL), 200.0)
    part, effects = decide.tick(decide.resumed(part, 215.0), 215.0)
    assert sent(effects) == [signal.SIGTERM]
    part, _ = decide.asked(running(), Request(1, RequestKind.KILL), 200.0)
    _, effects = decide.tick(decide.resumed(part, 500.0), 500.0)
    assert sent(effects) == ["kill"]


def test_a_stop_after_the_request_to_end_does_not_take_its_place_after_a_restart() -> None:
    """An interactive job is killed, then suspended: the agent is away while both come due."""
    part, _ = decide.asked(running(Rules(soft_stop=True)), Request(1, RequestKind.KILL), 200.0)
    part, _ = decide.stop(part, True, 205.0)
    _, effects = decide.tick(decide.resumed(part, 500.0), 500.0)
    assert sent(effects) == ["kill", signal.SIGSTOP]


@pytest.mark.parametrize(
    ("rules", "status", "cpu", "mem", "limit"),
    [
        (Rules(cpu=10), signal.SIGXCPU, 10.0, 0, "TERM_CPULIMIT"),
        (Rules(cpu=10), (128 + signal.SIGXCPU) << 8, 10.0, 0, "TERM_CPULIMIT"),
        (Rules(), signal.SIGXCPU, 10.0, 0, ""),
        (Rules(mem=1000, enforce_memory=True), signal.SIGKILL, 0.0, 990, "TERM_MEMLIMIT"),
        (Rules(mem=1000), signal.SIGKILL, 0.0, 990, ""),
        (Rules(mem=1000, enforce_memory=True), 0, 0.0, 990, ""),
    ],
)
def test_limits_that_the_kernel_enforced_are_read_from_the_end(
    rules: Rules, status: int, cpu: float, mem: int, limit: str
) -> None:
    assert decide.limit_of_end(running(rules), status, cpu, mem) == limit
    assert decide.limit_of_end(replace(running(rules), killing=True), status, cpu, mem) == ""


def test_what_a_user_kills_by_a_signal_has_exceeded_no_limit() -> None:
    part = running(Rules(mem=1000, enforce_memory=True))
    part, effects = decide.asked(part, Request(1, RequestKind.SIGNAL, 9, reason="TERM_OWNER"), 200.0)
    assert (sent(effects), part.reason) == (["kill"], "TERM_OWNER")
    assert decide.limit_of_end(part, 9, 0.0, 990) == ""


@pytest.mark.parametrize(("status", "enforced", "limit"), [(9, True, "TERM_MEMLIMIT"), (1 << 8, True, ""), (9, False, "")])
def test_what_the_kernel_says_of_memory_counts_however_little_was_seen(status: int, enforced: bool, limit: str) -> None:
    part = running(Rules(mem=100_000, enforce_memory=enforced))
    assert decide.limit_of_end(part, status, 0.0, 3_000, True) == limit
    assert decide.limit_of_end(part, status, 0.0, 3_000) == ""


@pytest.mark.parametrize(
    ("limit", "status", "told"),
    [
        ("TERM_RUNLIMIT", 12, 140 << 8),
        ("TERM_RUNLIMIT", 15, 15),
        ("TERM_RUNLIMIT", 768, 768),
        ("TERM_RUNLIMIT", 0, 0),
        ("", 12, 12),
    ],
)
def test_what_the_signal_of_the_run_limit_ends_exits_with_140(limit: str, status: int, told: int) -> None:
    assert decide.status_of_end(replace(running(Rules(run=1)), limit=limit), status) == told
