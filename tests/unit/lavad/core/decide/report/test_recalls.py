"""Tasks that are started again together, as one of them has failed, while the others of the job run on."""

from __future__ import annotations

import pytest

from lavad.core.job.roles import counts, delay_of
from lavad.core.lang.states import JobState
from lavad.core.rules.effects import EndTask, StartTask
from tests.support.worlds.bench import Bench
from tests.support.worlds.roles import OK, TERM, Roles, code, role

GROUP = [("TaskFailed", "RestartGroup", -1)]


def due(job: Roles) -> tuple[list[tuple[int, int]], list[tuple[int, int, float]]]:
    """(rank, number) of tasks that are to end, and (rank, number, delay) of those that are to start."""
    ends = [(one.rank, one.number) for one in job.due(EndTask) if isinstance(one, EndTask)]
    return ends, [(one.rank, one.number, one.delay) for one in job.due(StartTask) if isinstance(one, StartTask)]


def test_the_group_of_a_task_that_fails_is_ended_and_starts_again(bench: Bench) -> None:
    """Two groups of two and another role: only the two of the first group are concerned, and start once both are over."""
    job = Roles(bench, role(count=4, group=2, actions=GROUP), role("other"), backoff=3).run()
    assert job.ended(1, code(3)) == ["TaskEnded", "TasksRecalled"]
    assert due(job) == ([(0, 1)], [])
    assert job.ended(0, TERM) == ["TaskEnded", "TasksReturned"]
    assert due(job) == ([], [(0, 2, 0.0), (1, 2, 0.0)])
    for rank in (0, 1):
        job.started(rank)
    assert due(job) == ([], [])
    assert (set(job.states()), bench.job(job.key).retries) == ({"RUNNING"}, 1)


def test_an_end_that_was_told_twice_changes_nothing(bench: Bench) -> None:
    """As after a crash of an agent or of the master, which tell and ask what they do not know to have arrived."""
    job = Roles(bench, role(count=2, actions=GROUP)).run()
    job.ended(1, code(3))
    assert job.ended(1, code(3)) == []
    job.ended(0, TERM)
    assert job.ended(0, TERM, number=1) == []
    assert due(job) == ([], [(0, 2, 0.0), (1, 2, 0.0)])


def test_a_task_that_ends_by_itself_meanwhile_starts_again_as_well(bench: Bench) -> None:
    """Also one that has ended well before, and one that waits for its own restart, as soon as it runs."""
    job = Roles(bench, role(count=4, actions=[("TaskFailed", "RestartTask", 7), *GROUP])).run()
    assert job.ended(0, OK) == ["TaskEnded"]
    assert job.ended(1, code(7)) == ["TaskEnded", "TaskRetried"]
    assert job.ended(2, code(3)) == ["TaskEnded", "TasksRecalled"]
    assert due(job) == ([(3, 1)], [(1, 2, 0.0)])
    assert job.ended(3, OK) == ["TaskEnded"]
    job.started(1)
    assert due(job) == ([(1, 2)], [])
    assert job.ended(1, TERM) == ["TaskEnded", "TasksReturned"]
    assert [one[:2] for one in due(job)[1]] == [(0, 2), (1, 3), (2, 2), (3, 2)]


def test_a_role_as_a_whole(bench: Bench) -> None:
    job = Roles(bench, role(count=4, group=2, actions=[("TaskFailed", "RestartRole", -1)]), role("other")).run()
    job.ended(1, code(3))
    assert due(job)[0] == [(0, 1), (2, 1), (3, 1)]


def test_restarts_of_groups_are_counted_and_wait_longer_each_time(bench: Bench) -> None:
    job = Roles(bench, role(count=2, actions=GROUP), backoff=2).run()
    for before in range(2):
        job.ended(0, code(3))
        job.ended(1, TERM)
        assert {delay for _, _, delay in due(job)[1]} == {delay_of(before)}
        for rank in (0, 1):
            job.started(rank)
    assert job.ended(0, code(3)) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT
    outcome = bench.outcome(job.key)
    assert outcome is not None
    assert outcome.why.endswith("ended with exit code 3, and the job's 2 restarts are used up")


def test_restarts_that_do_not_count(bench: Bench) -> None:
    job = Roles(bench, role(count=1, actions=[("TaskFailed", "RestartGroupUncounted", -1)]), backoff=0).run()
    for _ in range(3):
        assert job.ended(0, code(3)) == ["TaskEnded", "TasksRecalled", "TasksReturned"]
        job.started(0)
    assert bench.job(job.key).retries == 0


def test_a_group_that_starts_again_has_its_own_restarts_again(bench: Bench) -> None:
    """backoff of a role with groups is that of each of them."""
    again = [("TaskFailed", "RestartTask", -1), *GROUP]
    job = Roles(bench, role(count=4, group=2, backoff=1, actions=again), backoff=5).run()
    for rank in (0, 2):
        assert job.ended(rank, code(3)) == ["TaskEnded", "TaskRetried"]
        job.started(rank)
    assert job.ended(1, code(3)) == ["TaskEnded", "TasksRecalled"]
    job.ended(0, TERM)
    for rank in (0, 1):
        job.started(rank)
    assert job.ended(0, code(3)) == ["TaskEnded", "TaskRetried"]
    assert bench.job(job.key).retries == 1


def test_each_task_may_have_restarts_of_its_own(bench: Bench) -> None:
    job = Roles(bench, role(count=2, backoff=1, backoff_each=True, restart="OnFailure"), backoff=0).run()
    for rank in (0, 1):
        assert job.ended(rank, code(3)) == ["TaskEnded", "TaskRetried"]
        job.started(rank)
    assert job.ended(0, code(3)) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT
    outcome = bench.outcome(job.key)
    assert outcome is not None
    assert "exit code 3, and the 1 restarts of worker[0] are used up" in outcome.why


def test_what_has_not_started_yet_is_not_ended(bench: Bench) -> None:
    """A launcher that waits for the workers."""
    job = Roles(bench, role("ps", kind="launcher", count=2, after=["worker"], actions=GROUP), role(count=1)).run()
    job.started(0)
    assert job.ended(0, code(3)) == ["TaskEnded", "TasksRecalled", "TasksReturned"]
    assert due(job) == ([], [(0, 2, 0.0), (1, 1, 0.0)])


def test_a_job_that_is_to_end_starts_nothing_again(bench: Bench) -> None:
    """The success of another role, or a kill, in the middle."""
    job = Roles(bench, role(count=2, actions=GROUP), role("chief"), success="chief").run()
    job.ended(0, code(3))
    assert job.ended(2, OK) == ["TaskEnded", "JobJudged"]
    assert due(job) == ([], [])
    assert job.finish() is JobState.DONE


def test_the_success_of_one_that_starts_again_decides_nothing(bench: Bench) -> None:
    job = Roles(bench, role(count=3, actions=GROUP), role("other"), success="worker[0]", backoff=9).run()
    assert job.ended(0, code(3)) == ["TaskEnded", "TasksRecalled"]
    assert job.ended(3, OK) == ["TaskEnded"]
    assert job.ended(1, TERM) == ["TaskEnded"]


@pytest.mark.parametrize(("action", "counted"), [("RestartGroup", 1), ("RestartRole", 1), ("RestartGroupUncounted", 0)])
def test_with_a_host_of_the_release_before_all_start_again(bench: Bench, action: str, counted: int) -> None:
    """Its agent does not know the order to end a task."""
    bench.hosts("h1", "h2", "h3", slots=4, starter=1)
    job = Roles(bench, role(count=2, actions=[("TaskFailed", action, -1)])).run()
    assert job.ended(0, code(3)) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.PEND
    assert bench.job(job.key).retries == counted


def test_what_is_shown_of_them(bench: Bench) -> None:
    job = Roles(bench, role(count=2, actions=GROUP)).run()
    job.ended(0, code(3))
    job.ended(1, TERM)
    (row,) = counts(bench.cluster.specs.rows[bench.job(job.key).spec], job.attempt)
    assert (row.waiting, row.restarts, row.failed) == (2, 2, 0)
    assert bench.job(job.key).retried_why == "worker[0] on h1 ended with exit code 3"


def test_groups_that_were_over_start_again_with_their_whole_role(bench: Bench) -> None:
    """No end of theirs comes any more."""
    job = Roles(bench, role(count=4, group=2, actions=[("TaskFailed", "RestartRole", -1)])).run()
    for rank in (2, 3):
        assert job.ended(rank, OK) == ["TaskEnded"]
    assert job.ended(1, code(3)) == ["TaskEnded", "TasksRecalled"]
    assert job.ended(0, TERM) == ["TaskEnded", "TasksReturned"]
    assert [one[:2] for one in due(job)[1]] == [(0, 2), (1, 2), (2, 2), (3, 2)]


def test_with_a_host_of_the_release_before_restarts_that_do_not_count_wait_longer_each_time(bench: Bench) -> None:
    """They are restarts of the whole job then."""
    bench.hosts("h1", "h2", "h3", slots=4, starter=1)
    job = Roles(bench, role(count=1, actions=[("TaskFailed", "RestartGroupUncounted", -1)]), backoff=0).run()
    waited = []
    for _ in range(3):
        job.ended(0, code(3))
        job.finish()
        waited.append(bench.job(job.key).not_before - bench.now)
        job.run()
    assert waited == [delay_of(before) for before in range(3)]
