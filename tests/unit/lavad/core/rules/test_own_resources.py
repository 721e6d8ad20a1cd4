"""Resources of a host: those of the cluster's files, and those that it says it has."""

from __future__ import annotations

import pytest

from config.model.cluster import HostConfig
from lavad.core import events as ev
from lavad.core.rules.host_values import own_resource, own_resources, static_values
from lavad.core.site.conf import ResourceConf
from lavad.core.site.host import Facts
from tests.support.worlds.world import World


@pytest.fixture
def world() -> World:
    made = World()
    made.configure(
        hosts=(HostConfig(name="h1", resources=(("rack", "7"), ("!big", ""))),),
        resources=(
            *(ResourceConf(name=name) for name in ("big", "fast")),
            ResourceConf(name="rack", kind="string"),
            ResourceConf(name="licences", kind="numeric"),
            ResourceConf(name="pool", kind="numeric", locations=((4.0, ("all",)),)),
        ),
    )
    local = (("big", ""), ("fast", ""), ("licences", "2"), ("pool", "9"), ("rack", "8"), ("unknown", ""))
    for host in ("h1", "h2"):
        made.hosts(host, slots=4)
        made.apply(ev.HostJoined(at=made.now, host=host, facts=Facts(ncpus=4, local=local)))
    return made


def test_the_files_stand_before_what_a_host_says(world: World) -> None:
    """What lsf.shared does not define counts for nothing, nor what hosts share."""
    assert own_resources(world.cluster, "h1") == (("rack", "7"), ("!big", ""), ("fast", ""), ("licences", "2"))
    assert own_resources(world.cluster, "h2") == (("big", ""), ("fast", ""), ("licences", "2"), ("rack", "8"))
    assert static_values(world.cluster, "h2")["licences"] == 2


@pytest.mark.parametrize("host", ["h1", "h2", "h9"])
def test_one_is_as_among_all(world: World, host: str) -> None:
    every = {name.lstrip("!"): value for name, value in own_resources(world.cluster, host)}
    for name in ("big", "fast", "rack", "licences", "pool", "unknown", "nosuch"):
        assert own_resource(world.cluster, host, name) == every.get(name)


def test_a_job_reserves_what_a_host_says_it_has(world: World) -> None:
    jobs = [world.submit(hosts=("h2",), resreq="rusage[licences=1]") for _ in range(3)]
    assert sorted(world.step()) == jobs[:2]
