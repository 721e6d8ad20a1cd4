"""Hosts whose clocks are set otherwise than the master's: what is charged and shown is the time that jobs ran."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.decide.control.hosts import greeted, silent
from lavad.core.decide.report.report import decide_reports
from lavad.core.job import reports
from lavad.core.job.job import End
from lavad.core.job.run_time import run_time
from tests.support.worlds.bench import Bench

RAN = 30.0


def dispatched(bench: Bench) -> int:
    key = bench.submit()
    bench.step()
    return key


@pytest.mark.parametrize("off", [0.0, 0.5, -0.5, 7200.0, -7200.0, 1e9, -1e9])
@pytest.mark.parametrize("told", ["started and ended", "ended alone"])
def test_a_host_whose_clock_is_off(bench: Bench, off: float, told: str) -> None:
    key = dispatched(bench)
    bench.now += 1.0
    began = bench.now
    if told != "ended alone":
        bench.said("started", key, "h1", 77, began + off, "/")
    bench.now += RAN
    bench.said("ended", key, "h1", End(at=bench.now + off, started=began + off), True)
    job = bench.finished(key)
    assert job.run is not None
    assert job.run.verdict is not None
    assert job.run.verdict.at == pytest.approx(bench.now, abs=0.6)
    assert job.run.verdict.at - (job.run.started or job.run.verdict.started) == pytest.approx(RAN, abs=0.6)


def test_a_clock_that_is_set_while_the_job_runs(bench: Bench) -> None:
    key = dispatched(bench)
    bench.said("started", key, "h1", 77, bench.now, "/")
    began = bench.now
    bench.now += RAN
    bench.said("ended", key, "h1", End(at=bench.now + 7200, started=began), True)
    job = bench.finished(key)
    assert job.run is not None
    assert job.run.verdict is not None
    assert (job.run.started, job.run.verdict.at) == (began, bench.now)


def test_an_end_that_was_kept_while_no_master_was_there_is_believed(bench: Bench) -> None:
    key = dispatched(bench)
    end = End(at=bench.now + 5.0, started=bench.now + 1.0)
    bench.now += 3600.0
    bench.said("ended", key, "h1", end, True)
    job = bench.finished(key)
    assert job.run is not None
    assert job.run.verdict == end


def test_a_job_that_ran_for_longer_than_its_hosts_clock_is_behind(bench: Bench) -> None:
    key = dispatched(bench)
    began = bench.now
    bench.said("started", key, "h1", 77, began - 3600.0, "/")
    bench.now += 7200.0
    bench.said("ended", key, "h1", End(at=bench.now - 3600.0, started=began - 3600.0), True)
    verdict = bench.finished(key).run.verdict  # type: ignore[union-attr]
    assert verdict is not None
    assert (verdict.started, verdict.at) == (began, bench.now)


def test_a_master_whose_clock_is_behind_that_of_the_one_before_it(bench: Bench) -> None:
    key = dispatched(bench)
    end = End(at=bench.now + 3.0, started=bench.now + 1.0)
    bench.now -= 10.0
    bench.said("ended", key, "h1", end, True)
    verdict = bench.finished(key).run.verdict  # type: ignore[union-attr]
    assert verdict is not None
    assert verdict.started <= verdict.at <= bench.now


def test_a_late_report_of_a_host_whose_clock_is_a_little_behind(bench: Bench) -> None:
    """It began when it was dispatched, not when the report came an hour later."""
    key = dispatched(bench)
    began = bench.now
    bench.now += 3600.0
    bench.said("started", key, "h1", 77, began - 0.02, "/")
    job = bench.cluster.jobs.rows[key]
    assert job.run is not None
    assert job.run.started == began


def takes_over(bench: Bench, after: float) -> None:
    """Another master, so many seconds later."""
    bench.now += after
    bench.take([ev.MasterStarted(at=bench.now, epoch=2, incarnation="store")])


@pytest.mark.parametrize("off", [0.0, 3.0, -3.0, 7200.0, -7200.0])
@pytest.mark.parametrize("status", [0, 256])
def test_a_job_that_ended_while_no_master_ran_had_its_time(bench: Bench, off: float, status: int) -> None:
    key = dispatched(bench)
    began = bench.now
    bench.said("started", key, "h1", 77, began + off, "/")
    takes_over(bench, 3600.0)
    bench.said("ended", key, "h1", End(at=began + RAN + off, started=began + off, status=status), True)
    job = bench.finished(key)
    assert job.outcome is not None
    assert job.outcome.at == job.since == pytest.approx(began + RAN, abs=3.1)
    assert run_time(job, bench.now) == pytest.approx(RAN, abs=4)


def test_ends_that_are_told_together_have_each_its_own_time(bench: Bench) -> None:
    keys = [dispatched(bench) for _ in range(3)]
    began = bench.now
    for key in keys:
        bench.said("started", key, "h1", 77, began, "/")
    takes_over(bench, 3600.0)
    ends = [End(at=at, started=began) for at in (began + 10, bench.now + 1, began + 20)]
    bench.now += 2.0
    told = [
        reports.EndedReport(key=key, attempt=1, uid=bench.uid(key), host="h1", end=end, gone=True)
        for key, end in zip(keys, ends, strict=True)
    ]
    bench.take(decide_reports(bench.cluster, told, bench.now))
    assert [bench.finished(key).since for key in keys] == [began + 10, bench.now, began + 20]


def test_a_job_that_ended_while_its_host_was_away_had_its_time(bench: Bench) -> None:
    key = dispatched(bench)
    began = bench.now
    bench.said("started", key, "h1", 77, began, "/")
    bench.now += 90.0
    bench.take(silent(bench.cluster, "h1", bench.now))
    bench.now += 3600.0
    bench.take(greeted(bench.cluster, "h1", bench.cluster.hosts.rows["h1"].facts, {bench.uid(key): "ended"}, bench.now))
    bench.said("ended", key, "h1", End(at=began + RAN, started=began), True)
    assert bench.finished(key).since == began + RAN


def test_an_end_that_its_host_tells_late_counts_from_its_report(bench: Bench) -> None:
    """A post-execution command, or a copy of a checkpoint, was waited for: the slots were the job's."""
    key = dispatched(bench)
    began = bench.now
    bench.said("started", key, "h1", 77, began, "/")
    bench.now += 3600.0
    bench.said("ended", key, "h1", End(at=began + RAN, started=began), True)
    assert bench.finished(key).since == bench.now


def test_a_job_on_two_hosts_is_over_with_the_last_part(bench: Bench) -> None:
    key = bench.placed(slots=2, max_slots=2, resreq="span[ptile=1]")
    began = bench.now
    takes_over(bench, 3600.0)
    bench.said("ended", key, "h1", End(at=began + RAN), True)
    bench.now += 5.0
    bench.said("ended", key, "h2", End(at=bench.now), True)
    assert bench.finished(key).since == bench.now


def test_an_attempt_that_ended_while_no_master_ran_and_is_made_again_had_its_time(bench: Bench) -> None:
    key = bench.submit(rerunnable=True, requeue="3")
    bench.step()
    began = bench.now
    bench.said("started", key, "h1", 77, began, "/")
    takes_over(bench, 3600.0)
    end = End(at=began + RAN, started=began, status=3 << 8)
    report = reports.EndedReport(key=key, attempt=1, uid=bench.uid(key), host="h1", end=end, gone=True)
    (again,) = decide_reports(bench.cluster, [report], bench.now)
    assert isinstance(again, ev.JobRequeued)
    assert (again.at, again.ended) == (bench.now, began + RAN)
