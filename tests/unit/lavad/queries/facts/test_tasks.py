"""bjobs -l of a job with roles: its conditions with times and reasons, and counts per role."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.job.job import Attempt, Job, Outcome, Part, PendingSignal
from lavad.core.job.spec import Policy, Role, Spec
from lavad.core.job.task_run import TaskRun
from lavad.core.lang.states import JobState, SignalKind, TaskState
from lavad.queries.facts import tasks

SPEC = Spec(
    user="ann",
    queue="normal",
    slots=3,
    max_slots=3,
    policy=Policy(success="chief"),
    roles=(Role(name="chief"), Role(name="worker", count=2, least=2)),
)
TASKS = (
    TaskRun(role=0, index=0, state=TaskState.RUNNING),
    TaskRun(role=1, index=0, number=3, state=TaskState.RUNNING),
    TaskRun(role=1, index=1, number=2, state=TaskState.WAITING),
)
RUN = Attempt(number=1, uid="u", dispatched=20.0, started=21.0, parts=(Part(host="h1", slots=3),), tasks=TASKS)
JOB = Job(
    key=7,
    spec=1,
    name="a",
    submitted=10.0,
    state=JobState.RUN,
    since=20.0,
    run=RUN,
    retries=3,
    retried=30.0,
    retried_why="worker[1] on h1 ended with exit code 3",
)


def names(job: Job) -> list[tuple[float, str, str]]:
    return tasks.role_conditions(job, SPEC)


def test_conditions_go_along_the_jobs_life() -> None:
    """Created, Running, Restarting, Suspended, Succeeded or Failed, each with its time and reason."""
    waits = replace(JOB, state=JobState.PEND, run=None, retries=0, retried=0.0)
    created = (10.0, "Created", "submitted by ann")
    running = (21.0, "Running", "3 tasks on 1 host, attempt 1")
    again = (30.0, "Restarting", "worker[1] on h1 ended with exit code 3")
    assert names(waits) == [created]
    assert names(replace(waits, state=JobState.PSUSP, since=11.0)) == [created, (11.0, "Suspended", "by user or administrator")]
    assert names(JOB) == [created, running, again]
    assert names(replace(JOB, state=JobState.SSUSP, since=40.0))[-1] == (40.0, "Suspended", "by the system")
    done = replace(JOB, state=JobState.DONE, outcome=Outcome(at=50.0))
    assert names(done) == [created, running, again, (50.0, "Succeeded", "success is chief")]
    enough = replace(done, outcome=Outcome(at=50.0, why="enough elements of the array have succeeded"))
    assert names(enough)[-1] == (50.0, "Succeeded", "enough elements of the array have succeeded")
    failed = replace(JOB, state=JobState.EXIT, outcome=Outcome(at=50.0, status=768, why="chief[0] on h1 ended with exit code 3"))
    assert names(failed)[-1] == (50.0, "Failed", "chief[0] on h1 ended with exit code 3")


def test_each_role_is_counted() -> None:
    """Active, succeeded, failed of each role."""
    assert tasks.role_tables(JOB, replace(SPEC, roles=())) == ""
    rows = [line.split() for line in tasks.role_tables(JOB, SPEC).partition("ROLES:\n")[2].splitlines()]
    assert rows == [
        ["NAME", "TASKS", "WAITING", "ACTIVE", "SUCCEEDED", "FAILED", "RESTARTS", "TERMINATED"],
        ["chief", "1", "0", "1", "0", "0", "0", "0"],
        ["worker", "2", "1", "1", "0", "0", "3", "0"],
    ]
    over = replace(JOB, state=JobState.DONE, outcome=Outcome(at=50.0))
    assert tasks.role_tables(over, SPEC).splitlines()[-1].split() == ["worker", "2", "0", "0", "0", "0", "3", "2"]
    killed = PendingSignal(kind=SignalKind.KILL, at=40.0)
    ends = [
        replace(RUN.tasks[0], state=TaskState.FAILED, at=30.0),
        *(replace(t, state=TaskState.FAILED, at=41.0) for t in RUN.tasks[1:]),
    ]
    ended = replace(over, state=JobState.EXIT, run=replace(RUN, tasks=tuple(ends), pending_signals=(killed,)))
    assert [line.split()[4:] for line in tasks.role_tables(ended, SPEC).splitlines()[-2:]] == [
        ["0", "1", "0", "0"],
        ["0", "0", "3", "2"],
    ]
    waits = replace(JOB, run=None, state=JobState.PEND)
    assert tasks.role_tables(waits, SPEC).splitlines()[-1].split() == ["worker", "2", "2", "0", "0", "0", "0", "0"]
