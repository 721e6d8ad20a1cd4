"""When a master answers hosts, when it takes them for silent, and when it gives up what runs there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.decide.control.hosts import silent
from lavad.hosts.leases import Leases
from tests.support.worlds.world import World

TIMEOUT, LEASE, MARGIN = 60, 600, 40
START = 5_000.0


class Bench:
    """One host with a rerunnable job; ``at`` is the master's clock, which has nothing to do with the time of day."""

    def __init__(self, lease: float | None = None, margin: float | None = None) -> None:
        self.world = World()
        self.world.queues(QueueConfig(name="normal", lease=lease, lease_margin=margin))
        self.world.hosts("h", slots=8)
        self.key = self.world.submit(rerunnable=True)
        self.world.step()
        self.leases = Leases(START, START + 20.0)
        self.at = START

    def held(self) -> None:
        self.leases.held(self.at + 20.0)

    def look(self, at: float) -> tuple[list[str], list[int]]:
        """Every second until then; the hosts that became silent, and the keys of expired leases at the last look."""
        names: list[str] = []
        keys: list[int] = []
        while self.at < at:
            self.at += 1.0
            found = self.leases.look(self.world.cluster, self.at)
            names += [name for name, _ in found.silent]
            for name, _ in found.silent:
                self.world.apply(*silent(self.world.cluster, name, self.world.now))
            keys = [key for _, one in found.expired for key in one]
        return names, keys


def test_hosts_are_answered_only_while_no_other_master_can_be_in_office() -> None:
    bench = Bench()
    assert bench.leases.answer("h", START + 19.9)
    assert not bench.leases.answer("h", START + 20.0)
    bench.at = START + 30.0
    bench.held()
    assert bench.leases.answer("h", START + 49.9)


def test_a_lease_that_nobody_else_can_have_does_not_end() -> None:
    assert Leases(START).answer("h", START + 1e9)


def test_what_is_not_answered_does_not_put_off_the_end() -> None:
    bench = Bench()
    assert bench.leases.answer("h", START + 10.0)
    assert not bench.leases.answer("h", START + 25.0)
    assert bench.look(START + 10 + LEASE + MARGIN)[1] == []
    assert bench.look(START + 11 + LEASE + MARGIN)[1] == [bench.key]


@pytest.mark.parametrize("answered", [0.0, 300.0])
def test_a_silent_host_is_given_up_after_lease_and_margin(answered: float) -> None:
    bench = Bench()
    bench.leases.held(START + 1e6)
    if answered:
        assert bench.look(START + 50) == ([], [])
        bench.leases.heard("h", START + 50)
        for at in range(100, int(answered) + 1, 50):
            assert bench.look(START + at) == ([], [])
            bench.leases.heard("h", START + at)
            bench.leases.answer("h", START + at)
    names, keys = bench.look(START + answered + LEASE + MARGIN)
    assert (names, keys) == (["h"], [])
    assert bench.look(START + answered + LEASE + MARGIN + 1)[1] == [bench.key]


def test_a_host_is_silent_after_its_timeout_and_not_before() -> None:
    bench = Bench()
    bench.leases.heard("h", START + 5)
    assert bench.look(START + 5 + TIMEOUT) == ([], [])
    assert bench.look(START + 6 + TIMEOUT) == (["h"], [])


def test_a_master_that_was_stopped_or_slept_counts_from_its_waking() -> None:
    bench = Bench()
    assert bench.look(START + 10) == ([], [])
    bench.at = START + 10_000
    assert bench.look(bench.at + TIMEOUT) == ([], [])
    woke = START + 10_001
    assert bench.look(woke + LEASE + MARGIN) == (["h"], [])
    assert bench.look(woke + LEASE + MARGIN + 1)[1] == [bench.key]


def test_the_time_of_day_fences_nobody() -> None:
    """The master's clock is not the one that events are dated by: a step of that, either way, changes nothing."""
    bench = Bench()
    for step in (86_400.0, -200_000.0):
        bench.world.now += step
        bench.leases.heard("h", bench.at)
        assert bench.look(bench.at + TIMEOUT) == ([], [])


def test_an_extension_puts_the_end_off_and_is_told_to_hosts() -> None:
    bench = Bench()
    bench.leases.extend(START, 7_200.0)
    assert bench.leases.extended_for(START + 200.0) == 7_000.0
    assert bench.look(START + 7_200 + MARGIN) == (["h"], [])
    assert bench.look(START + 7_201 + MARGIN)[1] == [bench.key]
    assert bench.leases.extended_for(START + 8_000.0) == 0.0


def test_a_later_shorter_extension_takes_nothing_back() -> None:
    bench = Bench()
    bench.leases.extend(START, 7_200.0)
    bench.leases.extend(START + 10, 60.0)
    assert bench.leases.extended_for(START + 10.0) == 7_190.0


def test_a_host_that_was_fenced_is_not_waited_for_until_it_is_heard_again() -> None:
    bench = Bench()
    assert bench.leases.to_fence(bench.world.cluster) == []
    assert bench.look(START + TIMEOUT + 1) == (["h"], [])
    assert bench.leases.to_fence(bench.world.cluster) == ["h"]
    bench.leases.is_off("h", bench.at)
    assert bench.leases.to_fence(bench.world.cluster) == []
    assert bench.look(bench.at + 1)[1] == [bench.key]
    bench.leases.heard("h", bench.at)
    assert bench.look(bench.at + 1)[1] == []
    bench.leases.is_off("h", START)
    assert bench.look(bench.at + 1)[1] == [], "it was heard after the program had begun"


def test_nothing_is_fenced_while_most_hosts_are_silent() -> None:
    bench = Bench()
    bench.world.hosts("i", "j", slots=8)
    assert bench.look(START + TIMEOUT + 1)[0] == ["h", "i", "j"]
    assert bench.leases.to_fence(bench.world.cluster) == []
    bench.world.apply(ev.HostUp(at=bench.world.now, host="i"), ev.HostUp(at=bench.world.now, host="j"))
    assert bench.leases.to_fence(bench.world.cluster) == ["h"]


def test_a_queue_has_its_own_lease_and_margin() -> None:
    bench = Bench(lease=90.0, margin=50.0)
    assert bench.look(START + 140) == (["h"], [])
    assert bench.look(START + 141)[1] == [bench.key]


def test_the_lease_of_an_attempt_stays_what_it_was_at_its_dispatch() -> None:
    """The host still counts on it, whatever the files say by now."""
    bench = Bench()
    params = replace(bench.world.cluster.conf.params, lava_lease=100)
    bench.world.configure(params=params)
    assert bench.world.cluster.conf.params.lava_lease == 100
    assert bench.look(START + LEASE + MARGIN) == (["h"], [])
    assert bench.look(START + LEASE + MARGIN + 1)[1] == [bench.key]


def test_jobs_may_run_on_a_host_until_their_leases_are_given_up() -> None:
    """An agent that has lost its memory is refused until then: what it was told to start may be there."""
    bench = Bench()
    cluster, end = bench.world.cluster, START + LEASE + MARGIN
    assert [bench.leases.lasting(cluster, "h", at) for at in (START, end, end + 1)] == [[bench.key], [bench.key], []]
    assert bench.leases.answer("h", START + 10.0)
    assert [bench.leases.lasting(cluster, "h", at) for at in (end + 10, end + 11)] == [[bench.key], []]
    bench.leases.is_off("h", START + 20.0)
    assert bench.leases.lasting(cluster, "h", START + 20.0) == []
