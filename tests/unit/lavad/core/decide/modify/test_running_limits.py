"""bmod of a job that runs: limits, priority and name come out as they do for one that waits, and what is not asked for stays."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Limits
from lavad.core.decide.modify.switch import switch
from lavad.core.lang.asks import Refused, Select, Switch
from tests.support.worlds.bench import Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmod
from tests.unit.lavad.core.decide.modify.test_running import running

LIMITED = QueueConfig(
    name="normal",
    defaults=Limits(run=600, cpu=900),
    limits=Limits(run=6000, mem=500_000),
    default_host_spec="h3",
)
SHORT = QueueConfig(name="short", limits=Limits(run=60, mem=500), defaults=Limits(cpu=30))


@pytest.fixture
def site(bench: Bench) -> Bench:
    params = replace(bench.cluster.conf.params, max_user_priority=10, lsb_mod_all_jobs=True)
    bench.configure(
        queues=(LIMITED, SHORT, QueueConfig(name="free")),
        apps=(ApplicationConfig("sim", defaults=Limits(run=120)),),
        params=params,
    )
    return bench


@pytest.mark.parametrize("first", [{}, {"W": "20/h2"}, {"c": "7/h2"}, {"app": "sim"}, {"sp": "3"}])
@pytest.mark.parametrize(
    "then", [{"W": "5"}, {"W": "5/h2"}, {"Wn": True}, {"cn": True}, {"Mn": True}, {"M": "9"}, {"spn": True}, {"J": ""}]
)
def test_as_for_one_that_waits(site: Bench, first: dict[str, Any], then: dict[str, Any]) -> None:
    runs, waits = running(site, **first), site.bsub(**first)["job"]
    for key in (runs, waits):
        bmod(site, key, **then)
    assert site.cluster.spec_of(runs) == site.cluster.spec_of(waits)
    assert site.job(runs).name == site.job(waits).name


def test_in_a_queue_that_it_was_switched_to_only_what_is_asked_for_changes(site: Bench) -> None:
    key = running(site, q="free")
    before = site.cluster.spec_of(key).limits
    assert site.asked(switch, Switch(queue="short", jobs=Select(ids=[str(key)]))) == [(str(key), "")]
    bmod(site, key, Jd="slow", p="7")
    assert site.cluster.spec_of(key).limits == replace(before, processes=7)
    with pytest.raises(Refused, match="RUNLIMIT: Cannot exceed queue's hard limit"):
        bmod(site, key, W="90")
    bmod(site, key, Mn=True)
    assert site.cluster.spec_of(key).limits == replace(before, processes=7, mem=500)
    bmod(site, key, Wn=True)
    assert site.cluster.spec_of(key).limits == replace(before, processes=7, mem=500, run=60)


def test_hosts_of_a_limit_and_of_a_default_may_differ(site: Bench) -> None:
    """As bsub takes them; bmod of anything else is not refused for them."""
    key = site.bsub(W="20/h2")["job"]
    spec = site.cluster.spec_of(key)
    assert (spec.run_host, spec.cpu_host) == ("h2", "h3")
    bmod(site, key, P="other")
    with pytest.raises(Refused, match="More than one host_spec"):
        bmod(site, key, W="5/h2", c="5/h3")
