"""A resizable job that has given up a host: every listing counts what the host used, and its slots for as long as it had them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lavad.core import events as ev
from lavad.core.job.job import End, Placed
from lavad.core.lang.states import TermReason
from lavad.core.plan.volatile import PartUsage, SoftUpdate, forget, update
from lavad.lsb import write
from lavad.queries.facts import jobfacts
from lavad.sched.order.fairshare import running_cpu
from tests.support.worlds.query_cluster import QueryCluster, at
from tests.support.worlds.query_store import stored


def shrunk() -> QueryCluster:
    """Of 2 slots on ol1 and 4 on ol2 the 4 leave after 5 minutes, full of work; at 11:40 the job has run for 10 minutes."""
    c = QueryCluster()
    c.submit(1, slots=2, max_slots=6, autoresize=True, limits={"cpu": 1500})
    c.start(1, "11:30:00", hosts="ol1:2 ol2:4")
    update(c.soft, SoftUpdate(usage=[("ol2", PartUsage(key=1, attempt=1, at=at("11:34:50"), cpu=1190.0, rss=1 << 20))]))
    update(c.soft, SoftUpdate(usage=[("ol1", PartUsage(key=1, attempt=1, at=at("11:39:50"), cpu=600.0, rss=1 << 10))]))
    leaving = ev.JobShrank(at=at("11:35:00"), key=1, attempt=1, number=1, parts=(Placed("ol2", 4),), forced=True)
    left = ev.PartLeft(at=at("11:35:00"), key=1, attempt=1, host="ol2", end=End(at=at("11:35:00"), utime=1200.0))
    c.feed(leaving, left)
    return c


def test_while_it_runs() -> None:
    c = shrunk()
    out, err, _ = c.ask("api", "job", "1")
    job = msgspec.json.decode(out)
    # 2 slots for 600 s and 4 for 300 s
    assert (job["cpu_time"], job["cpu_efficiency"], err) == (1800.0, pytest.approx(75.0), "")
    assert "1800.0 second(s)" in c.ask("bjobs", "1", o="cpu_used")[0]
    assert "  75%" in c.ask("stats", "1")[0]
    # its memory is no longer that of the host that has left
    assert jobfacts.Usage(c.cluster.jobs.rows[1], c.view()).mem == 1 << 10


def test_what_the_host_reported_is_dropped_with_it_and_its_end_counts_for_fair_shares() -> None:
    c = shrunk()
    left = ev.PartLeft(at=at("11:35:00"), key=1, attempt=1, host="ol2")
    forget(c.soft, c.cluster, [left], [])
    assert [*c.soft.usage[1]] == ["ol1"]
    [used] = running_cpu(c.cluster, c.soft, frozenset({"normal"}), 1e9).values()
    assert used == pytest.approx(1800.0)


def test_once_it_has_ended(tmp_path: Path) -> None:
    c = shrunk()
    c.finish(1, "11:40:00", status=9, reason=TermReason.TERM_CPULIMIT, utime=600.0, stime=0.0)
    assert "The CPU time used is 1800.0 seconds" in c.ask("bjobs", "1", l=True)[0]
    assert "it had used 30.0 min\n" in c.ask("why", "1")[0]
    with stored(c, tmp_path) as store:
        figures = store.ask("bacct", "1", l=True)[0]
        assert "   1800.00 " in figures
        assert "75.00%" in figures
    job = c.store.finished[1]
    assert " 1800.000000 0.000000 " in write.job_finish(
        job, write.OfClass(c.store.all_specs[job.spec], c.store.kept_texts[1], 1001)
    )


def test_what_hosts_use_is_in_the_order_of_the_jobs_hosts_whoever_reported_first() -> None:
    c = QueryCluster()
    c.submit(1, slots=2)
    c.start(1, "11:30:00", hosts="ol1:1 ol2:1")
    for host, pid in (("ol2", 22), ("ol1", 11)):
        report = PartUsage(key=1, attempt=1, at=at("11:39:00"), pids=(pid,), pgids=(pid,))
        update(c.soft, SoftUpdate(usage=[(host, report)]))
    out = c.ask("bjobs", "1", l=True)[0]
    assert out.index("PIDs: 11 ") < out.index("PIDs: 22 ")
