"""Jobs with roles as a user asks for them, and one that is run by hand, task by task."""

from __future__ import annotations

from typing import Any

from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.job import Attempt
from lavad.core.job.roles import task_name
from lavad.core.lang.asks import Submit
from lavad.core.lang.role_asks import PolicyAsk, RoleAsk
from lavad.core.lang.states import JobState, TermReason
from lavad.core.rules.effects import Effect, FinishPart, effects_due
from tests.support.worlds.bench import ALICE, LOCAL, Bench

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
        self.key = int(bench.take(submit(bench.cluster, Given(made, ALICE, bench.now, LOCAL)))["job"])

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
        start = number or run.tasks[rank].number
        return bench.said("task_ended", self.key, self.host(rank), rank, start, status, limit, uid=run.uid)

    def started(self, rank: int) -> None:
        bench, run = self.bench, self.attempt
        bench.said("task_started", self.key, self.host(rank), rank, run.tasks[rank].number, 88, uid=run.uid)

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
