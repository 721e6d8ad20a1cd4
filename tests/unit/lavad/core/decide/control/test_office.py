"""A master takes office, takes another configuration, and lets leases last longer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.control import tokens
from lavad.core.decide.control.hosts import switch_hosts
from lavad.core.decide.control.office import (
    MAX_EXTENSION,
    check_reconfig,
    configure,
    extend_leases,
    note_extension,
    take_office,
)
from lavad.core.decide.reserve.reservations import check_creator
from lavad.core.lang.asks import Hosts, Lease, Refused
from lavad.core.lang.token_ask import ListTokens
from tests.support.worlds.bench import ADMIN, ALICE, Bench


def started(epoch: int, incarnation: str) -> ev.MasterStarted:
    return ev.MasterStarted(at=0.0, epoch=epoch, incarnation=incarnation, host="m2")


def test_the_next_master_keeps_the_name_of_the_store(bench: Bench) -> None:
    bench.take(take_office(bench.cluster, bench.now, started(2, "other"), bench.cluster.conf))
    assert (bench.cluster.epoch, bench.cluster.incarnation) == (2, "test")


def test_a_configuration_is_taken_where_it_differs(bench: Bench) -> None:
    other = replace(bench.cluster.conf, admins=("boss", "deputy"))
    assert configure(bench.cluster, bench.now, bench.cluster.conf).events == []
    bench.take(take_office(bench.cluster, bench.now, started(2, "other"), other))
    assert bench.cluster.conf == other


def test_only_administrators_reconfigure(bench: Bench) -> None:
    check_reconfig(bench.cluster, ADMIN)
    with pytest.raises(Refused, match="User permission denied"):
        check_reconfig(bench.cluster, ALICE)


def test_an_administrator_on_another_host_is_told_where_the_rights_are(bench: Bench) -> None:
    elsewhere = replace(ADMIN, may_administer=False)
    why = "User permission denied: administrators have their rights on LAVA_ADMIN_HOSTS only"
    with pytest.raises(Refused, match=f"^{why}$"):
        check_reconfig(bench.cluster, elsewhere)
    with pytest.raises(Refused, match=f"^{why}$"):
        check_creator(bench.cluster.conf, elsewhere)
    with pytest.raises(Refused, match=f"^{why}$"):
        tokens.shown(bench.cluster, ListTokens(user="bob"), elsewhere, bench.now)
    close = switch_hosts(bench.cluster, Hosts(hosts=["h1"], close=True), elsewhere, bench.now)
    assert (close.events, close.answer["results"]) == ([], [{"host": "h1", "ok": False, "why": why}])


@pytest.mark.parametrize("seconds", [0.0, -1.0, MAX_EXTENSION + 1, float("nan")])
def test_a_lease_is_extended_by_a_day_at_most(bench: Bench, seconds: float) -> None:
    assert extend_leases(bench.cluster, Lease(seconds=MAX_EXTENSION), ADMIN, bench.now).events
    with pytest.raises(Refused, match="is extended by up to"):
        extend_leases(bench.cluster, Lease(seconds=seconds), ADMIN, bench.now)
    with pytest.raises(Refused, match="User permission denied"):
        extend_leases(bench.cluster, Lease(seconds=60.0), ALICE, bench.now)


def test_an_extension_is_never_shorter_than_what_hosts_count_on(bench: Bench) -> None:
    """What is left is noted for the next master, down to nothing; until then nobody shortens it."""
    bench.take(extend_leases(bench.cluster, Lease(seconds=3600.0), ADMIN, bench.now).events)
    bench.take(extend_leases(bench.cluster, Lease(seconds=60.0), ADMIN, bench.now).events)
    assert bench.cluster.extended == (bench.now, 3600.0)
    bench.take(note_extension(bench.cluster, 0.0, bench.now).events)
    assert note_extension(bench.cluster, 0.0, bench.now).events == []
    bench.take(extend_leases(bench.cluster, Lease(seconds=60.0), ADMIN, bench.now).events)
    assert bench.cluster.extended == (bench.now, 60.0)
