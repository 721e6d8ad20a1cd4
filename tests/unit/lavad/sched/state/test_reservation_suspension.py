"""Whom an active advance reservation suspends for its jobs, and when these go on."""

from __future__ import annotations

from lavad.core.lang.states import JobState
from lavad.core.site.pend_reason import PendReason
from tests.support.worlds.world import World
from tests.unit.lavad.sched.state.test_advance_reservations import pass_time, reasons, reserve, runs, step, submit, world_of


def full_host() -> tuple[World, list[int], str]:
    """Two jobs of two slots have a host of four; a reservation of two of them is active."""
    world = world_of()
    old = [submit(world, 2, user="bob") for _ in range(2)]
    step(world)
    name = reserve(world, slots=2)
    pass_time(world, 3600)
    return world, old, name


def test_jobs_that_were_there_before_are_suspended_only_when_its_jobs_need_the_slots() -> None:
    world, old, name = full_host()
    step(world)
    assert all(runs(world, key) for key in old)
    first, own = (submit(world, 2, reservation=name) for _ in range(2))
    step(world)
    assert [runs(world, key) for key in (first, *old)] == [True, True, False], "the newest gives way"
    world.finish(first)
    assert not runs(world, own)
    step(world)
    assert [runs(world, key) for key in (own, *old)] == [True, True, False], "free slots are those of the reservation"
    step(world)
    pass_time(world, 3600)
    assert world.cluster.jobs.rows[own].run.pending_signals[0].kind == "kill"  # type: ignore[union-attr]
    world.finish(own, 9)
    step(world)
    assert all(runs(world, key) for key in old), "they go on when it has expired"


def test_one_that_gave_way_waits_while_the_reservation_keeps_the_slots() -> None:
    """They are free, and no job of the reservation asks for them."""
    world, old, name = full_host()
    own = submit(world, 2, reservation=name)
    step(world)
    world.finish(own)
    step(world)
    assert [runs(world, key) for key in old] == [True, False]
    world.finish(old[0])
    step(world)
    assert runs(world, old[1]), "on slots that it does not keep"


def test_a_job_of_one_slot_has_others_suspended_too() -> None:
    world = world_of()
    name = reserve(world, slots=4)
    old = submit(world, 4, 30, user="bob")
    step(world)
    pass_time(world, 3600)
    own = submit(world, 1, reservation=name)
    step(world)
    assert [runs(world, key) for key in (own, old)] == [True, False]


def test_without_suspension_its_jobs_wait() -> None:
    world = world_of()
    old = submit(world, 4, user="bob")
    step(world)
    name = reserve(world, no_suspend=True)
    pass_time(world, 3600)
    own = submit(world, 1, reservation=name)
    step(world)
    assert runs(world, old)
    assert not runs(world, own)


def test_at_the_end_of_an_open_one_its_jobs_are_suspended_and_go_on_as_any_other() -> None:
    world = world_of()
    name = reserve(world, slots=4, open=True)
    pass_time(world, 3600)
    own = submit(world, 3, reservation=name)
    step(world)
    pass_time(world, 3600)
    assert world.cluster.jobs.rows[own].state is JobState.SSUSP
    step(world)
    assert runs(world, own)
    late = submit(world, 1, reservation=name)
    step(world)
    assert reasons(world, late) == {PendReason.HOST_NO_RSVID}
