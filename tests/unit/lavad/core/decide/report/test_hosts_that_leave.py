"""Hosts that leave a job which goes on without them: what is told, what it used there, and when a growth is complete."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.charge import used_by
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.resize import resize
from lavad.core.job.job import End
from lavad.core.job.resize import slots_of, uid_of
from lavad.core.lang.asks import Refused, Resize
from lavad.core.lang.states import JobState
from tests.support.worlds.elastic import ALICE, cycle, elastic, growing, released, run_of, started
from tests.support.worlds.world import World


def three_hosts() -> tuple[World, int, str]:
    """A job on three hosts, and the last of them."""
    world = World()
    world.hosts("h1", "h2", "h3", slots=1)
    key = elastic(world, 1, 3)
    started(world, key)
    return world, key, run_of(world, key).parts[2].host


def ends(world: World, key: int, host: str, end: End, gone: bool) -> list[ev.Event]:
    run = run_of(world, key)
    part = next(part for part in run.parts if part.host == host)
    events = world.hear("ended", key, uid_of(run, part), host, end, gone)
    check_invariants(world.cluster)
    return events


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (End(lost="the starter was restarted"), "the starter was restarted"),
        (End(status=255 << 8, first_rank=-1, first_reason="link to h1 lost"), "link to h1 lost"),
        (End(lost="it was killed", first_reason="x"), "it was killed"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_host_that_is_lost_leaves_with_what_the_job_used_there(end: End, why: str, at_once: bool) -> None:
    world, key, host = three_hosts()
    told = ends(world, key, host, replace(end, at=world.now, utime=5.0, stime=2.0), at_once)
    names = [type(event).__name__ for event in told]
    assert names == (["JobShrank", "PartLeft"] if at_once else ["JobShrank", "PartEnded"])
    assert [event.why for event in told if isinstance(event, ev.JobShrank | ev.PartLeft)] == [why] * (2 if at_once else 1)
    assert slots_of(run_of(world, key)) == 2
    assert (world.cluster.use.hosts[host].slots == 0) is at_once, "its slots are the job's until nothing is left there"
    if not at_once:
        [left] = world.hear("gone", key, run_of(world, key).uid, host)
        assert isinstance(left, ev.PartLeft)
    assert host not in [part.host for part in run_of(world, key).parts]
    assert used_by(run_of(world, key), world.now)[1] == 7.0


def test_what_it_used_on_a_host_that_it_released_counts() -> None:
    world, key, host = three_hosts()
    released(world, key, host, cancel=True)
    assert [type(event) for event in ends(world, key, host, End(at=world.now, status=15, utime=3.0), True)] == [ev.PartLeft]
    assert used_by(run_of(world, key), world.now)[1] == 3.0


def test_a_growth_is_complete_when_all_its_hosts_run() -> None:
    world, key = growing()
    world.apply(ev.ResizeAsked(at=world.now, key=key, attempt=1, least=2, most=3))
    world.hosts("h3", slots=1)
    cycle(world)
    new = run_of(world, key).parts[1:]
    assert len(new) == 2
    told = []
    for part in new:
        uid = uid_of(run_of(world, key), part)
        world.hear("prepared", key, uid, part.host, "a:1")
        told.append([type(event) for event in world.hear("started", key, uid, part.host, 7, world.now, "/")])
    assert told == [[ev.PartStarted], [ev.PartStarted, ev.JobResized]]


def test_a_new_host_that_is_gone_before_it_ran_was_none_of_the_jobs() -> None:
    """Nothing has to be told to the job, which has not heard of it."""
    world, key = growing()
    cycle(world)
    run = run_of(world, key)
    told = world.hear("gone", key, uid_of(run, run.parts[1]), "h2")
    assert not [event for event in told if isinstance(event, ev.JobShrank)]
    assert [part.host for part in run_of(world, key).parts] == ["h1"]
    assert run_of(world, key).resize is None


@pytest.mark.parametrize("what", ["request", "release", "cancel"])
def test_a_job_that_does_not_run_is_not_resized(what: str) -> None:
    world, key, host = three_hosts()
    ask = Resize(job=str(key), what=what, hosts=host, most=1, cancel=True)
    world.apply(ev.JobSuspended(at=world.now, key=key, state=JobState.USUSP))
    with pytest.raises(Refused, match="Job is not running"):
        resize(world.cluster, ask, ALICE, world.now)


@pytest.mark.parametrize("silent", [False, True])
def test_a_release_waits_for_the_jobs_command_unless_it_is_to_be_silent(silent: bool) -> None:
    world = World()
    world.hosts("h1", "h2", slots=1)
    key = elastic(world, 1, 2, resize_command="/bin/shrink")
    started(world, key)
    host = run_of(world, key).parts[1].host
    released(world, key, host, silent=silent)
    assert run_of(world, key).parts[1].leaving is silent
    assert (run_of(world, key).resize is None) is silent
