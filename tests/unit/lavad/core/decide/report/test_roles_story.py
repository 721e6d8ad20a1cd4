"""Any story of a job with roles: it never stands still, never starts a task twice, and ends with every part."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.job import Attempt
from lavad.core.lang.asks import Submit
from lavad.core.lang.role_asks import PolicyAsk, RoleAsk
from lavad.core.lang.states import TASK_OVER, JobState, TaskState
from lavad.core.rules.effects import EndTask, FinishPart, KillPart, StartTask, effects_due
from tests.support.examples import examples
from tests.support.worlds.bench import ALICE, LOCAL, Bench

TOGETHER = ("RestartGroup", "RestartGroupUncounted", "RestartRole")
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["TaskFailed", "TaskCompleted", "Any"]),
        st.sampled_from([*TOGETHER, "RestartJob", "RestartTask", "AbortJob", "CompleteJob", "Ignore"]),
        st.sampled_from([-1, 1]),
    ),
    max_size=2,
)
ROLES = st.lists(
    st.builds(
        lambda count, kind, **fields: RoleAsk(count=count, kind=kind, command="" if kind == "hold" else "./x", **fields),
        name=st.sampled_from(["a", "b", "c"]),
        count=st.integers(1, 3),
        kind=st.sampled_from(["", "", "launcher", "hold"]),
        restart=st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"]),
        actions=ACTIONS,
        group=st.integers(0, 2),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda role: role.name,
).filter(lambda roles: any(role.kind != "hold" for role in roles))
POLICY = st.builds(
    PolicyAsk,
    success=st.sampled_from(["", "all", "any", "all | any", "any & all"]),
    clean=st.sampled_from(["running", "none"]),
    launcher_start=st.sampled_from(["when_ready", "at_once"]),
    backoff=st.integers(0, 4),
    actions=ACTIONS,
)
ENDS = st.lists(st.tuples(st.integers(0, 8), st.sampled_from([0, 0, 1 << 8, 137 << 8, 9])), min_size=1, max_size=60)


class Story:
    """One job; ``hosts`` do what they are told."""

    def __init__(self, roles: list[RoleAsk], policy: PolicyAsk, starter: int) -> None:
        self.bench = Bench()
        self.bench.hosts("h1", "h2", "h3", slots=4, starter=starter)
        ask = Submit(command="./x", cwd="/", roles=roles, policy=policy)
        self.key = int(self.bench.take(submit(self.bench.cluster, Given(ask, ALICE, self.bench.now, LOCAL)))["job"])
        self.holds = [role.kind == "hold" for role in roles]
        self.seen: set[tuple[int, int, int]] = set()

    @property
    def run(self) -> Attempt | None:
        job = self.bench.cluster.jobs.rows.get(self.key)
        return job.run if job is not None else None

    def dispatch(self) -> None:
        self.bench.now += 1000
        self.bench.step()
        run = self.run
        assert run is not None
        for part in run.parts if len(run.parts) > 1 else ():
            self.bench.said("prepared", self.key, part.host, f"{part.host}:1")
        for part in run.parts:
            self.bench.start(self.key, part.host)

    def obey(self) -> None:
        """Start what is to be started, end what is to end."""
        run = self.run
        assert run is not None
        for effect in effects_due(self.bench.job(self.key)):
            if isinstance(effect, StartTask):
                name = (run.number, effect.rank, effect.number)
                assert name not in self.seen, "a task is started twice"
                self.seen.add(name)
                bench = self.bench
                bench.said("task_started", self.key, effect.host, effect.rank, effect.number, 7, uid=run.uid)
            elif isinstance(effect, EndTask):
                assert run.tasks[effect.rank].number == effect.number, "another start is ended"
                self.end(effect.rank, 15)
                return self.obey()  # others may start with its end
        if run.judged:
            self.finish(run)

    def finish(self, run: Attempt) -> None:
        due = effects_due(self.bench.job(self.key))
        for place, part in enumerate(run.parts):
            told = [one for one in due if one.host == part.host and isinstance(one, FinishPart | KillPart)]
            assert told, "a part that nobody ends"
            now = self.run
            assert now is not None
            for rank, task in enumerate(now.tasks):
                if task.place == place and task.state is TaskState.RUNNING and now.leave:
                    self.end(rank, 0)
            assert run.verdict is not None
            self.bench.ended(self.key, part.host, run.verdict.status)

    def end(self, rank: int, status: int) -> None:
        run = self.run
        assert run is not None
        task, bench = run.tasks[rank], self.bench
        bench.said("task_ended", self.key, run.parts[task.place].host, rank, task.number, status, uid=run.uid)

    def alive(self) -> list[int]:
        """Ranks that run something."""
        run = self.run
        assert run is not None
        return [n for n, task in enumerate(run.tasks) if task.state is TaskState.RUNNING and not self.holds[task.role]]


@settings(max_examples=examples(300))
@given(ROLES, POLICY, ENDS, st.sampled_from([1, 2]))
def test_a_job_with_roles_goes_on_or_ends(
    roles: list[RoleAsk], policy: PolicyAsk, ends: list[tuple[int, int]], starter: int
) -> None:
    """As long as it has no verdict something of it runs; when it has one, every part is told to end."""
    story = Story(roles, policy, starter)
    story.dispatch()
    for which, status in ends:
        story.obey()
        job = story.bench.cluster.jobs.rows.get(story.key)
        if job is None:
            break
        if job.state is JobState.PEND:
            story.dispatch()
            continue
        run = story.run
        assert run is not None
        alive = story.alive()
        assert alive, f"nothing of it runs, and it has no verdict: {run.tasks}"
        story.end(alive[which % len(alive)], status)
        check_invariants(story.bench.cluster)
    finished = story.bench.cluster.finished.get(story.key)
    if finished is not None:
        assert finished.retries <= policy.backoff
        assert finished.run is not None
        assert finished.outcome is not None
        assert (finished.state is JobState.DONE) == (finished.outcome.status == 0)
        if finished.state is JobState.EXIT:
            assert finished.outcome.why
        if policy.clean == "none" and finished.state is JobState.DONE:
            assert all(task.state in TASK_OVER for task in finished.run.tasks if not story.holds[task.role])
