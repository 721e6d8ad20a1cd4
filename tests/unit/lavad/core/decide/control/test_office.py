"""A master takes office, takes another configuration, and lets leases last longer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.control.office import MAX_EXTENSION, check_extension, check_reconfig, configure, take_office
from lavad.core.lang.asks import Refused
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


@pytest.mark.parametrize("seconds", [0.0, -1.0, MAX_EXTENSION + 1, float("nan")])
def test_a_lease_is_extended_by_a_day_at_most(bench: Bench, seconds: float) -> None:
    check_extension(bench.cluster, ADMIN, MAX_EXTENSION)
    with pytest.raises(Refused, match="is extended by up to"):
        check_extension(bench.cluster, ADMIN, seconds)
    with pytest.raises(Refused, match="User permission denied"):
        check_extension(bench.cluster, ALICE, 60.0)
