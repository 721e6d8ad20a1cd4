"""Jobs with roles: restart policies, success rules, actions, clean policies."""

from __future__ import annotations

import pytest

from lavad.core.job.roles import counts, delay_of
from lavad.core.lang.states import JobState, TaskState
from lavad.core.rules.effects import FinishPart, KillPart, StartTask
from tests.support.worlds.bench import Bench
from tests.support.worlds.roles import OK, SEGV, TERM, Roles, code, role


def test_ranks_go_along_the_roles(bench: Bench) -> None:
    """Three roles, five tasks, each with its index; ranks are dense in the order of the roles."""
    job = Roles(bench, role("chief"), role("ps", count=2), role("worker", count=2)).run()
    assert job.names() == ["chief[0]", "ps[0]", "ps[1]", "worker[0]", "worker[1]"]
    assert set(job.states()) == {"RUNNING"}
    spec = bench.cluster.specs.rows[bench.job(job.key).spec]
    assert [(c.name, c.active) for c in counts(spec, job.attempt)] == [("chief", 1), ("ps", 2), ("worker", 2)]


# -- restart policies by exit code -------------------------------------------------------------------------------

MATRIX = [
    ("Never", OK, "over"),
    ("Never", code(1), "failed"),
    ("Never", code(130), "failed"),
    ("Never", SEGV, "failed"),
    ("OnFailure", OK, "over"),
    ("OnFailure", code(1), "again"),
    ("OnFailure", code(255), "again"),
    ("OnFailure", SEGV, "again"),
    ("Always", OK, "again"),
    ("Always", code(1), "again"),
    ("Always", SEGV, "again"),
    ("ExitCode", OK, "over"),
    ("ExitCode", code(1), "failed"),
    ("ExitCode", code(127), "failed"),
    ("ExitCode", code(128), "again"),
    ("ExitCode", code(255), "again"),
    ("ExitCode", SEGV, "again"),
    ("ExitCode", TERM, "again"),
]
FOLLOWS = {"over": [], "failed": ["JobJudged"], "again": ["TaskRetried"]}


@pytest.mark.parametrize(("policy", "status", "follows"), MATRIX)
def test_the_restart_policies_by_exit_code(bench: Bench, policy: str, status: int, follows: str) -> None:
    """Never, OnFailure, Always, ExitCode (1-127 for good, 128-255 and signals again)."""
    job = Roles(bench, role(count=2, restart=policy)).run()
    assert job.ended(1, status) == ["TaskEnded", *FOLLOWS[follows]]


def test_a_task_starts_again_in_its_place_until_the_backoff_limit(bench: Bench) -> None:
    """Same rank, same index, same host; each restart waits longer; then the job fails with one reason."""
    job = Roles(bench, role(count=2, restart="OnFailure"), backoff=3).run()
    host, delays = job.host(1), []
    for number in (2, 3, 4):
        assert job.ended(1, code(3)) == ["TaskEnded", "TaskRetried"]
        due = job.due(StartTask)
        assert [(one.host, one.rank, one.number) for one in due if isinstance(one, StartTask)] == [(host, 1, number)]
        delays += [one.delay for one in due if isinstance(one, StartTask)]
        job.started(1)
        assert not job.due(StartTask)
    assert delays == [delay_of(0), delay_of(1), delay_of(2)] == [0.0, 0.5, 1.0]
    assert job.ended(1, code(3)) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT
    outcome = bench.outcome(job.key)
    assert outcome is not None
    assert outcome.why == f"worker[1] on {host} ended with exit code 3, and its 3 restarts are used up"
    assert outcome.status == code(3)


def test_restarts_of_a_role_of_its_own(bench: Bench) -> None:
    """They do not count for the job's; where they are used up, what the rules say next holds, here that all starts again."""
    rules = [("TaskFailed", "RestartTask", -1), ("TaskFailed", "RestartJob", -1)]
    job = Roles(bench, role(count=2, backoff=2, actions=rules), role("other"), backoff=1).run()
    for rank in (0, 1):
        assert job.ended(rank, code(3)) == ["TaskEnded", "TaskRetried"]
        job.started(rank)
    assert job.ended(0, code(3)) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.PEND
    assert bench.job(job.key).retries == 1


@pytest.mark.parametrize("restart", ["OnFailure", "Never"])
def test_a_role_without_restarts_left_fails_the_job(bench: Bench, restart: str) -> None:
    again = [] if restart == "OnFailure" else [("TaskFailed", "RestartTask", -1)]
    job = Roles(bench, role(restart=restart, backoff=1, actions=again), backoff=0).run()
    assert job.ended(0, code(3)) == ["TaskEnded", "TaskRetried"]
    job.started(0)
    assert job.ended(0, code(3)) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT


def test_each_task_waits_by_its_own_restarts(bench: Bench) -> None:
    """Many tasks that fail once start again at once."""
    job = Roles(bench, role(count=8, restart="OnFailure"), backoff=100).run()
    for rank in range(8):
        assert job.ended(rank, code(1)) == ["TaskEnded", "TaskRetried"]
    assert {one.delay for one in job.due(StartTask) if isinstance(one, StartTask)} == {0.0}


def test_reports_of_an_earlier_start_are_dropped(bench: Bench) -> None:
    job = Roles(bench, role(count=2, restart="OnFailure")).run()
    job.ended(0, code(1))
    assert job.ended(0, code(1), number=1) == []
    job.started(0)
    assert job.ended(0, code(1), number=1) == []
    assert job.states() == ["RUNNING", "RUNNING"]


# -- success rules -----------------------------------------------------------------------------------------------

THREE = (role("chief"), role("ps"), role("worker", count=2))
"""Ranks 0 chief, 1 ps, 2 and 3 workers."""
RULES: list[tuple[str, list[tuple[int, int]], str]] = [
    ("chief", [(2, OK), (3, OK), (0, OK)], "DONE"),
    ("", [(0, OK)], "DONE"),
    ("worker[0]", [(2, OK)], "DONE"),
    ("worker[1]", [(2, OK), (3, OK)], "DONE"),
    ("worker", [(2, OK), (3, OK)], "DONE"),
    ("all", [(0, OK), (1, OK), (2, OK), (3, OK)], "DONE"),
    ("any", [(0, code(1)), (1, code(1)), (3, OK)], "DONE"),
    ("any", [(0, code(1)), (1, code(1)), (2, code(2)), (3, code(1))], "EXIT"),
    ("chief,worker[1]", [(0, OK), (2, OK), (3, OK)], "DONE"),
    ("ps,worker", [(3, OK), (1, OK), (2, OK)], "DONE"),
    ("any(worker)", [(0, OK), (2, code(1)), (3, OK)], "DONE"),
    ("any(chief,ps)", [(2, OK), (1, OK)], "DONE"),
    ("any(2)", [(0, code(1)), (1, OK), (3, OK)], "DONE"),
    ("any(2,worker)", [(0, OK), (3, OK), (2, OK)], "DONE"),
    ("any(2,worker)", [(3, OK), (2, code(1))], "EXIT"),
    ("least(2)", [(0, OK), (1, OK), (2, code(1)), (3, OK)], "DONE"),
    ("least(3)", [(0, code(1)), (1, OK), (3, OK), (2, code(4))], "EXIT"),
    ("least(1,worker)", [(0, code(1)), (2, OK), (3, code(1))], "DONE"),
    ("any(chief,worker[0])", [(3, OK), (0, code(4)), (2, code(4))], "EXIT"),
    ("worker[0-1]", [(2, OK), (3, OK)], "DONE"),
    ("ps,worker[0] | chief,worker[1]", [(1, OK), (3, code(1)), (2, OK)], "DONE"),
    ("chief & any(1,worker)", [(2, code(1)), (0, OK), (3, OK)], "DONE"),
    ("chief & any(1,worker)", [(2, code(1)), (3, code(1)), (0, OK)], "EXIT"),
    ("ps | chief", [(1, code(1)), (2, OK), (0, code(1))], "EXIT"),
    ("chief", [(2, code(5))], "EXIT"),
    ("all", [(0, OK), (1, code(9))], "EXIT"),
]


@pytest.mark.parametrize(("rule", "ends", "state"), RULES)
def test_the_success_rules(bench: Bench, rule: str, ends: list[tuple[int, int]], state: str) -> None:
    """A role, role[index], all, any; the chief decides where no rule is given; others are ended by the clean policy."""
    job = Roles(bench, *THREE, success=rule).run()
    for at, (rank, status) in enumerate(ends):
        last = at == len(ends) - 1
        assert job.ended(rank, status) == ["TaskEnded", *(["JobJudged"] if last else [])]
    assert job.finish() is JobState[state]


@pytest.mark.parametrize(("clean", "leave"), [("running", False), ("all", False), ("none", True)])
def test_what_becomes_of_survivors(bench: Bench, clean: str, leave: bool) -> None:
    """Running and all end them, none leaves them until they end; a failure ends them in any case."""
    job = Roles(bench, *THREE, clean=clean).run()
    job.ended(0)
    assert [one.leave for one in job.due(FinishPart) if isinstance(one, FinishPart)] == [leave] * len(job.attempt.parts)
    assert not job.due(KillPart)
    other = Roles(bench, *THREE, clean=clean).run()
    other.ended(0, code(1))
    assert {one.leave for one in other.due(FinishPart) if isinstance(one, FinishPart)} == {False}


# -- events and actions ------------------------------------------------------------------------------------------

ACTIONS: list[tuple[list[tuple[str, str, int]], int, list[str]]] = [
    ([("TaskFailed", "RestartTask", -1)], code(1), ["TaskRetried"]),
    ([("TaskFailed", "RestartJob", -1)], code(1), ["JobJudged"]),
    ([("TaskFailed", "AbortJob", -1)], code(1), ["JobJudged"]),
    ([("TaskFailed", "CompleteJob", -1)], code(1), ["JobJudged"]),
    ([("TaskFailed", "Ignore", -1)], code(1), []),
    ([("TaskCompleted", "CompleteJob", -1)], OK, ["JobJudged"]),
    ([("TaskFailed", "CompleteJob", 3), ("TaskFailed", "Ignore", -1)], code(3), ["JobJudged"]),
    ([("TaskFailed", "CompleteJob", 3), ("TaskFailed", "Ignore", -1)], code(4), []),
    ([("Any", "Ignore", -1)], code(4), []),
    ([("Any", "AbortJob", -1)], OK, []),
]


@pytest.mark.parametrize("where", ["role", "job"])
@pytest.mark.parametrize(("actions", "status", "follows"), ACTIONS)
def test_what_is_done_when_a_task_ends(
    bench: Bench, where: str, actions: list[tuple[str, str, int]], status: int, follows: list[str]
) -> None:
    """TaskFailed and TaskCompleted to RestartTask, RestartJob, AbortJob, CompleteJob, Ignore; of a role, or of all."""
    if where == "role":
        job = Roles(bench, role(count=2, actions=actions), role("other"), success="other").run()
    else:
        job = Roles(bench, role(count=2), role("other"), success="other", actions=actions).run()
    if not status:
        assert job.ended(0) == ["TaskEnded"], "a role is completed when all its tasks are"
    assert job.ended(1, status) == ["TaskEnded", *follows]
    if follows == ["JobJudged"]:
        restart = any(action == "RestartJob" for _, action, _ in actions)
        state = JobState.PEND if restart else JobState.DONE if "CompleteJob" in actions[0] else JobState.EXIT
        assert job.finish() is state


def test_the_whole_job_starts_again_a_number_of_times(bench: Bench) -> None:
    """RestartJob makes a new attempt with the same ranks, as often as backoff says."""
    job = Roles(bench, role(count=2, actions=[("TaskFailed", "RestartJob", -1)]), backoff=2)
    for attempt in (1, 2):
        job.run()
        assert (job.attempt.number, job.names()) == (attempt, ["worker[0]", "worker[1]"])
        job.ended(0, code(7))
        assert job.finish() is JobState.PEND
    job.run()
    job.ended(0, code(7))
    assert job.finish() is JobState.EXIT
    assert bench.finished(job.key).retries == 2


def test_restarts_of_the_job_that_do_not_count(bench: Bench) -> None:
    """As many as it comes to, each later than the one before; those that count are none the fewer."""
    rules = [("TaskFailed", "RestartJobUncounted", 7), ("TaskFailed", "RestartJob", -1)]
    job = Roles(bench, role(count=2, actions=rules), backoff=1)
    waits = []
    for status in (7, 7, 3, 7):
        job.run()
        job.ended(0, code(status))
        assert job.finish() is JobState.PEND
        waits.append(bench.job(job.key).not_before - bench.now)
        bench.now += 60
    assert (bench.job(job.key).retries, waits) == (1, [delay_of(number) for number in range(4)])
    job.run()
    job.ended(0, code(3))
    assert job.finish() is JobState.EXIT


def test_states_of_tasks_are_kept_for_the_last_look(bench: Bench) -> None:
    """A finished job still knows how its tasks ended."""
    job = Roles(bench, *THREE).run()
    job.ended(2)
    job.ended(0)
    assert job.ended(3, TERM) == [], "what was ended with the job did not fail"
    job.finish()
    run = bench.finished(job.key).run
    assert run is not None
    assert [task.state for task in run.tasks] == [TaskState.SUCCEEDED, TaskState.RUNNING, TaskState.SUCCEEDED, TaskState.RUNNING]
