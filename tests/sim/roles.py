"""Jobs with roles in virtual time: hosts with single tasks and checkpoints that may fail, and users who ask for all there is.

Rule: a host knows of tasks what it was told in orders; the watch alone sees that none runs twice, and that none is left.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control import checkpoint, control
from lavad.core.decide.report.tasks import ENDS_TASKS, postponed
from lavad.core.decide.submit import submit
from lavad.core.job.job import Job
from lavad.core.lang.asks import Checkpoint, Kill, Migrate, Requeue, Resume, Select, Stop, Submit
from lavad.core.lang.role_asks import PolicyAsk, RoleAsk
from lavad.core.lang.states import JobState, SignalKind
from lavad.core.rules.effects import Effect, EndTask, FinishPart, SignalPart, StartPart, StartTask
from lavad.core.site.host import Facts
from lavad.hosts.sessions import Session
from proto.answers import Answer
from tests.sim.agents import Host, Part
from tests.sim.master import Master
from tests.sim.net import Order
from tests.sim.simulation import ALICE, LOCAL, Simulation
from tests.sim.watch import Broken

ACTIONS = (
    "RestartTask",
    "RestartGroup",
    "RestartGroupUncounted",
    "RestartRole",
    "RestartJob",
    "AbortJob(60)",
    "Ignore",
    "RestartGroup(30)",
)
WELL_AT = 4
"""No task fails at a later start, or in a later attempt, so that whatever restarts comes to an end."""


class RoleOrder(Order):
    """A start with the tasks of the part: (rank, whether it starts with the part, whether it has a process)."""

    tasks: tuple[tuple[int, bool, bool], ...] = ()
    saves = False


class RoleMaster(Master):
    """Says in its orders which tasks there are, and does what is due by time."""

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self._loop(5.0, self._postponed)

    def _postponed(self) -> None:
        if not self._busy and postponed(self.cluster, self.time.now).events:
            self.ask(postponed)

    def _start_order(self, session: Session, effect: StartPart, job: Job) -> Order:
        given = super()._start_order(session, effect, job)
        order = RoleOrder(effect, given.slots, given.first, given.sequence, given.expires, given.lease)
        run, spec = job.run, self.cluster.specs.rows[job.spec]
        assert run is not None
        order.saves = spec.checkpoint is not None
        order.tasks = tuple(
            (rank, not task.late, spec.roles[task.role].kind != "hold")
            for rank, task in enumerate(run.tasks)
            if run.parts[task.place].host == effect.host
        )
        return order


class Task:
    """One start of a task on its host."""

    def __init__(self, number: int, left: float, status: int) -> None:
        self.number, self.left, self.status = number, left, status
        self.since = 0.0
        self.turn = 0


class RoleHost(Host):
    """As a host, with tasks. What it last said of each it says again when its agent has lost its memory."""

    @property
    def facts(self) -> Facts:
        return replace(super().facts, starter=ENDS_TASKS)

    def _tasks(self, part: Part) -> dict[int, Task]:
        found: dict[int, Task] = part.__dict__.setdefault("tasks", {})
        return found

    def _said(self, part: Part) -> dict[int, tuple[Any, ...]]:
        found: dict[int, tuple[Any, ...]] = part.__dict__.setdefault("said", {})
        return found

    def _saving(self, part: Part) -> set[int]:
        found: set[int] = part.__dict__.setdefault("saving", set())
        return found

    def _begin(self, order: Order, effect: Effect) -> None:
        super()._begin(order, effect)
        part = self.parts[effect.uid]
        part.__dict__["order"] = order
        if part.state == "running":
            self._start_first(part)

    def _run(self, part: Part) -> None:
        super()._run(part)
        if "order" in part.__dict__:
            self._start_first(part)

    def _start_first(self, part: Part) -> None:
        for rank, at_once, _ in part.__dict__["order"].tasks:
            if at_once and rank not in self._said(part):
                self._start_task(part, rank, 1, first=True)
        self._say(self._report("started", part.key, part.uid, 77, self.time.now, "/"))

    def _go_on(self, part: Part) -> None:
        """A part of a job with roles has no end of its own."""
        for rank in list(self._tasks(part)):
            self._time_task(part, rank)

    def _stop(self, part: Part, stopped: bool) -> None:
        if stopped and not part.stopped:
            for task in self._tasks(part).values():
                task.left -= self.time.now - task.since
                task.turn += 1
        super()._stop(part, stopped)

    def take(self, order: Order) -> None:
        effect = order.effect
        part = self.parts.get(effect.uid)
        runs = part is not None and part.state == "running"
        if isinstance(effect, StartTask | EndTask | FinishPart):
            if part is not None and runs:
                self._obey(part, effect)
        elif part is not None and isinstance(effect, SignalPart) and self._saves(part, effect):
            self._asked_to_save(part, effect)
        else:
            super().take(order)

    def _obey(self, part: Part, effect: Effect) -> None:
        if isinstance(effect, StartTask):
            newest = self._said(part).get(effect.rank, (0, 0))[1]
            if effect.number > newest:
                self._said(part)[effect.rank] = ("ordered", effect.number)
                self.time.after(effect.delay, lambda: self._start_task(part, effect.rank, effect.number))
        elif isinstance(effect, EndTask):
            task = self._tasks(part).get(effect.rank)
            if task is not None and task.number == effect.number:
                self.time.after(self.time.random.uniform(0.0, 2.0), lambda: self._end_task(part, effect.rank, task, 15))
        elif isinstance(effect, FinishPart) and effect.leave and self._lively(part):
            part.__dict__["finish"] = effect.status
        elif isinstance(effect, FinishPart):
            self.time.after(self.time.random.uniform(0.0, 1.0), lambda: self.end(part, effect.status))

    def _lively(self, part: Part) -> bool:
        return any(self._has_process(part, rank) for rank in self._tasks(part))

    def _has_process(self, part: Part, rank: int) -> bool:
        return any(process for one, _, process in part.__dict__["order"].tasks if one == rank)

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def _start_task(self, part: Part, rank: int, number: int, first: bool = False) -> None:
        if self.parts.get(part.uid) is not part or part.state != "running":
            return
        if rank in self._tasks(part):
            raise Broken(f"task {rank} of {part.uid} runs twice on {self.name}")
        random = self.time.random
        fails = number < WELL_AT and part.attempt < WELL_AT and random.random() < 0.4
        status = random.choice((256, 256, 768, 9)) if fails else 0
        left = random.choice((0.2, 3.0, 40.0, 200.0)) if self._has_process(part, rank) else 1e9
        self._tasks(part)[rank] = Task(number, left, status)
        self._tell(part, "task_started", rank, number, 88, silent=first)
        if not part.stopped:
            self._time_task(part, rank)

    def _time_task(self, part: Part, rank: int) -> None:
        task = self._tasks(part)[rank]
        task.since, turn = self.time.now, task.turn

        def done() -> None:
            if task.turn == turn:
                self._end_task(part, rank, task, task.status)

        self.time.after(max(0.0, task.left), done)

    def _end_task(self, part: Part, rank: int, task: Task, status: int) -> None:
        if self._tasks(part).get(rank) is task and self.parts.get(part.uid) is part and part.state == "running":
            del self._tasks(part)[rank]
            self._tell(part, "task_ended", rank, task.number, status)
            if "finish" in part.__dict__ and not self._lively(part):
                self.end(part, part.__dict__["finish"])

    def _tell(self, part: Part, what: str, rank: int, number: int, value: int, silent: bool = False) -> None:
        self._said(part)[rank] = (what, number, value)
        if not silent:
            self._say(self._report(what, part.key, part.uid, rank, number, value))

    def end(self, part: Part, status: int, reason: str = "") -> None:
        """Its tasks end with it; whether the master hears of each before is chance."""
        if self.parts.get(part.uid) is part and part.state == "running":
            for rank, task in list(self._tasks(part).items()):
                if self.time.random.random() < 0.5:
                    self._end_task(part, rank, task, 9)
            self._tasks(part).clear()
        super().end(part, status, reason)

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def _saves(self, part: Part, effect: SignalPart) -> bool:
        kind = effect.pending.kind
        saves = "order" in part.__dict__ and part.__dict__["order"].saves
        return saves and (kind is SignalKind.CHECKPOINT or (kind is SignalKind.MIGRATE and part.state == "running"))

    def _asked_to_save(self, part: Part, effect: SignalPart) -> None:
        """The first host's tasks write it, or not; it ends the part where it was asked for to that end."""
        pending = effect.pending
        if not part.first or part.state in ("ended", "gone"):
            self._say(self._report("granted", part.key, part.uid, pending.number, not part.first, ""))
        elif part.state == "running" and pending.number not in self._saving(part):
            self._saving(part).add(pending.number)
            self.time.after(self.time.random.choice((0.1, 5.0, 120.0)), lambda: self._saved(part, effect))

    def _saved(self, part: Part, effect: SignalPart) -> None:
        number, alive = effect.pending.number, self.parts.get(part.uid) is part and part.state == "running"
        if not alive or number not in self._saving(part):
            return  # an agent that was started again is asked again
        self._saving(part).discard(number)
        ok = self.time.random.random() < 0.4
        if ok:
            self._say(self._report("checkpointed", part.key, part.uid, int(self.time.now)))
        self._say(self._report("granted", part.key, part.uid, number, ok, "" if ok else "no checkpoint was written"))
        if ok and effect.pending.kind is SignalKind.MIGRATE:
            self.end(part, 9)

    def crash_agent(self, down: float) -> None:
        super().crash_agent(down)
        for part in self.parts.values():
            self._saving(part).clear()

        def back() -> None:
            for part in self.parts.values():
                for rank, (what, number, *value) in self._said(part).items():
                    if what != "ordered" and part.end is None:
                        self.outbox.append(self._report(what, part.key, part.uid, rank, number, *value))

        self.time.after(down, back)


class RoleSimulation(Simulation):
    """Users submit jobs with roles, and stop, resume, kill, requeue, migrate and checkpoint them at any moment of their life."""

    def __init__(self, seed: int, master: type[RoleMaster] = RoleMaster, host: type[RoleHost] = RoleHost, **how: Any) -> None:
        self.asked: list[str] = []
        super().__init__(seed, master=master, host=host, **how)

    def _roles(self) -> Submit:
        random = self.time.random

        def actions() -> list[tuple[str, str, int]]:
            return [("TaskFailed", random.choice(ACTIONS), random.choice((-1, 1)))] if random.random() < 0.6 else []

        kinds = ["", random.choice(("", "launcher", "hold"))][: random.randint(1, 2)]
        roles = [
            RoleAsk(
                name="ab"[at],
                count=random.randint(1, 3),
                command="" if kind == "hold" else "./x",
                kind=kind,
                restart=random.choice(("Never", "OnFailure", "ExitCode")),
                group=random.choice((0, 0, 2)),
                actions=actions(),
                **self._needs(),
            )
            for at, kind in enumerate(kinds)
        ]
        success, clean = random.choice(("", "all", "any")), random.choice(("running", "none"))
        options: dict[str, Any] = random.choice(({}, {"r": True}, {"k": "/ck"}, {"k": "/ck"}))
        if len(self.queues) > 2:
            options = {**options, "q": random.choice(self.queues)}
        policy = PolicyAsk(success=success, clean=clean, backoff=random.randint(0, 4), actions=actions())
        return Submit(command="./x", cwd="/", roles=roles, policy=policy, options=options)

    def _needs(self) -> dict[str, Any]:
        """What each task of a role asks for."""
        return {}

    def _submit(self) -> None:
        ask = self._roles()
        self.submissions += 1

        def decide(cluster: Cluster, now: float) -> Decided:
            return submit.submit(cluster, submit.Given(ask, ALICE, now, LOCAL))

        def answered(answer: Answer) -> None:
            job = int(answer["job"])
            self.acknowledged[job] = None
            self.watch.may_repeat.add(job)
            self.time.tell(f"user: job {job} is submitted {ask}")

        self._ask_until_answered(decide, answered)

    def _control(self) -> None:
        random = self.time.random
        job = random.choice(list(self.acknowledged))
        jobs = Select(ids=[str(job)])
        asks: dict[str, tuple[Any, Any]] = {
            "kill": (control.kill, Kill(jobs=jobs)),
            "stop": (control.stop, Stop(jobs=jobs)),
            "resume": (control.resume, Resume(jobs=jobs)),
            "requeue": (control.requeue, Requeue(jobs=jobs)),
            "migrate": (control.migrate, Migrate(jobs=jobs)),
            "checkpoint": (checkpoint.checkpoint, Checkpoint(jobs=jobs)),
            "checkpoint -k": (checkpoint.checkpoint, Checkpoint(jobs=jobs, kill=True)),
        }
        what = random.choice([*asks, "resume", "migrate", "migrate", "checkpoint"])
        decide, ask = asks[what]
        if what in ("kill", "checkpoint -k"):
            self.killed.add(job)
        self.asked.append(what)
        self.time.tell(f"user: {what} {job}")
        self._ask_until_answered(lambda cluster, now: decide(cluster, ask, ALICE, now), lambda answer: None)

    def _check_outcome(self, event: ev.JobFinished) -> None:
        """A job that nobody has ended says why it failed."""
        if (event.state is JobState.DONE) != (event.status == 0) and event.key not in self.killed:
            raise Broken(f"job {event.key} is {event.state.name} with status {event.status}")
        if event.state is JobState.EXIT and event.key not in self.killed and not event.why:
            raise Broken(f"job {event.key} failed, and nothing says why: {event}")
