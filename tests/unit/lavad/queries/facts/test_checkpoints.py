"""What bhist and bacct tell of checkpoints, and of the work that restarts have lost."""

from __future__ import annotations

from pathlib import Path

from lavad.core import events as ev
from lavad.core.job.job import End
from lavad.core.job.spec import Checkpoint
from tests.support.worlds.query_cluster import QueryCluster, at
from tests.support.worlds.query_store import stored


def again(c: QueryCluster, clock: str) -> None:
    end = End(status=9, at=at(clock), started=at("11:33:55"))
    c.feed(ev.JobRequeued(at=at(clock) + 3, key=1, end=end, why="host ol2 was lost"))


def test_each_restart_tells_what_it_has_lost(tmp_path: Path) -> None:
    c = QueryCluster()
    c.submit(1, checkpoint=Checkpoint("/ckpt"), app="solver")
    c.start(1, "11:33:55")
    again(c, "11:34:05")
    c.start(1, "11:34:10")
    c.feed(ev.CheckpointMade(at=at("11:35:00"), key=1, attempt=2, generation=1, seconds=2.0))
    again(c, "11:35:30")
    c.start(1, "11:36:00")
    c.finish(1, "11:37:00")
    told = c.ask("bhist", "1", l=True)[0]
    assert [line.split(": ", 1)[1] for line in told.splitlines() if "Work lost" in line] == [
        "Work lost: 10 seconds;",
        "Work lost: 30 seconds;",
    ]
    with stored(c, tmp_path) as store:
        record, by_spec = store.ask("bacct", "1", l=True)[0], store.ask("bacct", "1", app="solver")[0]
        report = store.ask("report", by="user", csv=True)[0]
    assert " Work lost in 2 restarts: 40 seconds\n" in record
    assert " Time that checkpoints took: 2 seconds\n" in record
    for summed in (record, by_spec):
        assert " Total number of checkpoints:     1      Total checkpoint time:           2.0\n" in summed
        assert " Total number of restarts:        2      Total work lost in restarts:    40.0\n" in summed
    assert ",0.0006,0.0111," in report.splitlines()[1]


def test_a_job_without_checkpoints_reads_as_in_lsf(tmp_path: Path) -> None:
    c = QueryCluster()
    c.submit(1, rerunnable=True)
    c.start(1, "11:33:55")
    again(c, "11:34:05")
    c.start(1, "11:36:00")
    c.finish(1, "11:37:00")
    with stored(c, tmp_path) as store:
        shown = c.ask("bhist", "1", l=True)[0] + store.ask("bacct", "1", l=True)[0]
        assert "Work lost" not in shown
        assert "checkpoint" not in shown
