"""Conditions that name many jobs: judged as if each job were asked, and kept small."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core import events as ev
from lavad.core.cluster.conditions import Condition
from lavad.core.cluster.named_jobs import NamedJobs, Names
from lavad.core.decide.base.resolve import NOTHING, NeedsLookup, resolve
from lavad.core.decide.depend.orphans import Orphans
from lavad.core.job.depend import BLOCKED, FEW, MET, NEVER, Depend, Jobs, jobs_of
from lavad.core.job.job import Array
from lavad.core.job.message import Message
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import JobState
from lavad.core.rules.dependency_eval import evaluate
from tests.unit.lavad.core.decide.depend.test_depend import ALICE, LOCAL, Waiters

MANY = FEW + 4
ASKED = [
    *(f"{function}(s*)" for function in ("done", "ended", "exit", "started", "post_done", "post_err")),
    "exit(s*, > 2)",
    *(
        f"num{what}(s*, {wanted})"
        for what in ("done", "ended", "exit", "run", "pend", "hold", "start")
        for wanted in (">= 1", "0")
    ),
    'external(s*, "go")',
    "done(s*) || ended(t*)",
    "!ended(s*) && ended(t*)",
    "ended(s*) && done(other)",
    "started(s*) && done(other)",
]

ACTS = ["end"] * 6 + ["step", "say", "hold", "requeue", "revive", "undo", "commit", "submit", "join"]


def standing(world: Waiters, depend: Depend) -> int:
    """How a condition stands, each of its jobs asked."""
    answer = evaluate(world.cluster, depend, LOCAL)
    return NEVER if answer is None else MET if answer else BLOCKED


class Story:
    """Named jobs of which things become, and those who wait for them."""

    def __init__(self, texts: list[str]) -> None:
        world = self.world = Waiters()
        world.hosts("h1", slots=64)
        self.named = [key_of(world.submit(f"s{at}"), 0) for at in range(MANY)]
        for at in range(3):
            array = world.submit(f"s9{at}", array="1-2")
            self.named += [key_of(array, 1), key_of(array, 2)]
        for at in range(MANY):
            self.named.append(world.submit(f"t{at}"))
        self.named.append(world.submit("other"))
        self.waiting = [self.world.depend(text, array="1-2" if at % 3 == 2 else "") for at, text in enumerate(texts)]
        self.first = {key: world.cluster.jobs.rows[key] for key in self.named if key in world.cluster.jobs.rows}
        world.cluster.forget_changes()

    def act(self, what: str, at: int) -> None:
        """One thing becomes of one of them, if it can."""
        world, key = self.world, self.named[at % len(self.named)]
        job = world.cluster.jobs.rows.get(key)
        if what == "step":
            world.step()
        elif what == "undo":
            world.cluster.undo_changes()
        elif what == "commit":
            world.cluster.forget_changes()
        elif what == "submit":
            self.named.append(world.submit(f"s{at}"))
        elif what == "join":
            self.join(ASKED[at % len(ASKED)])
        elif world.cluster.find_job(key) is None:
            if what == "revive" and key in self.first:
                world.apply(ev.JobRevived(at=world.now, key=key, job=self.first[key]))
        elif what == "end":
            status = (0, 1 << 8, 3 << 8)[at % 3]
            state = JobState.EXIT if status else JobState.DONE
            world.apply(ev.JobFinished(at=world.now, key=key, state=state, status=status, post=at % 2))
        elif what == "requeue" and job is not None and job.run is not None:
            world.leave(key)
        elif what == "say" and job is not None:
            world.apply(ev.MessagePosted(at=world.now, key=key, message=Message(number=0, text="go", at=world.now)))
        elif what == "hold" and (job is None or job.state is JobState.PEND):
            world.apply(ev.JobHeld(at=world.now, key=key))

    def join(self, text: str) -> None:
        """One more waits, unless all that it would wait for have left memory."""
        with suppress(NeedsLookup):
            self.waiting.append(self.world.depend(text))

    def check(self) -> None:
        """Everybody who waits is told what asking each job gives."""
        self.world.settle()
        for key in self.waiting:
            row = self.world.cluster.jobs.rows.get(key) or self.world.cluster.arrays.rows.get(key)
            if row is None or row.depend is None:
                continue
            now = standing(self.world, row.depend)
            if isinstance(row, Array):
                assert not row.waiting or (NEVER if row.never else BLOCKED) == now
            else:
                assert row.blocked in (MET, now)


@given(
    st.lists(st.sampled_from(ASKED), min_size=1, max_size=6),
    st.lists(
        st.tuples(
            st.sampled_from(ACTS),
            st.integers(0, 60),
        ),
        max_size=25,
    ),
)
def test_judged_as_if_each_were_asked(texts: list[str], acts: list[tuple[str, int]]) -> None:
    story = Story(texts)
    story.check()
    for what, at in acts:
        story.act(what, at)
        story.check()


def test_one_of_them_that_waits_again_is_waited_for_again() -> None:
    story = Story(["started(s*) && done(other)"])
    story.act("step", 0)
    story.check()
    story.act("requeue", 3)
    story.check()
    story.world.end(story.named[-1])
    assert story.world.blocked(story.waiting[0]) == BLOCKED
    story.world.step()
    story.check()
    assert story.world.blocked(story.waiting[0]) == MET


@given(st.lists(st.lists(st.integers(1, 40_000), min_size=1, max_size=30, unique=True), max_size=8), st.data())
def test_the_index_of_named_jobs_is_what_the_sets_say(lists: list[list[int]], data: st.DataObject) -> None:
    index, kept = NamedJobs(), dict[Condition, Jobs]()
    for ids in lists:
        condition = Condition(Depend(text="", ids=(jobs_of(ids),)))
        kept[condition] = jobs_of(ids)
        index.add(jobs_of(ids), condition)
    for condition in data.draw(st.permutations(list(kept))):
        every = {job for jobs in kept.values() for job in jobs}
        assert sorted(index) == sorted(every)
        assert bool(index) == bool(every)
        for job in {*every, 1, 20_000}:
            assert (job in index) == (job in every)
            found = {one for jobs in index.sets_of(job) for one in jobs.conditions}
            assert found == {one for one, jobs in kept.items() if job in jobs}
        some = data.draw(st.lists(st.sampled_from(sorted(every)), unique=True))
        among = {jobs: sorted(those) for jobs, those in index.sets_among(some).items()}
        assert among == {index.sets[jobs]: both for jobs in kept.values() if (both := sorted(set(jobs) & set(some)))}
        gone, forgotten = index.discard(kept.pop(condition), condition)
        assert (gone is None) == any(jobs == condition.depend.ids[0] for jobs in kept.values())
        assert set(forgotten) == every - {job for jobs in kept.values() for job in jobs}
    assert not index
    assert list(index) == []


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from([None, "a", "ab", "b"]), st.sampled_from(["x", "y", None])), max_size=40
    )
)
def test_names_are_found_as_they_are_now(moves: list[tuple[int, str | None, str | None]]) -> None:
    names, now = Names(), dict[int, str]()
    names.of(lambda: [])
    for key, name, asked_for in moves:
        old = now.pop(key, None)
        if name is not None:
            now[key] = name
        names.moved(key, old, name)
        for asked, prefix in (("a", True), ("a", False), ("b", True), ("", True)):
            found = names.find(asked, prefix, asked_for, lambda key: "xy"[key % 2])
            assert list(found) == sorted(
                key
                for key, known in now.items()
                if (known.startswith(asked) if prefix else known == asked) and asked_for in (None, "xy"[key % 2])
            )


def test_what_waits_for_thousands_is_small_and_one() -> None:
    world = Waiters()
    for at in range(3000):
        world.submit(f"step{at}")
    texts = ["ended(step*)", "done(step*) && done(step7)", "ended(step*) && done(step8)"]
    depends = [resolve(world.cluster, text, ALICE, False, NOTHING, None)[0] for text in texts * 2]
    assert all(len(msgspec.json.encode(depend)) < 120 for depend in depends)
    waiting = [world.depend(text) for text in texts * 2]
    named = world.cluster.conditions.named
    assert (len(named.sets), len(list(named.sets_of(5)))) == (3, 1)
    assert [world.blocked(key) for key in waiting] == [BLOCKED] * 6


def test_a_condition_with_each_id_written_out_is_read_and_judged() -> None:
    """As stores have them in which each job of a condition stands by itself."""
    world = Waiters()
    jobs = [world.submit(f"s{at}") for at in range(MANY)]
    depend = msgspec.json.decode(msgspec.json.encode({"text": "done(s*)", "ids": [jobs]}), type=Depend)
    assert depend.ids == (tuple(jobs),)
    key = world.cluster.next_job
    world.apply(ev.JobSubmitted(at=world.now, key=key, spec=world.spec(), name="waits", depend=depend))
    world.settle()
    for job in jobs[1:]:
        world.end(job)
    assert world.blocked(key) == BLOCKED
    world.end(jobs[0])
    assert world.blocked(key) == MET
    assert not world.cluster.conditions.named


@pytest.mark.parametrize(("ended", "inherited"), [(0, True), (MANY + 5, False)])
def test_orphans_of_many_are_ended_with_those_they_wait_for(ended: int, inherited: bool) -> None:
    world, orphans = Waiters(), Orphans()
    first = world.submit("first")
    named = [world.depend(f"done({first})") if at == 0 else world.submit(f"t{at}") for at in range(MANY + 6)]
    world.end(first, 256)
    assert orphans.due(world.cluster, world.now, 10, 100) == []
    world.later(11)
    (over,) = orphans.due(world.cluster, world.now, 10, 100)
    names = named[1:] if not inherited else named
    depend = Depend(text="done(t*)", ids=(jobs_of(names),))
    waits = world.cluster.next_job
    world.apply(ev.JobSubmitted(at=world.now, key=waits, spec=world.spec(), name="last", depend=depend), over)
    world.end(named[ended], 256) if ended else world.settle()
    assert world.blocked(waits) == NEVER
    assert bool(orphans.due(world.cluster, world.now, 10, 100)) == inherited
