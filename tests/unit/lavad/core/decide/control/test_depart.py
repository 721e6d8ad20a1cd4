"""Hosts that leave the cluster."""

from __future__ import annotations

from msgspec.structs import replace

from config.model.cluster import HostConfig
from lavad.core import events as ev
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.depart import depart, is_due
from lavad.core.decide.control.hosts import silent, switch_hosts
from lavad.core.decide.control.office import configure
from lavad.core.job.job import Placed
from lavad.core.lang.asks import Hosts
from lavad.core.site.reservation import Reservation
from tests.support.worlds.bench import ADMIN, Bench


def named(bench: Bench, *names: str, **more: object) -> None:
    conf = replace(bench.cluster.conf, hosts=tuple(HostConfig(name=name) for name in names), **more)
    bench.take(Decided(events=[ev.Configured(at=bench.now, conf=conf)]))


def go(bench: Bench, host: str) -> list[ev.Event]:
    events = depart(bench.cluster, host, bench.now)
    bench.take(Decided(events=events))
    return events


def test_a_host_that_is_no_longer_named_leaves_once_its_jobs_have_ended(bench: Bench) -> None:
    key = bench.placed("RUN")
    run = bench.job(key).run
    assert run is not None
    host = run.parts[0].host
    others = [name for name in bench.cluster.hosts.rows if name != host]
    named(bench, *others)
    [closed] = go(bench, host)
    assert isinstance(closed, ev.HostSwitched)
    assert go(bench, host) == []
    assert bench.job(key).state.name == "RUN"
    bench.finish(key)
    [left] = go(bench, host)
    assert isinstance(left, ev.HostLeft)
    assert list(bench.cluster.hosts.rows) == others
    assert go(bench, host) == []
    bench.bsub()
    assert {host for slots in bench.step().values() for host in slots} <= set(others)


def test_no_job_starts_on_a_host_that_the_new_configuration_does_not_name(bench: Bench) -> None:
    """From the same commit on, and a plan made before it is of no use; named again, it is open again."""
    first, *others = bench.cluster.hosts.rows
    whole = replace(bench.cluster.conf, hosts=tuple(HostConfig(name=name) for name in (first, *others)))
    bench.take(configure(bench.cluster, bench.now, whole))
    assert not bench.cluster.hosts.rows[first].closed
    bench.bsub(m=first)
    before = bench.schedule()
    assert [part.host for placement in before.placements for part in placement.parts] == [first]
    bench.take(configure(bench.cluster, bench.now, replace(whole, hosts=whole.hosts[1:])))
    assert bench.accept(before) == []
    assert [name for name, row in bench.cluster.hosts.rows.items() if row.closed] == [first]
    bench.bsub()
    assert first not in {host for slots in bench.step().values() for host in slots}
    [refused] = switch_hosts(bench.cluster, Hosts(hosts=[first], close=False), ADMIN, bench.now).answer["results"]
    assert refused["why"] == "it is not in lsf.cluster.lava"
    assert bench.cluster.hosts.rows[first].closed
    bench.take(configure(bench.cluster, bench.now, whole))
    [opened] = go(bench, first)
    assert isinstance(opened, ev.HostSwitched)
    assert not opened.closed


def test_a_dynamic_host_leaves_after_its_timeout(bench: Bench) -> None:
    host = next(iter(bench.cluster.hosts.rows))
    params = replace(bench.cluster.conf.params, lsf_dynamic_host_timeout=600, open_hosts=True)
    named(bench, "other", params=params)
    assert go(bench, host) == []
    bench.take(Decided(events=silent(bench.cluster, host, bench.now)))
    assert go(bench, host) == []
    bench.now += 601
    [left] = go(bench, host)
    assert isinstance(left, ev.HostLeft)
    assert go(bench, "other") == []


def in_use_and_not_named(bench: Bench) -> str:
    """A host that is closed as it is to leave."""
    run = bench.job(bench.placed("RUN")).run
    assert run is not None
    host = run.parts[0].host
    named(bench, *(name for name in bench.cluster.hosts.rows if name != host))
    go(bench, host)
    assert bench.cluster.hosts.rows[host].closed
    return host


def test_a_host_that_is_named_again_before_it_has_left_is_open_again(bench: Bench) -> None:
    host = in_use_and_not_named(bench)
    assert is_due(bench.cluster, host, bench.now)
    assert not bench.cluster.hosts.rows[host].is_faulty
    named(bench, *bench.cluster.hosts.rows)
    assert is_due(bench.cluster, host, bench.now)
    [opened] = go(bench, host)
    assert isinstance(opened, ev.HostSwitched)
    assert not bench.cluster.hosts.rows[host].closed
    assert not is_due(bench.cluster, host, bench.now)
    assert go(bench, host) == []


def test_what_an_administrator_closes_meanwhile_stays_closed(bench: Bench) -> None:
    host = in_use_and_not_named(bench)
    bench.apply(ev.HostSwitched(at=bench.now, host=host, closed=True, by="admin"))
    named(bench, *bench.cluster.hosts.rows)
    assert go(bench, host) == []
    assert bench.cluster.hosts.rows[host].closed
    assert not is_due(bench.cluster, host, bench.now)


def test_a_host_that_falls_silent_while_it_is_to_leave_has_not_failed(bench: Bench) -> None:
    host = in_use_and_not_named(bench)
    bench.take(Decided(events=silent(bench.cluster, host, bench.now)))
    assert bench.cluster.hosts.rows[host].failures == 0


def test_a_dynamic_host_that_is_heard_again_before_it_has_left_is_open_again(bench: Bench) -> None:
    run = bench.job(bench.placed("RUN")).run
    assert run is not None
    host = run.parts[0].host
    params = replace(bench.cluster.conf.params, lsf_dynamic_host_timeout=600, open_hosts=True)
    named(bench, "other", params=params)
    bench.take(Decided(events=silent(bench.cluster, host, bench.now)))
    bench.now += 601
    go(bench, host)
    assert bench.cluster.hosts.rows[host].closed
    bench.apply(ev.HostUp(at=bench.now, host=host))
    [opened] = go(bench, host)
    assert isinstance(opened, ev.HostSwitched)
    assert not bench.cluster.hosts.rows[host].closed


def test_a_host_that_a_reservation_or_a_waiting_job_counts_on_stays(bench: Bench) -> None:
    host, *others = bench.cluster.hosts.rows
    named(bench, *others)
    for row, kind in ((others[0], ev.HostLeft), (host, ev.HostSwitched)):
        bench.cluster.reservations.put("r", Reservation(name="r", hosts=((row, 1),), end=bench.now + 60))
        [event] = depart(bench.cluster, host, bench.now)
        assert isinstance(event, kind)
    bench.cluster.reservations.drop("r")
    key = bench.submit()
    bench.take(Decided(events=[ev.SlotsReserved(at=bench.now, key=key, parts=(Placed(host=host, slots=1),))]))
    [event] = depart(bench.cluster, host, bench.now)
    assert isinstance(event, ev.HostSwitched)
