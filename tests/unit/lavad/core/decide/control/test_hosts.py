"""Hosts greet, fall silent, come back with or without what ran there, and are given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.decide.control import control
from lavad.core.decide.control.faulty_hosts import Cause, close_faulty, open_again
from lavad.core.decide.control.hosts import expired, greeted, silent, switch_hosts
from lavad.core.job.job import End
from lavad.core.job.spec import Checkpoint
from lavad.core.lang.asks import Hosts, Kill, Refused, Select
from lavad.core.lang.states import HostState, JobState, PartState, SignalKind, TermReason
from lavad.core.rules.effects import StartPart, effects_due
from lavad.core.site.host import Facts
from tests.support.worlds.bench import ADMIN, ALICE, Bench
from tests.support.worlds.world import World

KINDS = [{}, {"rerunnable": True}]


def greet(bench: Bench, host: str, known: Mapping[str, str] | None = None, boot: str = "", sent: bool = True) -> list[str]:
    """The names of the events of a greeting."""
    old = bench.cluster.hosts.rows.get(host)
    facts = Facts(ncpus=4, max_mem=16_000, boot_id=boot or (old.facts.boot_id if old else ""))
    if not boot and old is not None:
        facts = old.facts
    events = greeted(bench.cluster, host, facts, known or {}, bench.now, lambda run: sent)
    return [type(event).__name__ for event in bench.take(events)]


def booted(bench: Bench) -> None:
    """All hosts have a boot id."""
    for host in ("h1", "h2", "h3"):
        bench.apply(ev.HostJoined(at=bench.now, host=host, facts=Facts(ncpus=4, max_mem=16_000, boot_id="one")))


def test_a_new_host_joins_and_a_known_one_is_just_up(bench: Bench) -> None:
    assert greet(bench, "h9", boot="one") == ["HostJoined", "HostUp"]
    assert greet(bench, "h9") == []
    assert greet(bench, "h9", boot="two") == ["HostJoined"]
    bench.take(silent(bench.cluster, "h9", bench.now))
    assert greet(bench, "h9") == ["HostUp"]


def test_a_host_whose_driver_does_not_answer_keeps_its_gpus(bench: Bench) -> None:
    bench.hosts("g1", gpus=2)
    had = bench.cluster.hosts.rows["g1"].facts
    seen = replace(had, gpus=(), gpu_driver="", ncpus=had.ncpus + 1)
    bench.take(greeted(bench.cluster, "g1", seen, {}, bench.now, gpus_unknown=True))
    row = bench.cluster.hosts.rows["g1"]
    assert row.facts == replace(had, ncpus=had.ncpus + 1)
    assert [(gpu.uuid, gpu.cause) for gpu in row.closed_gpus] == [(gpu.uuid, "health") for gpu in had.gpus]
    bench.take(greeted(bench.cluster, "g1", seen, {}, bench.now))
    assert bench.cluster.hosts.rows["g1"].facts == seen
    bench.take(greeted(bench.cluster, "g2", seen, {}, bench.now, gpus_unknown=True))
    assert bench.cluster.hosts.rows["g2"].facts == seen


@pytest.mark.parametrize("state", ["RUN", "USUSP", "SSUSP"])
def test_a_silent_hosts_job_is_unkwn_and_then_what_it_was(bench: Bench, state: str) -> None:
    key = bench.placed(state)
    bench.take(silent(bench.cluster, "h1", bench.now))
    assert bench.cluster.hosts.rows["h1"].state is HostState.UNAVAIL
    assert bench.job(key).state is JobState.UNKWN
    assert silent(bench.cluster, "h1", bench.now) == []
    assert greet(bench, "h1", {bench.uid(key): "running"}) == ["HostUp", "JobFound"]
    assert bench.job(key).state.name == state


@pytest.mark.parametrize("wanted", ["USUSP", "RUN"])
def test_what_a_user_wanted_outlives_a_silence(bench: Bench, wanted: str) -> None:
    """The stop or go that the host has not confirmed is asked of it again."""
    key = bench.placed("USUSP")
    bench.said("stopped", key, "h1", True)
    if wanted == "RUN":
        bench.apply(ev.JobResumed(at=bench.now, key=key))
    bench.take(silent(bench.cluster, "h1", bench.now))
    greet(bench, "h1", {bench.uid(key): "running"})
    assert bench.job(key).state.name == wanted


def test_a_gang_is_found_when_all_its_hosts_speak(bench: Bench) -> None:
    key = bench.placed(slots=8)
    for host in ("h1", "h2"):
        bench.take(silent(bench.cluster, host, bench.now))
    known = {bench.uid(key): "running"}
    assert greet(bench, "h1", known) == ["HostUp"]
    assert greet(bench, "h2", known) == ["HostUp", "JobFound"]


@pytest.mark.parametrize("fields", KINDS)
@pytest.mark.parametrize("unknown", [True, False])
def test_a_host_that_no_longer_has_a_job(bench: Bench, fields: dict[str, bool], unknown: bool) -> None:
    key = bench.placed("UNKWN" if unknown else "RUN", **fields)
    names = greet(bench, "h1")
    assert names[-1] == ("JobRequeued" if fields else "JobFinished")
    if not fields:
        assert bench.outcome(key).reason is TermReason.TERM_UNKNOWN


@pytest.mark.parametrize("fields", KINDS)
@pytest.mark.parametrize("boot", ["one", "two"])
@pytest.mark.parametrize("sent", [True, False])
def test_an_offer_that_a_host_does_not_know(bench: Bench, fields: dict[str, Any], boot: str, sent: bool) -> None:
    """It is made again, unless it may have run there before the host was booted, and may not run twice."""
    booted(bench)
    key = bench.submit(**fields)
    bench.step()
    names = greet(bench, "h1", boot=boot, sent=sent)
    if boot == "two" and sent and not fields:
        assert names == ["HostJoined", "JobFinished"]
    else:
        assert "JobFinished" not in names
        assert [type(effect) for effect in effects_due(bench.job(key))] == [StartPart]


@pytest.mark.parametrize("boot", ["one", "two"])
def test_a_gang_that_was_not_told_to_go_is_offered_anew_or_given_up_whole(bench: Bench, boot: str) -> None:
    booted(bench)
    key = bench.submit(slots=8)
    bench.step()
    bench.said("prepared", key, "h2", "b:1")
    assert "PartRefused" not in greet(bench, "h1", boot=boot)
    assert bench.run(key).parts[0].state is PartState.OFFERED
    assert greet(bench, "h2", boot=boot)[-1] == "PartRefused"
    assert bench.said("gone", key, "h1")[-1] == "JobRequeued"


def test_a_gang_goes_when_its_silent_host_is_back_prepared(bench: Bench) -> None:
    key = bench.submit(slots=8)
    bench.step()
    bench.said("prepared", key, "h1", "a:1")
    bench.take(silent(bench.cluster, "h1", bench.now))
    bench.said("prepared", key, "h2", "b:1")
    assert greet(bench, "h1", {bench.uid(key): "prepared"}) == ["HostUp", "JobFound", "GangReleased"]


@pytest.mark.parametrize("option", [{}, {"r": True}, {"k": "/ckpt"}])
def test_an_expired_lease_fences_what_has_one(bench: Bench, option: dict[str, Any]) -> None:
    key = bench.bsub(**option)["job"]
    bench.step()
    bench.start(key)
    bench.take(silent(bench.cluster, "h1", bench.now))
    bench.take(expired(bench.cluster, "h1", [key], bench.now))
    assert bench.job(key).state is (JobState.PEND if option else JobState.UNKWN)
    assert bench.job(key).avoid == (("h1",) if option else ()), "it may be back soon, as it was"


def test_a_host_that_greeted_meanwhile_is_not_fenced(bench: Bench) -> None:
    key = bench.placed(rerunnable=True)
    assert expired(bench.cluster, "h1", [key], bench.now) == []
    assert expired(bench.cluster, "nosuch", [key], bench.now) == []


def test_a_killed_job_on_a_lost_host_ends_when_it_is_fenced(bench: Bench) -> None:
    key = bench.placed("UNKWN", rerunnable=True)
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)])))
    assert bench.job(key).state is JobState.ZOMBI
    bench.take(expired(bench.cluster, "h1", [key], bench.now))
    assert bench.finished(key).state is JobState.EXIT


def test_a_zombie_whose_host_is_back_runs_and_is_still_to_be_killed(bench: Bench) -> None:
    key = bench.placed("UNKWN")
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)])))
    greet(bench, "h1", {bench.uid(key): "running"})
    assert bench.job(key).state is JobState.RUN
    assert [pending.kind for pending in bench.run(key).pending_signals] == ["kill"]


@pytest.mark.parametrize(("close", "closed"), [(True, True), (False, False)])
def test_an_administrator_opens_and_closes(bench: Bench, close: bool, closed: bool) -> None:
    bench.take(switch_hosts(bench.cluster, Hosts(hosts=["all"], close=close), ADMIN, bench.now))
    assert {host.closed for host in bench.cluster.hosts.rows.values()} == {closed}


def test_others_do_not(bench: Bench) -> None:
    decided = switch_hosts(bench.cluster, Hosts(hosts=["h1"], close=True), ALICE, bench.now)
    assert decided.events == []
    assert decided.answer["results"] == [{"host": "h1", "ok": False, "why": "User permission denied"}]
    with pytest.raises(Refused, match="Bad host name"):
        switch_hosts(bench.cluster, Hosts(hosts=["nosuch"], close=True), ADMIN, bench.now)


@pytest.mark.parametrize("group", ["outer", "every"])
def test_groups_in_groups_are_opened_and_closed(bench: Bench, group: str) -> None:
    bench.configure(host_groups=(("outer", ("inner", "h1")), ("inner", ("h1", "h2", "away")), ("every", ("all",))))
    bench.take(switch_hosts(bench.cluster, Hosts(hosts=[group, "h1"], close=True), ADMIN, bench.now))
    closed = [name for name, host in bench.cluster.hosts.rows.items() if host.closed]
    assert sorted(closed) == (["h1", "h2"] if group == "outer" else sorted(bench.cluster.hosts.rows))


def drain(bench: Bench, *hosts: str) -> list[tuple[str, int, int]]:
    decided = switch_hosts(bench.cluster, Hosts(hosts=list(hosts), close=True, migrate=True), ADMIN, bench.now)
    return [(row["host"], row["leave"], row["stay"]) for row in bench.take(decided)["results"]]


def asked_to_leave(bench: Bench, *keys: int) -> list[bool]:
    return [[pending.kind for pending in bench.run(key).pending_signals] == [SignalKind.MIGRATE] for key in keys]


def test_jobs_that_can_start_elsewhere_leave_a_host_that_is_drained(bench: Bench) -> None:
    saved = bench.placed(checkpoint=Checkpoint(folder="/ckpt", method="app"), hosts=("h1",))
    again = bench.placed(rerunnable=True, hosts=("h1",))
    plain = bench.placed(hosts=("h1",))
    other = bench.placed(rerunnable=True, hosts=("h2",))
    assert drain(bench, "h1") == [("h1", 2, 1)]
    assert asked_to_leave(bench, saved, again, plain, other) == [True, True, False, False]
    assert bench.cluster.hosts.rows["h1"].closed
    assert drain(bench, "h1") == [("h1", 2, 1)], "those that leave already are asked once"
    assert asked_to_leave(bench, saved, again) == [True, True]
    assert bench.ended(again, "h1", 9) == ["JobRequeued"]
    bench.now += 1000
    bench.step()
    assert bench.job(again).run is None, "the host that it asks for is closed"


def test_a_job_on_two_hosts_that_are_drained_is_asked_once(bench: Bench) -> None:
    key = bench.placed(rerunnable=True, slots=8)
    hosts = list(bench.running()[key])
    assert drain(bench, *hosts) == [(host, 1, 0) for host in hosts]
    assert asked_to_leave(bench, key) == [True]


def test_who_may_not_close_a_host_moves_nothing(bench: Bench) -> None:
    key = bench.placed(rerunnable=True, hosts=("h1",))
    decided = switch_hosts(bench.cluster, Hosts(hosts=["h1"], close=True, migrate=True), ALICE, bench.now)
    assert (decided.events, bench.run(key).pending_signals) == ([], ())


@pytest.mark.parametrize(("names", "close", "why"), [(["all"], True, "all: no host"), (["h1"], False, "hopen: jobs leave")])
def test_what_cannot_be_drained(bench: Bench, names: list[str], close: bool, why: str) -> None:
    with pytest.raises(Refused, match=why):
        switch_hosts(bench.cluster, Hosts(hosts=names, close=close, migrate=True), ADMIN, bench.now)


def test_jobs_that_start_again_with_more_memory_as_a_host_is_lost_stay_those_of_their_users() -> None:
    """They had reached their limit on their other host."""
    world = World()
    world.hosts("h1", "h2", slots=2)
    fields: dict[str, Any] = {"slots": 2, "memory_auto": True, "rerunnable": True, "resreq": "span[ptile=1]"}
    keys = {world.submit(user=user, limits=Limits(mem=100_000), **fields): user for user in ("ann", "ben")}
    assert len(world.step()) == 2
    for key in keys:
        for host in ("h1", "h2"):
            world.hear("prepared", key, uid_of(world, key), host, "a:1")
            world.hear("started", key, uid_of(world, key), host, 1, world.now)
        end = End(at=5.0, limit=TermReason.TERM_MEMLIMIT, max_mem=100_000)
        world.hear("ended", key, uid_of(world, key), "h1", end, True)
    world.apply(*silent(world.cluster, "h2", world.now))
    world.apply(*expired(world.cluster, "h2", list(keys), world.now))
    assert {key: world.cluster.spec_of(key).user for key in keys} == keys
    assert {world.cluster.jobs.rows[key].state for key in keys} == {JobState.PEND}
    assert {world.cluster.spec_of(key).limits.mem for key in keys} == {200_000}


def uid_of(world: World, key: int) -> str:
    run = world.cluster.jobs.rows[key].run
    assert run is not None
    return run.uid


def test_the_master_opens_no_host_that_an_administrator_has_closed(bench: Bench) -> None:
    """Before it found a fault there, or after."""
    bench.take(switch_hosts(bench.cluster, Hosts(hosts=["h1"], close=True), ADMIN, bench.now))
    assert close_faulty(bench.cluster, "h1", Cause.HEALTH, "the disk is full", bench.now) == []
    assert open_again(bench.cluster, "h1", Cause.HEALTH, "it is well again", bench.now) == []
    bench.apply(*close_faulty(bench.cluster, "h2", Cause.HEALTH, "the disk is full", bench.now))
    assert bench.cluster.hosts.rows["h2"].closed
    assert open_again(bench.cluster, "h2", Cause.STARTS, "", bench.now) == []
    bench.apply(*open_again(bench.cluster, "h2", Cause.HEALTH, "it is well again", bench.now))
    assert not bench.cluster.hosts.rows["h2"].closed
    assert close_faulty(bench.cluster, "gone", Cause.HEALTH, "", bench.now) == []
