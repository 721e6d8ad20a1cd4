"""Hosts whose clocks are set otherwise than the master's: what is charged and shown is the time that jobs ran."""

from __future__ import annotations

import pytest

from lavad.core.job.job import End
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
