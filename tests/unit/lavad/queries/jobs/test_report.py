"""lava report: tables and CSV by user, project and queue, and whose jobs are in them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.job.gpu_use import GpuUse
from lavad.core.lang.asks import Caller
from tests.support.worlds.query_cluster import QueryCluster, at

BOB = Caller(user="bob", uid=1002, host="ol1")


def cluster() -> QueryCluster:
    """Alice and bob ran a job each, of one project; bob's held a GPU for 30 min, a third of the time idle."""
    c = QueryCluster(with_gpus=True)
    for key, user, gpus in ((1, "alice", ()), (2, "bob", ("GPU-b",))):
        c.submit(key, user=user, project="p")
        c.start(key, "11:00:00", hosts="ol2", gpus=gpus)
    c.finish(1, "11:30:00", utime=900.0, stime=0.0)
    use = GpuUse(uuid="GPU-b", held=1800.0, known=1800.0, used=900.0, idle=600.0, energy=7.2e6)
    c.finish(2, "11:30:00", utime=0.0, stime=0.0, gpus=(use,))
    return c


def test_tables_have_a_line_for_each_and_their_sum() -> None:
    out, err, status = cluster().ask("report", by="user")
    assert (err, status) == ("", 0)
    assert [line.split() for line in out.splitlines()[3:]] == [
        ["alice", "1", "0.50", "0.25", "50%", "0", "0.00", "0.00", "0.00", "-", "0.000", "0.00", "0.00"],
        ["bob", "1", "0.50", "0.00", "100%", "1", "0.50", "0.25", "0.17", "33%", "2.000", "0.00", "0.00"],
        ["TOTAL", "2", "1.00", "0.25", "75%", "1", "0.50", "0.25", "0.17", "33%", "2.000", "0.00", "0.00"],
    ]


def test_csv_has_all_groups_and_no_sums() -> None:
    lines = cluster().ask("report", csv=True)[0].splitlines()
    assert lines[0].startswith("by,name,jobs,slot_hours,cpu_hours,gpu_jobs,gpu_hours,")
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["user", "alice", "1"],
        ["user", "bob", "1"],
        ["project", "p", "2"],
        ["queue", "normal", "2"],
    ]
    assert lines[3].endswith(",1,0.5000,0.2500,0.1667,2.0000,0.0000,0.0000")


@pytest.mark.parametrize(("access", "total"), [("N", "2"), ("G", "1")])
def test_users_see_their_own_where_history_is_restricted(access: str, total: str) -> None:
    c = cluster()
    params = replace(c.cluster.conf.params, secure_job_info_level=4, secure_infodir_user_access=access)
    c.feed(ev.Configured(at=at("11:32:00"), conf=replace(c.cluster.conf, params=params)))
    assert c.ask("report", caller=BOB, by="queue")[0].splitlines()[-1].split()[:2] == ["TOTAL", total]
    refused = c.ask("report", caller=BOB, user="alice")
    assert (refused[1:] == ("User permission denied\n", 255)) is (access == "G")
