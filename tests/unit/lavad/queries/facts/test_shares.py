"""bqueues -r and -l with fair share, bhpart, bjobs -aps."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import Aps, FairShare
from lavad.core import events as ev
from lavad.core.site.conf import PartitionConf
from tests.support.worlds.query_cluster import QueryCluster, at


def reconfigured(*queues: QueueConfig, **changes: Any) -> QueryCluster:
    shown = QueryCluster()
    conf = replace(shown.cluster.conf, queues=queues, **changes)
    shown.feed(ev.Configured(at=at("11:32:00"), conf=conf))
    return shown


def ask(shown: QueryCluster, command: str, *words: str, **options: Any) -> str:
    return str(shown.ask(command, *words, **options)[0])


SHARE = FairShare(shares=(("ugA", 3), ("carol", 1), ("default", 1)))
TREE = (("ugA", (("alice", 2), ("bob", 1))),)


def with_fair_share() -> QueryCluster:
    shown = reconfigured(QueueConfig("fair", priority=35, share=SHARE), QueueConfig("normal", priority=30), group_shares=TREE)
    key = shown.submit(101, queue="fair", user="alice", slots=2)
    shown.start(key, "11:33:55", hosts="ol2:2")
    done = shown.submit(102, queue="fair", user="bob")
    shown.start(done, "11:34:00", hosts="ol1")
    shown.finish(done, "11:35:00", utime=50.0, stime=10.0)
    shown.submit(103, queue="fair", user="zoe")
    return shown


def test_one_share_for_all_is_a_policy_and_a_queue_group_alone_is_none() -> None:
    shares = FairShare(shares=(("others", 1),))
    shown = reconfigured(QueueConfig("own", share=shares), QueueConfig("group", share=replace(shares, of_group_alone=True)))
    assert "SCHEDULING POLICIES:  FAIRSHARE\nUSER_SHARES:  [others, 1] \n" in ask(shown, "bqueues", "own", l=True)
    assert "FAIRSHARE" not in ask(shown, "bqueues", "group", l=True)


def test_bqueues_r_shows_the_share_tree_in_lsfs_columns() -> None:
    text = ask(with_fair_share(), "bqueues", "fair", r=True)
    start = text.index("USER_SHARES:")
    lines = text[start:].splitlines()
    assert "SCHEDULING POLICIES:  FAIRSHARE\n" in text
    assert lines[0] == "USER_SHARES:  [ugA, 3] [carol, 1] [default, 1] "
    assert lines[2] == "SHARE_INFO_FOR: fair/"
    assert lines[3] == "USER/GROUP   SHARES  PRIORITY  STARTED  RESERVED  CPU_TIME  RUN_TIME   ADJUST"
    assert lines[4].split() == ["carol", "1", "0.333", "0", "0", "0.0", "0", "0.000"]
    assert lines[5].split() == ["zoe", "1", "0.333", "0", "0", "0.0", "0", "0.000"]
    # 2 slots for 365 s; one minute of CPU, five minutes ago
    name, shares, priority, started, reserved, cpu, run, adjust = lines[6].split()
    assert (name, shares, started, reserved, run, adjust) == ("ugA", "3", "2", "0", "730", "0.000")
    assert float(cpu) == pytest.approx(60 * 0.1 ** (300 / 18000) * 0.996, abs=0.2)
    assert float(priority) == pytest.approx(3 / ((float(cpu) * 0.7 + 730 * 0.7) / 3600 + 9), abs=0.001)
    assert lines[8] == "SHARE_INFO_FOR: fair/ugA/"
    assert [line.split()[0] for line in lines[10:12]] == ["bob", "alice"]


def test_bqueues_l_shows_only_the_first_level() -> None:
    text = ask(with_fair_share(), "bqueues", "fair", l=True)
    assert "SHARE_INFO_FOR: fair/\n" in text
    assert "SHARE_INFO_FOR: fair/ugA/" not in text
    assert "SHARE_INFO_FOR" not in ask(with_fair_share(), "bqueues", "normal", l=True)


def test_a_queue_that_follows_another_says_so() -> None:
    master = replace(SHARE, queues=("normal",))
    shown = reconfigured(QueueConfig("fair", priority=35, share=master), QueueConfig("normal", priority=30))
    assert "FAIRSHARE_QUEUES:  fair normal\n" in ask(shown, "bqueues", "fair", l=True)
    assert "FAIRSHARE:  by queue fair\n" in ask(shown, "bqueues", "normal", l=True)


def test_dominant_shares_are_shown() -> None:
    share = FairShare(shares=(("default", 1),), dominant_resources=("slots", "mem"))
    shown = reconfigured(QueueConfig("fair", share=share))
    shown.start(shown.submit(101, queue="fair"), hosts="ol2", reserved=(("mem", 24105.0),))
    text = ask(shown, "bqueues", "fair", r=True)
    assert "ADJUST  DOMINANT_SHARE\n" in text
    assert text.split("DOMINANT_SHARE\n")[1].splitlines()[0].endswith("mem 0.333")


def test_bhpart() -> None:
    share = FairShare(shares=(("alice", 2), ("default", 1)), by_queue=True)
    part = PartitionConf(name="part1", hosts=("hgA", "ol3"), share=share)
    shown = reconfigured(QueueConfig("normal", priority=30), partitions=(part,))
    shown.start(shown.submit(101))
    text = ask(shown, "bhpart")
    assert text.startswith("HOST_PARTITION_NAME: part1\nHOSTS: hgA/ ol3\n\nSHARE_INFO_FOR: part1/\nUSER/GROUP   SHARES")
    assert text.splitlines()[5].split()[:4] == ["alice", "2", "0.329", "1"]


def test_bhpart_without_partitions() -> None:
    out, err, code = QueryCluster().ask("bhpart")
    assert (out, err, code) == ("", "No host partition is defined in the system\n", 255)


def test_bjobs_aps() -> None:
    aps = Aps(weights=(("JPRIORITY", 1.0), ("QPRIORITY", 2.0)))
    shown = reconfigured(QueueConfig("normal", priority=30), QueueConfig("owners", priority=43, aps_priority=aps))
    shown.submit(101, "11:33:50", name="plain")
    shown.submit(102, "11:33:51", name="low", queue="owners", priority=10)
    shown.submit(103, "11:33:52", name="high", queue="owners", priority=20)
    lines = ask(shown, "bjobs", aps=True).splitlines()
    assert lines[0] == "JOBID   USER    STAT  QUEUE      FROM_HOST   JOB_NAME   SUBMIT_TIME    APS"
    assert [(line.split()[0], line.split()[-1]) for line in lines[1:]] == [("103", "106.00"), ("102", "96.00"), ("101", "-")]


def test_lava_why_tells_place_reason_change_and_time() -> None:
    shown = QueryCluster()
    for job, host in ((101, "ol1:4"), (102, "ol2:8"), (103, "ol3:2")):
        shown.submit(job, name="busy", user="bob", slots=int(host[-1]), limits={"run": 3600})
        shown.start(job, "11:33:55", hosts=host)
    shown.submit(104, name="first", user="bob", slots=2)
    shown.submit(105, name="mine", slots=3)
    text = ask(shown, "why", "105")
    lines = text.splitlines()
    assert lines[0].startswith("Job <105>, User <alice>, Queue <normal>: 3 slots, waiting since ")
    assert lines[1] == "Position: 2 of 2 in its queue; 1 go before it in all queues: 104"
    assert "Why it waits\n" in text
    assert "No single change of the job, and no two at once, would start it now\n" in text
    assert "Estimated start: from Fri Nov 20 12:33:55" in text
    shown.finish(103)
    text = ask(shown, "why", "104")
    assert "It starts with the next cycle" in text


def test_lava_why_of_a_job_that_does_not_wait() -> None:
    shown = QueryCluster()
    shown.start(shown.submit(101))
    assert ask(shown, "why", "101") == "Job <101>, User <alice>, Queue <normal>: it runs\n"
    assert shown.ask("why", "999") == ("", "Job <999> is not found or has finished\n", 255)
    assert shown.ask("why", "x")[1] == "x: Illegal job ID\n"
    assert shown.ask("why")[1] == "lava why: name a job\n"
    held = shown.submit(105, held=True)
    assert "it is held" in ask(shown, "why", str(held))
