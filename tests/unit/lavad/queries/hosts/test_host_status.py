"""What bhosts and lsload say of a host that takes no jobs, or fewer."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from config.model.values import Thresholds
from lavad.core import events as ev
from lavad.core.site.conf import ResourceConf
from tests.support.worlds.query_cluster import QueryCluster


def cluster_with(**host: Any) -> QueryCluster:
    c = QueryCluster()
    conf = c.cluster.conf
    temperature = ResourceConf("temp", "numeric", interval=30)
    hosts = (HostConfig("ol1", 4, **host), *conf.hosts[1:])
    c.feed(ev.Configured(at=c.now, conf=replace(conf, hosts=hosts, resources=(*conf.resources, temperature))))
    c.soft.load["ol1"] |= {"temp": 40.0}
    return c


@pytest.mark.parametrize(
    ("index", "most", "busy"),
    [
        ("r1m", 1.3, True),
        ("r1m", 1.4, False),
        ("ut", 0.5, True),
        ("mem", 24000.0, True),
        ("mem", 23500.0, False),
        ("tmp", 80000.0, True),
        ("it", 1e9, True),
        ("temp", 39.0, True),
        ("temp", 41.0, False),
        ("scratch", 200.0, True),
        ("scratch", 50.0, False),
    ],
)
def test_a_host_beyond_a_threshold_is_busy(index: str, most: float, busy: bool) -> None:
    """An index that grows with the load above it, one of what is left below it."""
    c = cluster_with(thresholds=Thresholds(sched=((index, most),)))
    assert c.ask("bhosts", "ol1", o="status", noheader=True)[0].split() == ["closed_Busy" if busy else "ok"]
    row = c.ask("lsload", "ol1", I=index)[0].split()
    assert (row[-2], row[-1][:1] == "*") == ("busy" if busy else "ok", busy)


def test_a_host_outside_its_window_and_one_that_a_job_has_alone() -> None:
    c = cluster_with(dispatch_window="2:00-2:05")
    c.submit(1, exclusive=True)
    c.start(1, hosts="ol2")
    assert c.ask("bhosts", "ol1", "ol2", o="status", noheader=True)[0].split() == ["closed_Wind", "closed_Excl"]


@pytest.mark.parametrize(("options", "shown"), [({}, "1.4"), ({"E": True}, "0.7"), ({"N": True}, "0.0")])
def test_run_queues_for_each_processor_and_by_the_speed_of_the_host(options: dict[str, Any], shown: str) -> None:
    assert QueryCluster().ask("lsload", "ol1", I="r1m", **options)[0].split()[-1] == shown


def test_of_more_processes_than_processors_those_that_wait_count() -> None:
    c = QueryCluster()
    c.soft.load["ol1"]["r1m"] = 4.0
    assert c.ask("lsload", "ol1", I="r1m", E=True)[0].split()[-1] == "3.0"


def test_instances_of_a_resource_on_some_hosts_and_on_all() -> None:
    """Each host has its own, or a part in one that all share; what jobs reserve of one is held of it on each of its hosts."""
    c = QueryCluster()
    fast = ResourceConf("fast", "numeric", locations=((10.0, ("ol1",)), (20.0, ("ol2", "ol3"))))
    seats = ResourceConf("seats", "numeric", locations=((6.0, ("all",)),))
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, resources=(fast, seats))))
    c.submit(1)
    c.start(1, hosts="ol2", reserved=(("fast", 4.0), ("seats", 1.0)))
    for select, fitting in (("fast>15", "ol2 ol3"), ("fast>5 && seats>5", "ol1 ol2 ol3"), ("fast==10", "ol1")):
        rows = c.ask("lsload", R=f"select[{select}]", o="host_name", noheader=True)[0]
        assert sorted(rows.split()) == fitting.split()
    for host, held in (("ol1", ["0.0", "1.0"]), ("ol2", ["4.0", "1.0"]), ("ol3", ["4.0", "1.0"])):
        lines = [line.split() for line in c.ask("bhosts", host, l=True)[0].splitlines()]
        at = lines.index(["fast", "seats"])
        assert lines[at + 1 : at + 3] == [["Total", "10" if host == "ol1" else "20", "6"], ["Reserved", *held]]
    assert "  fast\n    20\n  seats\n    6\n" in c.ask("lshosts", "ol3", l=True)[0]
    assert [line.split()[:3] for line in c.ask("bhosts", s=True, noheader=True)[0].splitlines()] == [
        ["fast", "10", "0.0"],
        ["fast", "20", "4.0"],
        ["seats", "6", "1.0"],
    ]
