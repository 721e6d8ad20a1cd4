"""lava status: each thing that is wrong has its words and what to do; of what is well nothing is said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.control.faulty_hosts import Cause
from lavad.core.job.depend import NEVER
from lavad.core.plan.volatile import WhyClass
from lavad.core.site.host import LEAVING
from lavad.core.site.pend_reason import NEVER_ENOUGH_SLOTS, PendReason
from tests.support.worlds.query_cluster import QueryCluster, at


def said(c: QueryCluster) -> list[str]:
    out, _, code = c.ask("status")
    assert code == 0
    return out.splitlines()


def test_a_cluster_that_is_well_is_said_to_be() -> None:
    assert QueryCluster().ask("status") == ("", "nothing is wrong with the cluster\n", 0)


def test_hosts_that_are_away_or_closed_are_named() -> None:
    c = QueryCluster()
    c.feed(ev.HostDown(at=at("11:35:00"), host="ol3"))
    c.feed(ev.HostSwitched(at=at("11:35:00"), host="ol1", closed=True, by="openlava", comment="new disk"))
    lines = said(c)
    assert "1 of 3 hosts is out of reach: ol3 (since Fri Nov 20 11:35:00)" in lines
    assert "1 of 3 hosts is closed by openlava: ol1: new disk" in lines
    assert "  What to do: badmin hopen ol1 once that is over" in lines
    for host in ("ol1", "ol2"):
        c.feed(ev.HostDown(at=at("11:36:00"), host=host))
    assert said(c)[0] == "No host is available: nothing can start"


def test_a_host_that_leaves_needs_nothing_to_be_done() -> None:
    c = QueryCluster()
    why = "it is not in lsf.cluster.lava; it leaves when its jobs have ended"
    c.feed(ev.HostSwitched(at=at("11:35:00"), host="ol1", closed=True, by="lava", comment=why, cause=LEAVING))
    assert said(c) == [f"1 of 3 hosts is closed by lava: ol1: {why}", "  What to do: nothing: it leaves by itself"]


def test_a_host_that_lava_opens_again_by_itself_says_so() -> None:
    c = QueryCluster()
    why = "the disk of /var/spool/lava is full"
    c.feed(ev.HostSwitched(at=at("11:35:00"), host="ol1", closed=True, by="lava", comment=why, cause=Cause.HEALTH.value))
    do = "see to it there; it opens by itself once that is over"
    assert said(c) == [f"1 of 3 hosts is closed by lava: ol1: {why}", f"  What to do: {do}"]


@pytest.mark.parametrize(
    ("why", "do"),
    [
        ("certificate 6e5c is revoked", "lava certs --hosts HOST makes another; copy it to that host: docs/operations.md"),
        ("host ol9 is not in lsf.cluster.lava", "stop lava-agent there, or list the host and run badmin reconfig"),
        ("it speaks protocol 3", "compare versions and certificates of that host with the master's"),
    ],
)
def test_a_host_that_is_refused_is_told_of_with_what_to_do(why: str, do: str) -> None:
    c = QueryCluster()
    c.soft.notices = (f"host ol9 refused: {why}",)
    assert said(c) == [f"Host ol9 refused: {why}", f"  What to do: {do}"]


def test_queues_that_start_nothing_are_named() -> None:
    c = QueryCluster()
    c.feed(ev.QueueSwitched(at=at("11:35:00"), queue="night", what="qinact", open=True, active=False, by="root", comment="maint"))
    c.feed(ev.HostDown(at=at("11:35:00"), host="ol1"), ev.HostDown(at=at("11:35:00"), host="ol2"))
    lines = said(c)
    assert "Queue night is inactive, by root: maint" in lines
    assert "Queue priority has no host that is well: HOSTS = hgA" in lines
    assert not any(line.startswith("Queue normal") for line in lines)


def test_a_full_disk_and_a_driver_that_is_away_are_named() -> None:
    c = QueryCluster(with_gpus=True)
    c.soft.load["ol2"]["tmp"] = 90.0
    c.soft.gpu_errors["ol2"] = "NVML: driver not loaded"
    c.feed(ev.GpuSwitched(at=at("11:35:00"), host="ol2", gpu="GPU-b", closed=True, by="lava", comment="Xid 79"))
    lines = said(c)
    assert "/tmp is full on ol2 (90M left)" in lines
    assert "The GPU driver of ol2 does not answer: NVML: driver not loaded" in lines
    assert "GPUs of ol2 are closed: 1 (Xid 79)" in lines


def test_what_the_master_knows_is_told_with_what_to_do() -> None:
    c = QueryCluster()
    c.soft.notices = ("the certificate of master ends in 5 days", "something else", "lsb.events in /w is not written: why")
    assert said(c) == [
        "The certificate of master ends in 5 days",
        "  What to do: lava certs --renew, and copy it to its host: docs/operations.md",
        "Something else",
        "  What to do: the log of lavad says more",
        "lsb.events in /w is not written: why",
        "  What to do: make room in LSB_SHAREDIR, or let lavad write there; what is missing is written then",
    ]


def test_a_store_that_does_not_answer_is_told_of_with_what_to_do() -> None:
    c = QueryCluster()
    c.soft.notices = ("the master's store cannot be reached",)
    assert said(c) == [
        "The master's store cannot be reached",
        "  What to do: see to the database: the log of lavad has what it said. Jobs run on; commands that change something wait",
    ]


@pytest.mark.parametrize("reason", NEVER_ENOUGH_SLOTS)
def test_too_few_slots_of_whatever_kind_are_told_of(reason: PendReason) -> None:
    c = QueryCluster()
    c.submit(1, slots=900, max_slots=900)
    c.soft.why[c.cluster.jobs.rows[1].spec] = WhyClass(((int(reason), 0, ()),))
    assert said(c)[0].startswith("1 waiting job can never start (")


def test_jobs_that_can_never_start_are_counted_by_reason() -> None:
    c = QueryCluster()
    c.submit(1, slots=900, max_slots=900)
    c.submit(2, indices="1-50", slots=900, max_slots=900)
    c.submit(3)
    c.submit(4, name="four")
    spec = c.cluster.jobs.rows[1].spec
    c.soft.why[spec] = WhyClass(((int(PendReason.NEVER_SLOTS), 0, ()),))
    c.cluster.jobs.put(4, replace(c.cluster.jobs.rows[4], blocked=NEVER))
    found = [line for line in said(c) if not line.startswith(" ")]
    assert found == [
        "51 waiting jobs can never start (no host can ever give it its slots: all together have fewer): 1, 2",
        "1 waiting job can never start (Dependency condition invalid or never satisfied): 4",
    ]
