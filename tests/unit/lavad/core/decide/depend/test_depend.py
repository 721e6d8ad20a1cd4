"""Dependency conditions over a cluster in memory: who may start when, who never can, and what a look costs."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.base.resolve import NOTHING, NeedsLookup, StoredJobs, resolve
from lavad.core.decide.depend.depend import ConditionQueue
from lavad.core.decide.depend.orphans import Orphans
from lavad.core.job.depend import BLOCKED, MET, NEVER, Ended
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason
from tests.support.worlds.world import World

ALICE = Caller(user="alice", uid=1000, host="ol1")
LOCAL = (1, 12 * 3600)


class Waiters(World):
    """A world that submits with conditions and settles them."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions = ConditionQueue(self.cluster.conditions)

    def depend(self, text: str, array: str = "", orphan: bool = False, known: StoredJobs = NOTHING, **fields: Any) -> int:
        indices = Ranges.parse(array) if array else None
        found = resolve(self.cluster, text, ALICE, orphan, known, indices)
        key = self.cluster.next_job
        self.apply(
            ev.JobSubmitted(
                at=self.now,
                key=key,
                spec=self.spec(**fields),
                name=f"job{key}",
                indices=indices,
                depend=found.depend,
                ended=found.ended,
            )
        )
        self.settle()
        return key

    def submit_unsettled(self, text: str) -> int:
        found = resolve(self.cluster, text, ALICE, False, NOTHING, None)
        key = self.cluster.next_job
        self.apply(
            ev.JobSubmitted(
                at=self.now,
                key=key,
                spec=self.spec(),
                name=f"fan{key}",
                depend=found.depend,
                ended=found.ended,
            )
        )
        return key

    def settle(self, most: int = 1000) -> int:
        count = 0
        while self.conditions:
            events = self.conditions.settle(self.cluster, self.now, LOCAL, most)
            self.apply(*events)
            count += len(events)
        check_invariants(self.cluster)
        return count

    def end(self, key: int, status: int = 0) -> None:
        state = JobState.EXIT if status else JobState.DONE
        self.apply(ev.JobFinished(at=self.now, key=key, state=state, status=status))
        self.settle()

    def blocked(self, key: int) -> int:
        return self.cluster.jobs.rows[key].blocked


@pytest.fixture
def world() -> Waiters:
    found = Waiters()
    found.hosts("h1", slots=4)
    return found


def test_who_joins_others_is_told_how_their_condition_stands(world: Waiters) -> None:
    first, other = world.submit(), world.submit()
    waiting = [world.depend(f"done({first})") for _ in range(3)]
    world.end(first, 256)
    never = world.depend(
        f"done({first}) || done({first})", known=StoredJobs(jobs={first: Ended(exited=((1, Ranges.span(1, 1)),))})
    )
    late = world.depend(f"done({first})")
    assert {world.blocked(key) for key in (*waiting, never, late)} == {NEVER}
    joined = [world.depend(f"done({other})") for _ in range(2)]
    assert {world.blocked(key) for key in joined} == {BLOCKED}
    assert not world.conditions.settle(world.cluster, world.now, LOCAL, 10)
    world.conditions.undone()
    assert world.settle() == 0
    world.end(other)
    assert {world.blocked(key) for key in joined} == {MET}


def test_a_job_waits_for_another(world: Waiters) -> None:
    first = world.submit()
    second = world.depend(f"done({first})")
    assert world.blocked(second) == BLOCKED
    assert second not in world.pending()
    world.end(first)
    assert world.blocked(second) == MET
    assert second in world.pending()
    assert not world.cluster.ended.rows
    assert not world.cluster.conditions.named


def test_what_can_never_be_is_said(world: Waiters) -> None:
    first = world.submit()
    second = world.depend(f"done({first})")
    world.end(first, 256)
    assert world.blocked(second) == NEVER


def test_an_orphan_ends(world: Waiters) -> None:
    first = world.submit()
    second = world.depend(f"done({first})", orphan=True)
    third = world.depend(f"done({second})", orphan=True)
    world.end(first, 256)
    ended = world.cluster.finished
    assert {ended[key].outcome.reason for key in (second, third)} == {TermReason.TERM_ORPHAN_SYSTEM}  # type: ignore[union-attr]


def test_exit_codes_are_kept(world: Waiters) -> None:
    first, other = world.submit(), world.submit()
    good = world.depend(f"exit({first}, > 2) && ended({other})")
    bad = world.depend(f"exit({first}, 7) && ended({other})")
    world.end(first, 3 << 8)
    assert (world.blocked(good), world.blocked(bad)) == (BLOCKED, NEVER)
    world.end(other)
    assert world.blocked(good) == MET


def test_names_mean_ones_own_jobs(world: Waiters) -> None:
    mine = world.submit("prep")
    world.submit("prep", user="bob")
    waits = world.depend("done(prep)")
    assert world.cluster.jobs.rows[waits].depend.ids == ((mine,),)  # type: ignore[union-attr]
    with pytest.raises(NeedsLookup):
        world.depend("done(nosuch)")
    with pytest.raises(Refused, match="nosuch: No matching job found"):
        world.depend("done(nosuch)", known=StoredJobs(names={"nosuch": ()}))


def test_a_finished_job_is_looked_up(world: Waiters) -> None:
    with pytest.raises(NeedsLookup) as missing:
        world.depend("done(77)")
    assert missing.value.jobs == [77]
    with pytest.raises(Refused, match="77: No matching job found"):
        world.depend("done(77)", known=StoredJobs(jobs={77: None}))
    waits = world.depend("done(77)", known=StoredJobs(jobs={77: Ended(done=Ranges.span(1, 1))}))
    assert world.blocked(waits) == MET
    never = world.depend("done(77)", known=StoredJobs(jobs={77: Ended(exited=((2, Ranges.span(1, 1)),))}))
    assert world.blocked(never) == NEVER


def test_element_by_element(world: Waiters) -> None:
    first = world.submit("a", array="1-4")
    second = world.depend(f"done({first}[*])", array="1-4")
    array = world.cluster.arrays.rows
    assert array[second].startable == Ranges()
    world.end(2 << 32 | first)
    assert array[second].startable == Ranges.span(2, 2)
    world.end(3 << 32 | first, 256)
    assert array[second].never == Ranges.span(3, 3)
    world.apply(ev.ElementsKilled(at=world.now, key=first, elements=Ranges.span(4, 4)))
    world.settle()
    assert array[second].never == Ranges.span(3, 4)
    with pytest.raises(Refused, match="Dependent arrays do not have the same size"):
        world.depend(f"done({first}[*])", array="1-5")


def test_what_was_read_of_a_live_array_is_too_old_once_it_has_ended(world: Waiters) -> None:
    first = world.submit("a", array="1-2")
    world.end(1 << 32 | first, 256)
    with pytest.raises(NeedsLookup) as missing:
        world.depend(f"done({first}[*])", array="1-2")
    assert (missing.value.jobs, missing.value.elements) == ([], [first])
    known = StoredJobs(elements={first: Ended(exited=((1, Ranges.span(1, 1)),), indices=Ranges.span(1, 2))})
    waits = world.depend(f"done({first}[*])", array="1-2", known=known)
    assert world.cluster.arrays.rows[waits].never == Ranges.span(1, 1)
    world.apply(ev.ElementsKilled(at=world.now, key=waits, elements=Ranges.span(1, 2)))
    world.end(2 << 32 | first)
    with pytest.raises(NeedsLookup) as missing:
        world.depend(f"done({first}[*])", array="1-2", known=known)
    assert (missing.value.jobs, missing.value.elements) == ([first], [])


def test_counts_of_an_array(world: Waiters) -> None:
    first = world.submit("a", array="1-4")
    two = world.depend(f"numdone({first}, >= 2)")
    all_of_it = world.depend(f"numended({first}, *)")
    world.end(1 << 32 | first)
    assert world.blocked(two) == BLOCKED
    world.end(2 << 32 | first)
    assert world.blocked(two) == MET
    world.apply(ev.ElementsKilled(at=world.now, key=first, elements=Ranges.span(3, 4)))
    world.settle()
    assert world.blocked(all_of_it) == MET


def test_started(world: Waiters) -> None:
    first = world.submit()
    second = world.depend(f"started({first})")
    world.step()
    world.settle()
    assert world.blocked(second) == MET


def test_an_element_that_was_split_off_is_freed_too(world: Waiters) -> None:
    first = world.submit()
    array = world.depend(f"done({first})", array="1-3")
    world.apply(ev.ElementSplit(at=world.now, key=2 << 32 | array))
    assert world.blocked(2 << 32 | array) == BLOCKED
    world.end(first)
    assert world.blocked(2 << 32 | array) == MET
    assert world.cluster.arrays.rows[array].startable == Ranges.parse("1,3")


def test_bmod_takes_another_condition(world: Waiters) -> None:
    first, other = world.submit(), world.submit()
    waits = world.depend(f"done({first})")
    found = resolve(world.cluster, f"done({other})", ALICE, False, NOTHING, None)
    row = world.cluster.jobs.rows[waits]
    world.apply(
        ev.JobModified(
            at=world.now,
            key=waits,
            spec=row.spec,
            name=row.name,
            depends=True,
            depend=found.depend,
            ended=found.ended,
        )
    )
    world.end(first)
    assert world.blocked(waits) == BLOCKED
    world.end(other)
    assert world.blocked(waits) == MET


def test_a_failed_commit_leaves_nothing(world: Waiters) -> None:
    first = world.submit()
    waits = world.depend(f"done({first})")
    world.cluster.forget_changes()
    world.end(first)
    assert world.blocked(waits) == MET
    world.cluster.undo_changes()
    assert world.blocked(waits) == BLOCKED
    check_invariants(world.cluster)
    world.end(first)
    assert world.blocked(waits) == MET


def test_a_fan_is_one_condition_and_a_wait_for_many_asks_each_once(world: Waiters) -> None:
    """A fan out and back in."""
    first = world.submit()
    fan = [world.submit_unsettled(f"done({first})") for _ in range(200)]
    assert len(world.cluster.conditions.rows) == 1
    last = world.depend("done(fan*)")
    world.end(first)
    assert all(world.blocked(key) == MET for key in fan)
    for key in fan[:-1]:
        world.apply(ev.JobFinished(at=world.now, key=key, state=JobState.DONE))
        world.apply(*world.conditions.settle(world.cluster, world.now, LOCAL, 100))
    assert world.blocked(last) == BLOCKED
    world.end(fan[-1])
    assert world.blocked(last) == MET


def test_post_processing_has_ended_with_the_job(world: Waiters) -> None:
    first = world.submit()
    good, bad = world.depend(f"post_done({first})"), world.depend(f"post_err({first})")
    world.end(first, 256)
    assert (world.blocked(good), world.blocked(bad)) == (MET, NEVER)


def end_orphans(world: Waiters, orphans: Orphans, grace: int) -> list[int]:
    """Keys of those that end now, until there are no more."""
    ended: list[int] = []
    while events := orphans.due(world.cluster, world.now, grace):
        ended += [event.key for event in events if isinstance(event, ev.JobFinished | ev.ElementsKilled)]
        world.apply(*events)
        world.settle()
    return ended


def test_orphans_of_a_site_end_after_its_grace(world: Waiters) -> None:
    """Those who waited for them at once, in a tree of any depth; who waits for others stays."""
    orphans, first, other = Orphans(), world.submit(), world.submit()
    second = world.depend(f"done({first})")
    also = world.depend(f"done({first})")
    third = world.depend(f"done({second})")
    fourth = world.depend(f"done({third})")
    stays = world.depend(f"done({other})")
    assert end_orphans(world, orphans, 300) == []
    world.end(first, 256)
    assert end_orphans(world, orphans, 300) == []
    world.now += 299
    assert end_orphans(world, orphans, 300) == []
    world.now += 1
    assert end_orphans(world, orphans, 300) == [second, also, third, fourth]
    assert world.cluster.finished[fourth].outcome.reason is TermReason.TERM_ORPHAN_SYSTEM  # type: ignore[union-attr]
    assert world.blocked(stays) == BLOCKED


def test_an_orphan_that_gets_another_condition_is_none_any_more(world: Waiters) -> None:
    orphans, first, other = Orphans(), world.submit(), world.submit()
    second = world.depend(f"done({first})")
    world.end(first, 256)
    assert end_orphans(world, orphans, 300) == []
    world.now += 200
    found = resolve(world.cluster, f"done({other})", ALICE, False, NOTHING, None)
    row = world.cluster.jobs.rows[second]
    world.apply(
        ev.JobModified(
            at=world.now, key=second, spec=row.spec, name=row.name, depends=True, depend=found.depend, ended=found.ended
        )
    )
    world.settle()
    assert end_orphans(world, orphans, 300) == []
    world.end(other, 256)
    assert end_orphans(world, orphans, 300) == []
    world.now += 200
    assert end_orphans(world, orphans, 300) == [], "it counts from the second time on"
    world.now += 100
    assert end_orphans(world, orphans, 300) == [second]


def test_elements_are_orphans_each_for_itself(world: Waiters) -> None:
    orphans, first = Orphans(), world.submit(array="1-3")
    second = world.depend(f"done({first}[*])", array="1-3")
    world.apply(ev.ElementsKilled(at=world.now, key=first, elements=Ranges.parse("1")))
    world.settle()
    assert end_orphans(world, orphans, 300) == []
    world.now += 200
    world.apply(ev.ElementsKilled(at=world.now, key=first, elements=Ranges.parse("2")))
    world.settle()
    assert end_orphans(world, orphans, 300) == []
    world.now += 100
    (event,) = orphans.due(world.cluster, world.now, 300)
    assert event == ev.ElementsKilled(at=world.now, key=second, elements=Ranges.parse("1"), reason=TermReason.TERM_ORPHAN_SYSTEM)


def test_no_grace_is_at_once(world: Waiters) -> None:
    orphans, first = Orphans(), world.submit()
    second = world.depend(f"done({first})")
    world.end(first, 256)
    assert end_orphans(world, orphans, 0) == [second]


def test_only_orphans_are_looked_at(world: Waiters) -> None:
    """However many wait for conditions that can be met."""
    orphans, first, other = Orphans(), world.submit(), world.submit()
    second = world.depend(f"done({first})")
    array = world.depend(f"done({first})", array="1-3")
    for _ in range(3):
        world.depend(f"done({other})")
    world.end(first, 256)
    check_invariants(world.cluster)
    assert list(world.cluster.conditions.orphans) == [second, array]
    world.cluster.conditions.rows.clear()
    assert len(orphans.due(world.cluster, world.now, 0)) == 2
    world.apply(*orphans.due(world.cluster, world.now, 0))
    assert not world.cluster.conditions.orphans
