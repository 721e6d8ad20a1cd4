"""An array behaves as N separate jobs under every sequence of commands; every prefix replays; every batch can be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control import control
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.modify.position import move
from lavad.core.decide.modify.switch import switch
from lavad.core.events.apply import apply
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Kill, Modify, Move, Refused, Requeue, Resume, Select, Stop, Switch
from lavad.core.lang.ids import key_of, show
from lavad.core.rules.effects import effects_due
from tests.support.examples import examples
from tests.support.worlds.bench import ALICE, LOCAL, Bench
from tests.support.worlds.snapshot import difference, snapshot

COUNT = 5
index = st.integers(1, COUNT)
CONTROLS: dict[str, tuple[Callable[..., Any], Callable[[Select], Any]]] = {
    "kill": (control.kill, lambda jobs: Kill(jobs=jobs)),
    "force": (control.kill, lambda jobs: Kill(jobs=jobs, now=True)),
    "signal": (control.kill, lambda jobs: Kill(jobs=jobs, signal=10)),
    "stop": (control.stop, lambda jobs: Stop(jobs=jobs)),
    "resume": (control.resume, lambda jobs: Resume(jobs=jobs)),
    "requeue": (control.requeue, lambda jobs: Requeue(jobs=jobs)),
    "hold": (control.requeue, lambda jobs: Requeue(jobs=jobs, hold=True)),
    "switch": (switch, lambda jobs: Switch(queue="night", jobs=jobs)),
    "back": (switch, lambda jobs: Switch(queue="normal", jobs=jobs)),
}


class Recorded(Bench):
    """A bench that keeps its events, what was then due, and its finished jobs; and undoes each batch once."""

    def __init__(self) -> None:
        self.history: list[ev.Event] = []
        self.over: dict[int, Job] = {}
        self.killed: set[int] = set()
        super().__init__()

    def apply(self, *events: ev.Event) -> None:
        before = snapshot(self.cluster)
        for event in events:
            apply(self.cluster, event)
        after = snapshot(self.cluster)
        self.cluster.undo_changes()
        assert not difference(snapshot(self.cluster), before)
        check_invariants(self.cluster)
        for event in events:
            apply(self.cluster, event)
            self.history.append(event)
            if isinstance(event, ev.ElementsKilled):
                self.killed.update(key_of(event.key, index) for index in event.elements)
        assert not difference(snapshot(self.cluster), after)
        self.over.update(self.cluster.finished)
        self.cluster.forget_changes()

    def seen(self, key: int) -> tuple[object, ...]:
        """What a user can see of a job or element."""
        job = self.cluster.jobs.rows.get(key)
        array = self.cluster.find_array(key)
        if job is None and key in self.over:
            job = self.over[key]
        if job is None and key in self.killed:
            return ("EXIT", 0, 0, "normal or night")
        if job is None:
            assert array is not None
            held = key >> 32 in array.held
            return ("PSUSP" if held else "PEND", 0, 0, self.cluster.specs.rows[array.spec].queue)
        if job.outcome is not None and job.run is None and job.attempt == 0:
            return ("EXIT", 0, 0, "normal or night")
        slots = sum(part.slots for part in job.run.parts) if job.run is not None else 0
        return (job.state.name, slots, job.attempt, self.cluster.specs.rows[job.spec].queue)


class ArrayIsJobs(RuleBasedStateMachine):
    """Left: an array. Right: as many jobs. The same is asked of both, in the array's words and in theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = Recorded(), Recorded()
        for bench in (self.left, self.right):
            bench.hosts("h1", "h2", "h3", slots=2 * COUNT)
        self.left.submit(name="arr", array=f"1-{COUNT}")
        for at in range(1, COUNT + 1):
            self.right.submit(name=f"arr[{at}]")

    def _both(self, do: Callable[[Recorded, Callable[[int], int]], Any]) -> None:
        left = do(self.left, lambda at: key_of(1, at))
        right = do(self.right, lambda at: at)
        assert left == right

    @rule(what=st.sampled_from(sorted(CONTROLS)), at=index)
    def element(self, what: str, at: int) -> None:
        decide, ask = CONTROLS[what]

        def do(bench: Recorded, key: Callable[[int], int]) -> list[str]:
            return [why for _, why in bench.asked(decide, ask(Select(ids=[show(key(at))])))]

        self._both(do)

    @rule(what=st.sampled_from(sorted(CONTROLS)))
    def whole(self, what: str) -> None:
        decide, ask = CONTROLS[what]
        self.left.asked(decide, ask(Select(ids=["1"])))
        self.right.asked(decide, ask(Select(ids=[str(at) for at in range(1, COUNT + 1)])))

    @rule(at=index, place=st.integers(1, COUNT), top=st.booleans())
    def move(self, at: int, place: int, top: bool) -> None:
        """Only where all that wait have rows: an array's untouched elements move as one."""
        if 1 in self.left.cluster.arrays.rows and len(self.left.cluster.arrays.rows[1].pending) > 1:
            return

        def do(bench: Recorded, key: Callable[[int], int]) -> str:
            try:
                bench.take(move(bench.cluster, Move(job=show(key(at)), top=top, place=place), ALICE, bench.now))
            except Refused as refusal:
                return refusal.text.partition(": ")[2]
            return ""

        self._both(do)

    @rule(slots=st.integers(1, 2))
    def change(self, slots: int) -> None:
        """bmod of the whole."""
        for bench, texts in ((self.left, ["1"]), (self.right, [str(at) for at in range(1, COUNT + 1)])):
            for text in texts:
                ask = Modify(job=text, options={"n": str(slots)})
                try:
                    bench.take(modify(bench.cluster, ask, JobText(command="c"), ALICE, bench.now, LOCAL))
                except Refused:
                    continue

    @rule(seconds=st.sampled_from([1.0, 70.0]))
    def cycle(self, seconds: float) -> None:
        for bench in (self.left, self.right):
            bench.now += seconds
            bench.step()

    @rule(at=index, what=st.sampled_from(["started", "stopped", "gone", "refused"]))
    def report(self, at: int, what: str) -> None:
        values = {"started": (7, 1.0, "/"), "stopped": (True,), "gone": (), "refused": ("start", "no")}[what]
        self._said(at, what, *values)

    @rule(at=index, status=st.sampled_from([0, 256]), gone=st.booleans())
    def ends(self, at: int, status: int, gone: bool) -> None:
        def do(bench: Recorded, key: Callable[[int], int]) -> list[str]:
            job = bench.cluster.jobs.rows.get(key(at))
            return bench.ended(key(at), job.run.parts[0].host, status, gone) if job is not None and job.run else []

        self._both(do)

    def _said(self, at: int, what: str, *values: object) -> None:
        def do(bench: Recorded, key: Callable[[int], int]) -> list[str]:
            job = bench.cluster.jobs.rows.get(key(at))
            return bench.said(what, key(at), job.run.parts[0].host, *values) if job is not None and job.run else []

        self._both(do)

    @invariant()
    def they_look_the_same(self) -> None:
        for at in range(1, COUNT + 1):
            left, right = self.left.seen(key_of(1, at)), self.right.seen(at)
            assert left == right, f"element {at}: {left}, and the job: {right}"
        one, other = snapshot(self.left.cluster), snapshot(self.right.cluster)
        for name in ("queues", "users", "pairs"):
            assert one["use"][name] == other["use"][name], name
        # an array's untouched elements stand in line as one, so the same job may run on another host; none waits for it
        slots = [sum(use[0] for use in side["on_hosts"].values()) for side in (one, other)]
        assert slots[0] == slots[1]

    @precondition(lambda self: len(self.left.history) % 7 == 0)
    @invariant()
    def every_prefix_replays(self) -> None:
        """What is loaded again is the same cluster, with the same effects due."""
        for bench in (self.left, self.right):
            fresh = Cluster()
            for event in bench.history:
                apply(fresh, event)
            fresh.forget_changes()
            assert not difference(snapshot(fresh), snapshot(bench.cluster))
            for key, job in bench.cluster.jobs.rows.items():
                assert effects_due(fresh.jobs.rows[key]) == effects_due(job)


TestArrayIsJobs = ArrayIsJobs.TestCase
TestArrayIsJobs.settings = settings(max_examples=examples(40), stateful_step_count=25, suppress_health_check=list(HealthCheck))
