"""Columns stay apart whatever is in them: a row has as many words with long names and numbers as with short ones."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig
from config.model.values import FairShare, Thresholds
from lavad.core import events as ev
from lavad.core.lang.asks import Query
from tests.support.worlds.query_cluster import ADMIN, QueryCluster, at

TABLES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("bqueues", {}, ()),
    ("bqueues", {"w": True}, ()),
    ("bqueues", {"l": True}, ("normal",)),
    ("bhosts", {}, ()),
    ("bhosts", {"w": True}, ()),
    ("bhosts", {"l": True}, ()),
    ("bhosts", {"gpu": True}, ()),
    ("bhosts", {"s": True}, ()),
    ("bjobs", {"u": "all"}, ()),
    ("bjobs", {"u": "all", "w": True}, ()),
    ("bjobs", {"u": "all", "W": True}, ()),
    ("bjobs", {"u": "all", "A": True}, ()),
    ("bjobs", {"u": "all", "sum": True}, ()),
    ("bhist", {"u": "all"}, ()),
    ("bhist", {"u": "all", "w": True}, ()),
    ("busers", {}, ("all",)),
    ("busers", {"w": True}, ("all",)),
    ("bapp", {}, ()),
    ("bapp", {"l": True}, ()),
    ("bjgroup", {"s": True}, ()),
    ("bslots", {}, ()),
    ("lshosts", {}, ()),
    ("lshosts", {"w": True}, ()),
    ("lshosts", {"l": True}, ()),
    ("lsload", {}, ()),
    ("lsload", {"w": True}, ()),
    ("lsload", {"l": True}, ()),
    ("lsload", {"gpu": True}, ()),
    ("lsload", {"gpuload": True, "w": True}, ()),
    ("stats", {}, ("1",)),
]


def _cluster(wide: bool) -> QueryCluster:
    """The same, with numbers of eight digits and names of forty characters, or small ones."""
    many, long, pause = (10_000_000, "n" * 32, 40_000_000) if wide else (2, "n", 1)
    c = QueryCluster(with_gpus=True, lsb_short_hostlist=True)
    conf = c.cluster.conf
    stop = Thresholds(sched=tuple((name, float(many)) for name in ("r1m", "it", "pg", "tmp", "ls")))
    share = FairShare(shares=((f"alice{long}", many), ("others", many)))
    [normal] = [queue for queue in conf.queues if queue.name == "normal"]
    limits = {"ujob_limit": many, "pjob_limit": float(many), "hjob_limit": many, "qjob_limit": many}
    thresholds = {"thresholds": stop, "job_overrun": many * 60, "job_underrun": many * 60, "job_idle": 0.5}
    own = [replace(normal, **limits, **thresholds, share=share), replace(normal, name=f"q{long}", **limits)]
    queues = (*(queue for queue in conf.queues if queue.name != "normal"), *own)
    hosts = tuple(replace(host, slots=many * 20) for host in conf.hosts)
    c.feed(ev.Configured(at=c.now, conf=replace(conf, queues=queues, hosts=hosts, apps=(ApplicationConfig(f"app{long}"),))))
    job: dict[str, Any] = {"user": f"alice{long}", "app": f"app{long}", "slots": many, "project": f"p{long}"}
    c.submit(1, name=f"job{long}", group=f"/g{long}", **job)
    c.start(1, hosts=f"ol2:{many}")
    c.submit(2, name=f"queued{long}", queue=f"q{long}", group=f"/g{long}", **job)
    c.submit(3, name=f"array{long}", indices="1-3", **job | {"slots": many // 2})
    c.submit(many * 100, name=f"job{long}", **job)
    c.submit(4, name=f"gone{long}", **job)
    c.start(4, hosts=f"ol1:{many}")
    c.finish(4, "11:35:00", utime=float(many), max_mem=many)
    for host in ("ol1", "ol2", "ol3"):
        c.soft.load[host] |= {name: float(many) for name in ("r15s", "r1m", "r15m", "pg", "io", "ls", "it", "tmp", "swp", "mem")}
    c.now = at("11:40:00") + pause
    return c


@pytest.fixture(scope="module")
def clusters() -> tuple[QueryCluster, QueryCluster]:
    return _cluster(False), _cluster(True)


@pytest.mark.parametrize(("command", "options", "words"), TABLES)
def test_words_of_a_row_stay_apart(
    clusters: tuple[QueryCluster, QueryCluster], command: str, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    shown = []
    for cluster in clusters:
        out, err, status = cluster.query(Query(command=command, options=options, words=list(words)), ADMIN)
        assert (err, status) == ("", 0)
        assert len(out.splitlines()) > 1
        shown.append([(len(line.split()), line) for line in out.splitlines()])
    assert [line for line, other in zip(*reversed(shown), strict=True) if line[0] != other[0]] == []
