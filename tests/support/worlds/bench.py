"""A cluster of three hosts with a job or two in any state, for tests of decisions: ``asked`` decides and applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.hosts import silent
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.checkpoints import Checkpoints
from lavad.core.job.job import Attempt, End, Job, Outcome
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, OptionValue, Submit
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Conf, Params
from tests.support.worlds.world import World

LOCAL = datetime(2026, 11, 20, 12, 0)
ALICE = Caller(user="alice", uid=1000, host="h1")
BOB = Caller(user="bob", uid=1001, host="h1")
ADMIN = Caller(user="boss", uid=1002, host="h1")
ROOT = Caller(user="root", uid=0, host="h1")


class Bench(World):
    """A world that decides."""

    def __init__(self) -> None:
        queues = (QueueConfig(name="normal", priority=30), QueueConfig(name="night", priority=20))
        super().__init__(Conf(admins=("boss",), params=Params(lava_host_timeout=60, lava_lease=600), queues=queues))
        self.hosts("h1", "h2", "h3", slots=4, starter=2)

    def take(self, decided: Decided | Sequence[ev.Event]) -> Any:
        """Apply what was decided; its answer."""
        events = decided.events if isinstance(decided, Decided) else decided
        self.apply(*events)
        check_invariants(self.cluster)
        return decided.answer if isinstance(decided, Decided) else events

    def asked(self, decide: Callable[..., Decided], ask: Any, caller: Caller = ALICE) -> list[tuple[str, str]]:
        """Ids and why nots of an ask about jobs."""
        answer = self.take(decide(self.cluster, ask, caller, self.now))
        return [(row["id"], row["why"]) for row in answer["results"]]

    def bsub(self, caller: Caller = ALICE, command: str = "sleep 1", **options: OptionValue) -> dict[str, Any]:
        """The answer to a submission."""
        ask = Submit(command=command, options={name.rstrip("_"): value for name, value in options.items()})
        answer: dict[str, Any] = self.take(submit(self.cluster, Given(ask, caller, self.now, LOCAL)))
        return answer

    def spec_of(self, **options: Any) -> Spec:
        """The record of a job that is submitted with these options."""
        return self.cluster.spec_of(self.bsub(**options)["job"])

    def job(self, key: int) -> Job:
        return self.cluster.jobs.rows[key]

    def run(self, key: int) -> Attempt:
        """The attempt of a job that runs."""
        run = self.job(key).run
        assert run is not None
        return run

    def uid(self, key: int) -> str:
        return self.run(key).uid

    def said(self, what: str, key: int, host: str, *values: Any, uid: str = "") -> list[str]:
        """A report comes in; the names of the events that it makes."""
        events = self.hear(what, key, uid or self.uid(key), host, *values)
        check_invariants(self.cluster)
        return [type(event).__name__ for event in events]

    def start(self, key: int, host: str = "h1") -> None:
        """The job's part on this host runs."""
        self.said("started", key, host, 77, self.now, "/")

    def started(self, **options: Any) -> int:
        """The key of a job that is submitted with these options, and runs on h1."""
        key: int = self.bsub(**options)["job"]
        self.step()
        self.start(key)
        return key

    def checkpoints(self, key: int) -> Checkpoints:
        """What is known of a job's checkpoints."""
        found = self.job(key).checkpoints
        assert found is not None
        return found

    def placed(self, state: str = "RUN", **fields: Any) -> int:
        """A job in this state."""
        key = self.submit(**fields)
        if state == "PSUSP":
            self.apply(ev.JobHeld(at=self.now, key=key))
        if state in ("PEND", "PSUSP"):
            return key
        self.step()
        hosts = list(self.running()[key])
        if len(hosts) > 1:
            for host in hosts:
                self.said("prepared", key, host, f"{host}:1")
        for host in hosts:
            self.start(key, host)
        if state == "UNKWN":
            self.take(silent(self.cluster, hosts[0], self.now))
        elif state in ("USUSP", "SSUSP"):
            self.apply(ev.JobSuspended(at=self.now, key=key, state=JobState[state]))
        assert self.job(key).state.name == state
        return key

    def ended(self, key: int, host: str, status: int = 0, gone: bool = True, **fields: Any) -> list[str]:
        """The part on this host ends."""
        return self.said("ended", key, host, End(status=status, at=self.now, **fields), gone)

    def finished(self, key: int) -> Job:
        """The last record of a finished job."""
        return self.cluster.finished[key]

    def outcome(self, key: int) -> Outcome:
        """How a finished job ended."""
        outcome = self.finished(key).outcome
        assert outcome is not None
        return outcome
