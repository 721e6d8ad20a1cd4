"""blimits: how much of each limit of lsb.resources is used, with a column for each resource beyond slots, memory and jobs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.cluster import Limit
from lavad.core.events import Configured
from lavad.core.lang.asks import Query
from lavad.core.lang.gpureq import GpuReq
from tests.support.worlds.query_cluster import QueryCluster

LIMITS = (
    Limit(name="cards", per_user=True, users=("all",), resources=(("ngpus_physical", 2.0), ("gmem", 8000.0))),
    Limit(name="few", queues=("normal",), slots=4),
)


def busy() -> QueryCluster:
    c = QueryCluster(with_gpus=True)
    c.feed(Configured(at=c.now, conf=replace(c.cluster.conf, limits=LIMITS)))
    c.submit(1, gpu=GpuReq(num=2, mode="shared", gmem_mb=3000.0))
    c.start(1, hosts="ol2", gpus=("GPU-a", "GPU-b"))
    return c


def test_gpus_that_jobs_have_of_a_limit_on_gpus() -> None:
    out, err, status = busy().ask("blimits")
    assert (err, status) == ("", 0)
    internal, external = out.split("\n\nEXTERNAL RESOURCE LIMITS:\n\n")
    rows = [line.split() for line in internal.splitlines()[2:]]
    assert rows == [
        ["NAME", "USERS", "QUEUES", "HOSTS", "PROJECTS", "SLOTS", "MEM", "JOBS"],
        ["cards", "alice", "-", "-", "-", "-", "-", "-"],
        ["few", "-", "normal", "-", "-", "1/4", "-", "-"],
    ]
    assert [line.split() for line in external.splitlines()] == [
        ["NAME", "USERS", "QUEUES", "HOSTS", "PROJECTS", "ngpus_physical", "gmem"],
        ["cards", "alice", "-", "-", "-", "2/2", "6000/8000"],
    ]


def test_limits_as_configured() -> None:
    out = busy().ask("blimits", c=True, n="cards")[0]
    assert "CONFIGURED EXTERNAL RESOURCE LIMITS:" in out
    assert out.splitlines()[-1].split() == ["cards", "all", "-", "-", "-", "2", "8000"]


def test_without_limits_on_other_resources_there_is_one_table() -> None:
    out = busy().ask("blimits", n="few")[0]
    assert "EXTERNAL" not in out
    assert out.splitlines()[-1].split()[-3:] == ["1/4", "-", "-"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"u": "alice"}, ["cards"]),
        ({"u": "bob"}, []),
        ({"q": "normal"}, ["few"]),
        ({"q": "other normal"}, ["few"]),
        ({"m": "ol2"}, []),
        ({"u": "bob", "c": True}, ["cards"]),
        ({"A": "mpi", "c": True}, []),
        ({"R": "gmem"}, ["cards"]),
        ({"R": "slots"}, ["few"]),
        ({"R": "mem", "c": True}, []),
        ({"Lp": "p1"}, []),
    ],
)
def test_users_queues_hosts_and_projects_choose(options: dict[str, Any], named: list[str]) -> None:
    out, err, status = busy().ask("blimits", **options)
    found = [line.split()[0] for line in out.splitlines() if line.startswith(("cards", "few"))]
    assert list(dict.fromkeys(found)) == named
    assert (err, status) == ("", 0)
    assert named or out == "No resource usage found.\n"


def test_application_profiles_choose() -> None:
    c = busy()
    limits = (
        *LIMITS,
        Limit(name="codes", apps=("mpi", "fem"), jobs=3),
        Limit(name="each", per_app=True, apps=("all", "~fem"), jobs=3),
    )
    c.feed(Configured(at=c.now, conf=replace(c.cluster.conf, limits=limits)))
    chosen = lambda app: [line.split()[0] for line in c.ask("blimits", A=app, c=True)[0].splitlines()[3:]]  # noqa: E731
    assert chosen("mpi") == ["codes", "each"]
    assert chosen("fem") == ["codes"]
    assert chosen("other") == ["each"]


def test_limit_of_a_group_is_about_its_users() -> None:
    c = busy()
    limits = (
        Limit(name="one", users=("phys",), jobs=3),
        Limit(name="per", users=("phys",), per_user=True, jobs=3),
        Limit(name="above", users=("science",), jobs=3),
        Limit(name="not", users=("all", "~phys"), jobs=3),
        Limit(name="less", users=("phys", "~alice"), jobs=3),
    )
    groups = (("phys", ("alice", "bob")), ("science", ("phys",)))
    c.feed(Configured(at=c.now, conf=replace(c.cluster.conf, limits=limits, user_groups=groups)))
    chosen = lambda user, **more: [line.split()[0] for line in c.ask("blimits", u=user, **more)[0].splitlines()[3:]]  # noqa: E731
    assert chosen("alice", c=True) == ["one", "per", "above"]
    assert chosen("bob", c=True) == ["one", "per", "above", "less"]
    assert chosen("carol", c=True) == ["not"]
    assert chosen("phys", c=True) == ["one", "per", "above", "less"]
    assert chosen("alice") == ["one", "per", "above"]


OF_HOSTS = (
    Limit(name="parts", per_host=True, hosts=("all",), mem=1.0, resources=(("tmp", 10.0),), percent=("mem", "tmp")),
    Limit(name="procs", per_host=True, hosts=("all",), slots_per_processor=1.5),
    Limit(name="both", per_host=True, hosts=("all",), slots=2, slots_per_processor=1.5),
    Limit(name="large", slots=2000000, mem=12345678.0),
)


def with_limits_of_hosts() -> QueryCluster:
    """Of hosts with 2 processors, 24105 MB of memory and 258019 MB of tmp."""
    c = QueryCluster()
    c.feed(Configured(at=c.now, conf=replace(c.cluster.conf, limits=OF_HOSTS)))
    return c


def test_percentages_and_slots_a_processor_are_what_the_host_has() -> None:
    """As in LSF: both what is used and the limit are in MB."""
    c = with_limits_of_hosts()
    c.submit(1, resreq="rusage[mem=60:tmp=7]")
    c.start(1, hosts="ol2", reserved=(("mem", 60.0), ("tmp", 7.0)))
    internal, external = c.ask("blimits")[0].split("\n\nEXTERNAL RESOURCE LIMITS:\n\n")
    assert [line.split() for line in internal.splitlines()[3:]] == [
        ["parts", "-", "-", "ol2", "-", "-", "60/241", "-"],
        ["procs", "-", "-", "ol2", "-", "1/3", "-", "-"],
        ["both", "-", "-", "ol2", "-", "1/2", "-", "-"],
        ["large", "-", "-", "-", "-", "1/2000000", "60/12345678", "-"],
    ]
    assert external.splitlines()[1].split() == ["parts", "-", "-", "ol2", "-", "7/25802"]


def test_what_depends_on_the_host_is_shown_as_configured_where_there_is_none() -> None:
    c = with_limits_of_hosts()
    for option in ("a", "c"):
        internal, external = c.query(Query(command="blimits", options={option: True}))[0].split("EXTERNAL RESOURCE LIMITS:\n\n")
        cells = {line.split()[0]: line.split()[5:] for line in internal.splitlines()[3:7]}
        assert cells["parts"] == ["-", "1%", "-"]
        assert (cells["procs"][0], cells["both"][0]) == ("1.5/CPU", "2,1.5/CPU")
        assert external.splitlines()[1].split()[-1] == "10%"


def test_bresources_says_what_the_file_says() -> None:
    out = with_limits_of_hosts().ask("bresources")[0]
    assert "NAME = parts\nPER_HOST = all\nMEM = 1%\nTMP = 10%\nEnd" in out
    assert "NAME = both\nPER_HOST = all\nSLOTS = 2\nSLOTS_PER_PROCESSOR = 1.5\nEnd" in out
    assert "SLOTS = 2000000\nMEM = 12345678\n" in out
