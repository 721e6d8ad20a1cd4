"""Any story of a job with roles beside all else that befalls jobs: users who stop, kill, requeue and migrate it, hosts that are
silent or are lost, reports that come twice, time, and agents of the release before."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.checkpoint import checkpoint
from lavad.core.decide.control.control import kill, migrate, requeue, resume, stop
from lavad.core.decide.control.hosts import expired, greeted, silent
from lavad.core.decide.report.array_ends import overdue
from lavad.core.decide.report.tasks import postponed
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.job import Attempt, End, Job
from lavad.core.lang.asks import Checkpoint, Kill, Migrate, OptionValue, Requeue, Resume, Select, Stop, Submit
from lavad.core.lang.role_asks import PolicyAsk, RoleAsk
from lavad.core.lang.states import HostState, JobState, SignalKind, TaskState
from lavad.core.rules.effects import (
    EndTask,
    FinishPart,
    KillPart,
    ReleasePart,
    SignalPart,
    StartPart,
    StartTask,
    StopPart,
    effects_due,
)
from tests.support.examples import examples
from tests.support.worlds.bench import ALICE, LOCAL, Bench

HOSTS = ("h1", "h2", "h3")
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["TaskFailed", "TaskCompleted", "Any"]),
        st.sampled_from(
            [
                "RestartGroup",
                "RestartGroup",
                "RestartGroup(30)",
                "RestartGroupUncounted",
                "RestartRole",
                "RestartRole(30)",
                "RestartJob",
                "RestartJob(30)",
                "RestartTask",
                "AbortJob(30)",
                "CompleteJob(30)",
                "AbortJob",
                "Ignore",
            ]
        ),
        st.sampled_from([-1, -1, 1]),
    ),
    max_size=2,
)
ROLES = st.lists(
    st.builds(
        lambda count, kind, **fields: RoleAsk(count=count, kind=kind, command="" if kind == "hold" else "./x", **fields),
        name=st.sampled_from(["a", "b", "c"]),
        count=st.integers(1, 4),
        kind=st.sampled_from(["", "", "", "launcher", "hold"]),
        restart=st.sampled_from(["Never", "Never", "OnFailure", "Always", "ExitCode"]),
        actions=ACTIONS,
        group=st.integers(0, 2),
        backoff=st.sampled_from([-1, -1, 1]),
        backoff_each=st.booleans(),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda role: role.name,
).filter(lambda roles: any(role.kind != "hold" for role in roles))
POLICY = st.builds(
    PolicyAsk,
    success=st.sampled_from(["", "all", "any"]),
    clean=st.sampled_from(["running", "none"]),
    launcher_start=st.sampled_from(["when_ready", "at_once"]),
    backoff=st.integers(0, 4),
    time_limit=st.sampled_from([0, 0, 0, 500]),
    actions=ACTIONS,
)
DONE_BY = ["obey", "obey", "obey", "obey", "end", "end", "end", "fail", "fail", "fail", "stop", "resume", "kill", "requeue"]
SAVED_BY = ["migrate", "migrate", "checkpoint", "saved", "unsaved"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*DONE_BY, *SAVED_BY, "silent", "lost", "heard", "again", "time", "time", "schedule", "old"]),
        st.integers(0, 11),
    ),
    min_size=5,
    max_size=60,
)


class Story:
    """One job. ``real``: what really runs on the hosts, by (uid, rank)."""

    def __init__(self, roles: list[RoleAsk], policy: PolicyAsk, options: dict[str, OptionValue]) -> None:
        self.bench = Bench()
        ask = Submit(command="./x", cwd="/", roles=roles, policy=policy, options=options)
        self.key = int(self.bench.take(submit(self.bench.cluster, Given(ask, ALICE, self.bench.now, LOCAL)))["job"])
        self.holds = [role.kind == "hold" for role in roles]
        self.real: dict[tuple[str, int], tuple[str, int]] = {}
        self.kept: dict[tuple[str, str], str] = {}
        self.ever: set[tuple[str, int, int]] = set()
        self.past: list[tuple[Any, ...]] = []
        self.saving: dict[int, SignalPart] = {}
        """What the first host was asked for and answers once the checkpoint is written, by number."""
        self.saves = "k" in options

    @property
    def job(self) -> Job | None:
        return self.bench.cluster.jobs.rows.get(self.key)

    @property
    def run(self) -> Attempt | None:
        return self.job.run if self.job is not None else None

    def say(self, what: str, host: str, uid: str, *values: object) -> None:
        self.past.append((what, host, uid, *values))
        self.bench.said(what, self.key, host, *values, uid=uid)

    def is_heard(self, host: str) -> bool:
        return self.bench.cluster.hosts.rows[host].state is HostState.OK

    def ids(self) -> Select:
        return Select(ids=[str(self.key)])

    def obey(self, _: int = 0) -> None:
        """Hosts that are heard do what is due."""
        job = self.job
        if job is None or job.run is None:
            return
        for effect in effects_due(job):
            if self.is_heard(effect.host):
                self.do(effect)

    def do(self, effect: Any) -> None:
        """What the host of an effect does about it, as long as it is about what it has."""
        run = self.run
        if run is None or run.uid != effect.uid or self.kept.get((effect.uid, effect.host)) == "gone":
            return
        carry_out = getattr(self, f"do_{type(effect).__name__.lower()}", None)
        if carry_out is not None:
            carry_out(effect, run, self.kept.get((effect.uid, effect.host), "") == "running")

    def do_startpart(self, effect: StartPart, run: Attempt, _: bool) -> None:
        if (effect.uid, effect.host) not in self.kept:
            self.kept[effect.uid, effect.host] = "prepared"
            if effect.two_phase:
                self.say("prepared", effect.host, effect.uid, f"{effect.host}:1")
            else:
                self.begin(effect.host, run)

    def do_releasepart(self, effect: ReleasePart, run: Attempt, runs: bool) -> None:
        if not runs and (effect.uid, effect.host) in self.kept:
            self.begin(effect.host, run)

    def do_starttask(self, effect: StartTask, _: Attempt, runs: bool) -> None:
        start = (effect.uid, effect.rank, effect.number)
        if runs and start not in self.ever:
            assert start[:2] not in self.real, "a second copy of a task"
            self.real[start[:2]] = (effect.host, effect.number)
            self.ever.add(start)
            self.say("task_started", effect.host, effect.uid, effect.rank, effect.number, 7)

    def do_endtask(self, effect: EndTask, run: Attempt, _: bool) -> None:
        assert run.tasks[effect.rank].state is TaskState.RUNNING
        if self.real.get((effect.uid, effect.rank)) == (effect.host, effect.number):
            self.over(effect.uid, effect.rank, 15)

    def do_finishpart(self, effect: FinishPart, _: Attempt, runs: bool) -> None:
        if runs:
            self.end_part(effect, 0 if effect.leave else 9, effect.status)

    def do_killpart(self, effect: KillPart, _: Attempt, runs: bool) -> None:
        if runs:
            self.end_part(effect, 9, 9)
        else:
            self.never_began(effect)

    def do_signalpart(self, effect: SignalPart, _: Attempt, runs: bool) -> None:
        kind, run = effect.pending.kind, self.run
        assert run is not None
        if runs and self.saves and kind in (SignalKind.CHECKPOINT, SignalKind.MIGRATE):
            if run.parts[0].host == effect.host:
                self.saving[effect.pending.number] = effect
            else:
                self.say("granted", effect.host, effect.uid, effect.pending.number, True, "")
        elif effect.pending.ends and runs:
            self.end_part(effect, 15, 15)
        elif effect.pending.ends:
            self.never_began(effect)

    def saved(self, number: int) -> None:
        """A checkpoint is written, which ends the part where it was asked to end with it."""
        if asked := self.asked(number):
            self.say("granted", asked.host, asked.uid, asked.pending.number, True, "")
            if asked.pending.ends:
                self.end_part(asked, 15, 15)

    def unsaved(self, number: int) -> None:
        """It is not, and the job runs on."""
        if asked := self.asked(number):
            self.say("granted", asked.host, asked.uid, asked.pending.number, False, "no process of the job catches SIGUSR2")

    def asked(self, number: int) -> SignalPart | None:
        """What some checkpoint was asked for, of those that are still to be written."""
        runs = {n: one for n, one in self.saving.items() if self.kept.get((one.uid, one.host)) == "running"}
        self.saving = {n: one for n, one in runs.items() if self.run is not None and self.run.uid == one.uid}
        asked = [n for n, one in self.saving.items() if self.is_heard(one.host)]
        return self.saving.pop(asked[number % len(asked)]) if asked else None

    def do_stoppart(self, effect: StopPart, _: Attempt, __: bool) -> None:
        self.say("stopped", effect.host, effect.uid, effect.stopped)

    def end_part(self, effect: Any, tasks: int, status: int) -> None:
        """All tasks of a part end, then the part."""
        for rank in self.on(effect.host, effect.uid):
            self.over(effect.uid, rank, tasks)
        self.kept[effect.uid, effect.host] = "gone"
        self.say("ended", effect.host, effect.uid, End(status=status, at=self.bench.now), True)

    def never_began(self, effect: Any) -> None:
        self.kept[effect.uid, effect.host] = "gone"
        self.say("gone", effect.host, effect.uid)

    def begin(self, host: str, run: Attempt) -> None:
        """A part starts, and with it its tasks that are not late."""
        self.kept[run.uid, host] = "running"
        for rank, task in enumerate(run.tasks):
            if run.parts[task.place].host == host and not task.late:
                self.real[run.uid, rank] = (host, 1)
                self.ever.add((run.uid, rank, 1))
        self.say("started", host, run.uid, 77, self.bench.now, "/")

    def on(self, host: str, uid: str) -> list[int]:
        return [rank for (one, rank), (where, _) in self.real.items() if one == uid and where == host]

    def over(self, uid: str, rank: int, status: int) -> None:
        host, number = self.real.pop((uid, rank))
        self.say("task_ended", host, uid, rank, number, status)

    def alive(self) -> list[tuple[str, int]]:
        """What can end by itself: its host is heard, and the job is not stopped."""
        run = self.run
        if run is None:
            return []
        return [
            (uid, rank)
            for (uid, rank), (host, _) in sorted(self.real.items())
            if uid == run.uid and self.is_heard(host) and not self.holds[run.tasks[rank].role]
        ]

    def step(self, what: str, number: int) -> None:
        """One thing happens; ``number`` says where, to whom, how, or how much."""
        getattr(self, what)(number)
        check_invariants(self.bench.cluster)

    def end(self, number: int) -> None:
        if alive := self.alive():
            self.over(*alive[number % len(alive)], 0)

    def fail(self, number: int) -> None:
        if alive := self.alive():
            self.over(*alive[number % len(alive)], (1 << 8, 3 << 8, 137 << 8, 9)[number % 4])

    def stop(self, _: int) -> None:
        self.bench.asked(stop, Stop(jobs=self.ids()))

    def resume(self, _: int) -> None:
        self.bench.asked(resume, Resume(jobs=self.ids()))

    def kill(self, number: int) -> None:
        if number < 2:
            self.bench.asked(kill, Kill(jobs=self.ids()))

    def requeue(self, number: int) -> None:
        if number < 4:
            self.bench.asked(requeue, Requeue(jobs=self.ids()))

    def migrate(self, number: int) -> None:
        if number < 4:
            self.bench.asked(migrate, Migrate(jobs=self.ids()))

    def checkpoint(self, number: int) -> None:
        """bchkpnt, sometimes -k."""
        self.bench.asked(checkpoint, Checkpoint(jobs=self.ids(), kill=number < 3))

    def silent(self, number: int) -> None:
        self.bench.take(silent(self.bench.cluster, HOSTS[number % 3], self.bench.now))

    def lost(self, number: int) -> None:
        """A host is silent until its leases are over: what has one does not run there any more."""
        cluster, host = self.bench.cluster, HOSTS[number % 3]
        spec = cluster.specs.rows[self.job.spec] if self.job is not None else None
        rerunnable = spec is not None and (spec.rerunnable or spec.checkpoint is not None)
        self.silent(number)
        self.bench.take(expired(cluster, host, [self.key], self.bench.now))
        for uid, where in list(self.kept) if rerunnable else ():
            if where == host:
                self.kept[uid, host] = "gone"
                for rank in self.on(host, uid):
                    del self.real[uid, rank]

    def again(self, number: int) -> None:
        """A report of before comes once more."""
        if self.past:
            what, where, uid, *values = self.past[-1 - number % len(self.past)]
            self.bench.said(what, self.key, where, *values, uid=uid)

    def time(self, number: int) -> None:
        self.bench.now += 10.0 * number
        self.bench.take(postponed(self.bench.cluster, self.bench.now))
        self.bench.take(overdue(self.bench.cluster, self.bench.now))

    def schedule(self, _: int) -> None:
        self.bench.now += 100.0
        if any(self.is_heard(one) for one in HOSTS):
            self.bench.step()

    def old(self, number: int) -> None:
        """A host comes back with the release before."""
        if number == 0:
            self.bench.hosts("h1", slots=4, starter=1)

    def go_on(self) -> None:
        """Time passes, and all that is due is done."""
        for _ in range(6):
            job = self.job
            if job is None:
                return
            if job.state in (JobState.PSUSP, JobState.USUSP):
                self.step("resume", 0)
            self.step("schedule", 0)
            self.step("time", 11)
            self.obey()
            self.step("unsaved", 0)

    def heard(self, number: int) -> None:
        cluster, host = self.bench.cluster, HOSTS[number % 3]
        known = {uid: "" for (uid, where), state in self.kept.items() if where == host and state != "gone"}
        self.bench.take(greeted(cluster, host, cluster.hosts.rows[host].facts, known, self.bench.now))


@settings(max_examples=examples(1000))
@given(ROLES, POLICY, st.sampled_from([{}, {"r": True}, {"k": "/ck"}]), STEPS)
def test_a_job_with_roles_comes_to_an_end_whatever_befalls_it(
    roles: list[RoleAsk], policy: PolicyAsk, options: dict[str, OptionValue], steps: list[tuple[str, int]]
) -> None:
    story = Story(roles, policy, options)
    story.step("schedule", 0)
    for _ in range(4):
        story.obey()
    for what, number in steps:
        story.step(what, number)
    # all is well again, and all that runs ends well
    for number in range(len(HOSTS)):
        story.heard(number)
    for _ in range(30):
        story.go_on()
        if story.job is None:
            return
        for one in story.alive():
            if one in story.real and story.job is not None:
                story.over(*one, 0)
    story.go_on()
    if story.job is None:
        return
    assert story.alive(), story.job
    story.bench.asked(kill, Kill(jobs=story.ids()))
    for _ in range(4):
        story.obey()
    assert story.job is None
