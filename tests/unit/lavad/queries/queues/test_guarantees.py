"""bresources -g and bsla: pools, service classes, and the jobs of these; -sla of the listings."""

from __future__ import annotations

from msgspec.structs import replace

from config.model.guarantees import Amount, Loan, Pool, ServiceClass
from lavad.core.events import Configured
from tests.support.worlds.query_cluster import QueryCluster, element

CLASSES = (
    ServiceClass(name="gold", queues=("normal",), users=("alice",), auto_attach=True, description="paid"),
    ServiceClass(name="silver"),
)
POOLS = (
    Pool(
        name="racks", type="slots", distribution=(("gold", Amount(2)), ("silver", Amount(50, True))),
        loan=Loan(("short",), 600), description="what they paid for", res_select="type==any", slots_per_host=9,
    ),
    Pool(name="whole", type="hosts", hosts=("ol2",), distribution=(("silver", Amount(3)),)),
)  # fmt: skip


def cluster() -> QueryCluster:
    c = QueryCluster()
    c.feed(Configured(at=c.now, conf=replace(c.cluster.conf, service_classes=CLASSES, pools=POOLS)))
    c.submit(1)
    c.start(1, hosts="ol2")
    c.submit(2)
    return c


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_pools_in_a_line_each() -> None:
    c = cluster()
    out, err, status = c.ask("bresources", g=True)
    assert (err, status) == ("", 0)
    title, racks, whole = words(out)
    assert title == ["POOL_NAME", "TYPE", "STATUS", "TOTAL", "FREE", "GUAR", "CONFIG", "GUAR", "USED"]
    total = int(racks[3])
    assert racks == ["racks", "slots", "ok", str(total), str(total - 1), str(2 + total // 2), "1"]
    assert whole == ["whole", "hosts", "overcommitted", "1", "0", "3", "0"]
    assert words(c.ask("bresources", "whole", g=True)[0])[1:] == [whole]
    assert c.ask("bresources", "nowhere", g=True)[1:] == ("nowhere: No such guaranteed resource pool\n", 255)


def test_a_pool_at_length() -> None:
    out, _, status = cluster().ask("bresources", "racks", g=True, l=True, m=True)
    assert status == 0
    for line in (
        "GUARANTEED RESOURCE POOL: racks\nwhat they paid for\n",
        "TYPE: slots\n",
        "DISTRIBUTION: [gold, 2] [silver, 50%]\n",
        "LOAN_POLICIES: QUEUES[short] DURATION[10]\n",
        "RES_SELECT: type==any\nSLOTS_PER_HOST: 9\nSTATUS: ok\n",
    ):
        assert line in out
    assert ["GUARANTEE", "USED", "1"] in words(out)
    assert ["gold", "2", "1", "1"] in words(out)
    assert "HOSTS: all\n" in cluster().ask("bresources", "racks", g=True, l=True)[0]


def test_service_classes_and_their_jobs() -> None:
    c = cluster()
    out, err, status = c.ask("bsla")
    assert (err, status) == ("", 0)
    assert "SERVICE CLASS NAME:  gold\n -- paid\nACCESS CONTROL:  QUEUES[normal] USERS[alice]\nAUTO ATTACH:  Y\n" in out
    assert ["racks", "slots", "2", "1", "1"] in words(out)
    assert words(out)[words(out).index(["NJOBS", "PEND", "RUN", "SSUSP", "USUSP"]) + 1] == ["2", "1", "1", "0", "0"]
    c.submit(3, slots=3)
    slots = words(c.ask("bsla", "gold", N=True)[0])
    assert slots[slots.index(["NSLOTS", "PEND", "RUN", "SSUSP", "USUSP"]) + 1] == ["5", "4", "1", "0", "0"]
    assert "gold" not in c.ask("bsla", "silver")[0]
    assert c.ask("bsla", "iron")[1:] == ("iron: No such service class\n", 255)


def test_listings_by_service_class() -> None:
    c = cluster()
    assert [row[0] for row in words(c.ask("bjobs", sla="gold")[0])[1:]] == ["1", "2"]
    assert c.ask("bjobs", sla="silver")[0] == ""
    assert c.ask("bjobs", sla="iron")[1:] == ("iron: No such service class\n", 255)
    assert words(c.ask("bjobs", "1", o="sla", noheader=True)[0]) == [["gold"]]
    assert "Service Class <gold>" in c.ask("bjobs", "1", l=True)[0].replace("\n                     ", "")


def test_without_any_there_is_a_word() -> None:
    c = QueryCluster()
    assert c.ask("bsla")[1:] == ("No service class is configured\n", 255)
    assert c.ask("bsla", "gold")[1:] == ("gold: No such service class\n", 255)
    assert c.ask("bresources", g=True)[1:] == ("No guaranteed resource pool is configured\n", 255)


def test_elements_of_arrays_and_jobs_on_hold_wait_as_others() -> None:
    c = cluster()
    c.submit(5, name="a", indices="1-10", slots=2)
    c.submit(6, held=True, slots=4)
    c.start(element(5, 3), hosts="ol2")
    rows = words(c.ask("bsla", "gold")[0])
    assert rows[rows.index(["NJOBS", "PEND", "RUN", "SSUSP", "USUSP"]) + 1] == ["13", "11", "2", "0", "0"]
    rows = words(c.ask("bsla", "gold", N=True)[0])
    assert rows[rows.index(["NSLOTS", "PEND", "RUN", "SSUSP", "USUSP"]) + 1][1] == str(1 + 9 * 2 + 4)
