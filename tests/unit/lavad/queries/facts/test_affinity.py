"""bjobs -l -aff and bhosts -l -aff."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.lang.cpus import Binding
from lavad.core.site.host import Facts
from tests.support.topologies import regular
from tests.support.worlds.query_cluster import QueryCluster, at


def cluster() -> QueryCluster:
    c = QueryCluster()
    facts = Facts(ncpus=8, max_mem=16_000, topology=regular(2, 1, 2, 2))
    c.feed(ev.HostJoined(at=at("11:32:00"), host="ol2", facts=facts))
    c.submit(1, slots=2, max_slots=2, resreq="affinity[core(1,exclusive=(core,alljobs)):membind=localonly]")
    binds = (Binding(cpus=(0, 4), nodes=(0,), only=True), Binding(cpus=(2, 6), nodes=(1,), only=True))
    c.start(1, hosts="ol2:2", binds=binds)
    return c


def test_a_job_shows_each_task() -> None:
    text = cluster().ask("bjobs", "1", l=True, aff=True)[0].partition(" AFFINITY:\n")[2]
    rows = [line.split() for line in text.splitlines()[2:5]]
    assert rows == [
        ["HOST", "TYPE", "LEVEL", "EXCL", "IDS", "POL", "NUMA", "SIZE"],
        ["ol2", "core", "core", "core", "/0/0/0", "local", "0", "-"],
        ["ol2", "core", "core", "core", "/1/1/0", "local", "1", "-"],
    ]


def test_without_aff_nothing_is_said() -> None:
    assert "AFFINITY" not in cluster().ask("bjobs", "1", l=True)[0]


def test_a_host_shows_its_processors() -> None:
    text = cluster().ask("bhosts", "ol2", l=True, aff=True)[0].partition(" AFFINITY: ")[2]
    assert text == (
        "Enabled\n Host[15.6G]    ol2\n"
        "    NUMA[0]\n        Socket0\n            core0(*0 *4)\n            core1(1 5)\n"
        "    NUMA[1]\n        Socket1\n            core0(*2 *6)\n            core1(3 7)\n"
    )
    assert "AFFINITY: Disabled" in cluster().ask("bhosts", "ol1", l=True, aff=True)[0]
