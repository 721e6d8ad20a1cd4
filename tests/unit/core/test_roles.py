"""Jobs with roles: what is taken in and refused, restart policies, success rules, actions, clean policies, start order."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.asks import PolicyAsk, Refused, RoleAsk, Submit
from lavad.core.decide import report
from lavad.core.decide import task_report as decide
from lavad.core.decide.submit import submit
from lavad.core.effects import Effect, FinishPart, KillPart, StartTask, effects_due
from lavad.core.invariants import check_invariants
from lavad.core.job import Attempt, Wish
from lavad.core.roles import counts, delay_of, task_name
from lavad.core.states import JobState, PartState, TaskState, TermReason
from tests.unit.core.conftest import ALICE, LOCAL, Bench

OK, SEGV, TERM = 0, 11, 15


def code(value: int) -> int:
    return value << 8


def role(name: str = "worker", command: str = "./work", **fields: Any) -> RoleAsk:
    return RoleAsk(name=name, command=command, **fields)


def ask(*roles: RoleAsk, options: dict[str, Any] | None = None, **policy: Any) -> Submit:
    return Submit(command="./work", cwd="/home/a", options=options or {}, roles=list(roles), policy=PolicyAsk(**policy))


class Roles:
    """One job with roles, run by hand."""

    def __init__(self, bench: Bench, *roles: RoleAsk, options: dict[str, Any] | None = None, **policy: Any) -> None:
        self.bench = bench
        made = ask(*roles, options=options, **policy)
        self.key = int(bench.take(submit(bench.cluster, made, ALICE, bench.now, LOCAL))["job"])

    def run(self) -> Roles:
        """Placed, and its parts run."""
        self.bench.now += 100.0
        self.bench.step()
        hosts = [part.host for part in self.attempt.parts]
        for host in hosts if len(hosts) > 1 else ():
            self.bench.said("prepared", self.key, host, f"{host}:1")
        for host in hosts:
            self.bench.start(self.key, host)
        return self

    @property
    def attempt(self) -> Attempt:
        run = self.bench.job(self.key).run
        assert run is not None
        return run

    def names(self) -> list[str]:
        spec = self.bench.cluster.specs.rows[self.bench.job(self.key).spec]
        return [task_name(spec, task) for task in self.attempt.tasks]

    def states(self) -> list[str]:
        return [task.state.name for task in self.attempt.tasks]

    def host(self, rank: int) -> str:
        return self.attempt.parts[self.attempt.tasks[rank].place].host

    def ended(self, rank: int, status: int = 0, number: int = 0, limit: TermReason = TermReason.NONE) -> list[str]:
        """A task ends; the names of the events that follow."""
        bench, run = self.bench, self.attempt
        events = decide.task_ended(
            bench.cluster, self.key, run.uid, self.host(rank), rank, number or run.tasks[rank].number, status, limit, bench.now
        )  # fmt: skip
        bench.take(events)
        return [type(event).__name__ for event in events]

    def started(self, rank: int) -> None:
        bench, run = self.bench, self.attempt
        args = (bench.cluster, self.key, run.uid, self.host(rank), rank, run.tasks[rank].number, 88, bench.now)
        bench.take(decide.task_started(*args))

    def due(self, *kinds: type[Effect]) -> list[Effect]:
        return [effect for effect in effects_due(self.bench.job(self.key)) if isinstance(effect, kinds)]

    def finish(self) -> JobState:
        """Its parts end as they are told to; the job's state then."""
        verdict = self.attempt.verdict
        assert verdict is not None
        assert self.due(FinishPart)
        for part in self.attempt.parts:
            self.bench.ended(self.key, part.host, verdict.status)
        finished = self.bench.cluster.finished.get(self.key)
        check_invariants(self.bench.cluster)
        return finished.state if finished is not None else self.bench.job(self.key).state


def test_ranks_go_along_the_roles(bench: Bench) -> None:
    """0.4, 0.12, 0.15: three roles, five tasks, each with its index; ranks are dense in the order of the roles."""
    job = Roles(bench, role("chief"), role("ps", count=2), role("worker", count=2)).run()
    assert job.names() == ["chief[0]", "ps[0]", "ps[1]", "worker[0]", "worker[1]"]
    assert set(job.states()) == {"RUNNING"}
    spec = bench.cluster.specs.rows[bench.job(job.key).spec]
    assert [(c.name, c.active) for c in counts(spec, job.attempt)] == [("chief", 1), ("ps", 2), ("worker", 2)]


# -- 1.18: restart policies by exit code -------------------------------------------------------------------------------

MATRIX = [
    ("Never", OK, "over"), ("Never", code(1), "failed"), ("Never", code(130), "failed"), ("Never", SEGV, "failed"),
    ("OnFailure", OK, "over"), ("OnFailure", code(1), "again"), ("OnFailure", code(255), "again"), ("OnFailure", SEGV, "again"),
    ("Always", OK, "again"), ("Always", code(1), "again"), ("Always", SEGV, "again"),
    ("ExitCode", OK, "over"), ("ExitCode", code(1), "failed"), ("ExitCode", code(127), "failed"),
    ("ExitCode", code(128), "again"), ("ExitCode", code(255), "again"), ("ExitCode", SEGV, "again"),
    ("ExitCode", TERM, "again"),
]  # fmt: skip
FOLLOWS = {"over": [], "failed": ["JobJudged"], "again": ["TaskRetried"]}


@pytest.mark.parametrize(("policy", "status", "follows"), MATRIX)
def test_the_restart_policies_by_exit_code(bench: Bench, policy: str, status: int, follows: str) -> None:
    """1.18: Never, OnFailure, Always, ExitCode (1-127 for good, 128-255 and signals again)."""
    job = Roles(bench, role(count=2, restart=policy)).run()
    assert job.ended(1, status) == ["TaskEnded", *FOLLOWS[follows]]


def test_a_task_starts_again_in_its_place_until_the_backoff_limit(bench: Bench) -> None:
    """0.15, 0.22, 2.7: same rank, same index, same host; each restart waits longer; then the job fails with one reason."""
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
    outcome = bench.outcome(job.key).outcome
    assert outcome is not None
    assert outcome.why == f"worker[1] on {host} ended with exit code 3, and its 3 restarts are used up"
    assert outcome.status == code(3)


def test_each_task_waits_by_its_own_restarts(bench: Bench) -> None:
    """1.18: many tasks that fail once start again at once."""
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


# -- 1.19: success rules -----------------------------------------------------------------------------------------------

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
    ("chief", [(2, code(5))], "EXIT"),
    ("all", [(0, OK), (1, code(9))], "EXIT"),
]


@pytest.mark.parametrize(("rule", "ends", "state"), RULES)
def test_the_success_rules(bench: Bench, rule: str, ends: list[tuple[int, int]], state: str) -> None:
    """1.19: a role, role[index], all, any; the chief decides where no rule is given; others are ended by the clean policy."""
    job = Roles(bench, *THREE, success=rule).run()
    for at, (rank, status) in enumerate(ends):
        last = at == len(ends) - 1
        assert job.ended(rank, status) == ["TaskEnded", *(["JobJudged"] if last else [])]
    assert job.finish() is JobState[state]


@pytest.mark.parametrize(("clean", "leave"), [("running", False), ("all", False), ("none", True)])
def test_what_becomes_of_survivors(bench: Bench, clean: str, leave: bool) -> None:
    """0.11: running and all end them, none leaves them until they end; a failure ends them in any case."""
    job = Roles(bench, *THREE, clean=clean).run()
    job.ended(0)
    assert [one.leave for one in job.due(FinishPart) if isinstance(one, FinishPart)] == [leave] * len(job.attempt.parts)
    assert not job.due(KillPart)
    other = Roles(bench, *THREE, clean=clean).run()
    other.ended(0, code(1))
    assert {one.leave for one in other.due(FinishPart) if isinstance(one, FinishPart)} == {False}


# -- 1.12: events and actions ------------------------------------------------------------------------------------------

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
    """1.12: TaskFailed and TaskCompleted to RestartTask, RestartJob, AbortJob, CompleteJob, Ignore; of a role, or of all."""
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
    """1.12: RestartJob makes a new attempt with the same ranks, as often as backoff says."""
    job = Roles(bench, role(count=2, actions=[("TaskFailed", "RestartJob", -1)]), backoff=2)
    for attempt in (1, 2):
        job.run()
        assert (job.attempt.number, job.names()) == (attempt, ["worker[0]", "worker[1]"])
        job.ended(0, code(7))
        assert job.finish() is JobState.PEND
    job.run()
    job.ended(0, code(7))
    assert job.finish() is JobState.EXIT
    assert bench.outcome(job.key).retries == 2


# -- 0.17: the order of starts -------------------------------------------------------------------------------------------

MPI = (role("launcher", kind="launcher"), role("worker", command="", kind="hold", count=4))


def test_the_launcher_starts_when_the_others_run(bench: Bench) -> None:
    """0.17: reserved, prepared, released on every host, all others running: then the launcher is started."""
    job = Roles(bench, MPI[0], role("worker", count=8))
    bench.now += 1
    bench.step()
    hosts = [part.host for part in job.attempt.parts]
    assert len(hosts) == 3
    for host in hosts:
        assert not job.due(StartTask)
        bench.said("prepared", job.key, host, f"{host}:1")
    for host in hosts:
        assert not job.due(StartTask)
        bench.start(job.key, host)
    assert [one.rank for one in job.due(StartTask) if isinstance(one, StartTask)] == [0]
    job.started(0)
    assert not job.due(StartTask)
    assert job.ended(0) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.DONE


def test_a_launcher_may_start_at_once(bench: Bench) -> None:
    """0.17: launcher_start at_once: with its part, as all others."""
    job = Roles(bench, MPI[0], role("worker", count=8), launcher_start="at_once").run()
    assert not job.due(StartTask)
    assert set(job.states()) == {"RUNNING"}


def test_the_launcher_decides_and_workers_only_hold_slots(bench: Bench) -> None:
    """0.13, 1.19: success is the launcher's; its failure is the job's."""
    job = Roles(bench, *MPI).run()
    job.started(0)
    assert job.ended(0, code(42)) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT
    outcome = bench.outcome(job.key).outcome
    assert outcome is not None
    assert outcome.status == code(42)


# -- losses and wishes ---------------------------------------------------------------------------------------------------


def test_nothing_starts_again_in_a_job_that_is_killed(bench: Bench) -> None:
    """1.18: bkill ends a job whose tasks always restart."""
    job = Roles(bench, role(count=2, restart="Always")).run()
    wish = Wish(kind="kill", at=bench.now, by="alice", reason=TermReason.TERM_OWNER)
    bench.apply(ev.JobWished(at=bench.now, key=job.key, wish=wish))
    assert job.ended(0, TERM) == ["TaskEnded"]
    assert job.ended(1, TERM) == ["TaskEnded", "JobJudged"]
    assert job.finish() is JobState.EXIT
    outcome = bench.outcome(job.key).outcome
    assert outcome is not None
    assert outcome.reason is TermReason.TERM_OWNER


def test_a_suspended_job_starts_no_task(bench: Bench) -> None:
    job = Roles(bench, role(count=2, restart="OnFailure")).run()
    bench.apply(ev.JobSuspended(at=bench.now, key=job.key, state=JobState.USUSP))
    job.ended(0, code(1))
    assert not job.due(StartTask)
    bench.apply(ev.JobResumed(at=bench.now, key=job.key))
    assert len(job.due(StartTask)) == 1


@pytest.mark.parametrize("rerunnable", [False, True])
def test_a_lost_host_takes_the_whole_job(bench: Bench, rerunnable: bool) -> None:
    """Bad input: a host lost under a job with roles: all of it ends, or waits again, with that reason; nothing restarts."""
    options: dict[str, Any] = {"r": True} if rerunnable else {}
    job = Roles(bench, role(count=8, restart="Always"), options=options).run()
    first, lost = (part.host for part in job.attempt.parts)
    bench.take(report.fenced(bench.cluster, job.key, lost, bench.now))
    assert [part.state for part in job.attempt.parts] == [PartState.RUNNING, PartState.FENCED]
    assert job.ended(0, 9) == []
    assert job.due(KillPart)
    assert not job.due(StartTask, FinishPart)
    bench.ended(job.key, first, 9)
    if rerunnable:
        assert bench.job(job.key).state is JobState.PEND
        return
    outcome = bench.outcome(job.key).outcome
    assert outcome is not None
    assert f"host {lost} was lost" in outcome.why


def test_a_host_that_refuses_sends_the_whole_job_back(bench: Bench) -> None:
    """Bad input: ports taken, or a host that cannot start its part: no part starts, the job waits again."""
    job = Roles(bench, role(count=8))
    bench.step()
    first, second = (part.host for part in job.attempt.parts)
    bench.said("prepared", job.key, first, f"{first}:1")
    bench.said("refused", job.key, second, "ports", "2 free ports are needed between 20000 and 31999")
    assert [one.host for one in job.due(KillPart)] == [first]
    bench.said("gone", job.key, first)
    assert bench.job(job.key).state is JobState.PEND


# -- what is refused -----------------------------------------------------------------------------------------------------

W = role()
BAD: list[tuple[Submit, str]] = [
    (ask(W, options={"n": "4"}), "-n cannot be used with roles"),
    (ask(W, options={"gpu": "num=1:glink=yes"}), "GPU requirements glink and gtile cannot be used with roles"),
    (ask(W, options={"a": ["mpi"]}), "-a mpi cannot be used with roles"),
    (ask(role(software="pytorch")), "role worker: pytorch is no software of a role"),
    (ask(role(software="container()")), "role worker: container: -a container needs something"),
    (ask(W, role("Worker")), "role worker is given twice"),
    (ask(role("a b")), "role 'a b'"),
    (ask(role("all")), "role all"),
    (ask(role(command=" ")), "role worker: No command"),
    (ask(role(count=0)), "role worker: count 0"),
    (ask(role(count=3, least=4)), "role worker: least 4"),
    (ask(role(slots=0)), "role worker: slots 0"),
    (ask(role(gpus=-1)), "role worker: gpus -1"),
    (ask(role(restart="Sometimes")), "role worker: restart Sometimes: it is one of Never, OnFailure, Always, ExitCode"),
    (ask(role(kind="boss")), "role worker: kind boss"),
    (ask(role(resreq="select[")), "role worker: "),
    (ask(role(resreq="select[nosuch>1]")), "role worker: unknown resource <nosuch>: Bad resource requirement syntax"),
    (ask(role(resreq="span[hosts=1]")), "role worker: Bad resource requirement: span[] cannot be used with roles"),
    (ask(W, options={"R": ["2*{mem>1}+1*{mem>2}"]}), "Bad resource requirement: n*{...} cannot be used with roles"),
    (ask(role(limits={"M": "much"})), "role worker: much: Bad MEMLIMIT"),
    (ask(role(limits={"W": "5"})), "role worker: -W is no limit of a role"),
    (ask(role(env={"A=B": "1"})), "role worker: 'A=B'"),
    (ask(role(actions=[("TaskFailed", "Explode", -1)])), "role worker: action Explode"),
    (ask(role(actions=[("TaskSlept", "AbortJob", -1)])), "role worker: event TaskSlept"),
    (ask(W, success="boss"), "success boss: it is a role"),
    (ask(W, success="worker[1]"), "success worker[1]: role worker has 1 tasks"),
    (ask(W, success="worker["), "success worker["),
    (ask(role(kind="hold", command="")), "no role has a command"),
    (ask(W, clean="never"), "clean never"),
    (ask(W, framework="mxnet9"), "framework mxnet9: it is one of mpi, mpich, intelmpi, pytorch, tensorflow, volcano"),
    (ask(W, launcher_start="later"), "launcher_start later"),
    (ask(W, backoff=-1), "backoff -1"),
    (ask(*(role(f"r{n}") for n in range(65))), "65 roles are too many"),
    (ask(role(count=9999), role("b", count=9999)), "the roles have more than 10000 tasks"),
]


@pytest.mark.parametrize(("asked", "why"), BAD)
def test_what_is_wrong_is_refused_by_name(bench: Bench, asked: Submit, why: str) -> None:
    """Bad input: one line that names the role and the reason, and no job."""
    with pytest.raises(Refused) as refused:
        submit(bench.cluster, asked, ALICE, bench.now, LOCAL)
    assert refused.value.text.startswith(why)
    assert "\n" not in refused.value.text


def test_states_of_tasks_are_kept_for_the_last_look(bench: Bench) -> None:
    """2.7: a finished job still knows how its tasks ended."""
    job = Roles(bench, *THREE).run()
    job.ended(2)
    job.ended(0)
    assert job.ended(3, TERM) == [], "what was ended with the job did not fail"
    job.finish()
    run = bench.outcome(job.key).run
    assert run is not None
    assert [task.state for task in run.tasks] == [
        TaskState.SUCCEEDED, TaskState.RUNNING, TaskState.SUCCEEDED, TaskState.RUNNING
    ]  # fmt: skip
