"""A host refuses a job: whether it goes elsewhere, or exits because every host would refuse it."""

from __future__ import annotations

import pytest

from lavad.core.decide.control.hosts import expired, silent
from lavad.core.decide.report.ending import NO_USER, without_user
from lavad.core.lang.states import TermReason
from tests.support.worlds.bench import Bench


@pytest.mark.parametrize("code", ["not_allowed", "pre_abort"])
def test_what_every_host_would_say_ends_the_job(bench: Bench, code: str) -> None:
    key = bench.submit()
    bench.step()
    assert bench.said("refused", key, "h1", code, "why") == ["PartRefused", "JobFinished"]
    assert bench.outcome(key).why == "why"
    assert bench.outcome(key).status == 255 << 8


FILES = [
    ("cwd", TermReason.TERM_CWD_NOTEXIST, 2),
    ("output", TermReason.TERM_OTHER, 255),
    ("input", TermReason.TERM_OTHER, 255),
    ("secret", TermReason.TERM_OTHER, 255),
    ("checkpoint", TermReason.TERM_OTHER, 255),
]


@pytest.mark.parametrize(("code", "reason", "status"), FILES)
def test_a_file_that_two_hosts_do_not_have_ends_the_job(bench: Bench, code: str, reason: TermReason, status: int) -> None:
    """The first host may only lack a mount, so the second one is asked."""
    key = bench.submit()
    bench.step()
    assert bench.said("refused", key, "h1", code, "why") == ["PartRefused", "JobRequeued"]
    bench.now = bench.job(key).not_before
    [other] = bench.step()[key]
    assert other != "h1"
    assert bench.said("refused", key, other, code, "why there too") == ["PartRefused", "JobFinished"]
    assert bench.outcome(key).reason is reason
    assert bench.outcome(key).status == status << 8
    assert bench.outcome(key).why == "why there too"


@pytest.mark.parametrize(("code", "reason", "status"), FILES)
def test_the_only_host_that_is_there_is_believed(bench: Bench, code: str, reason: TermReason, status: int) -> None:
    bench.take(silent(bench.cluster, "h2", bench.now))
    bench.host_switch("h3", closed=True)
    key = bench.submit()
    bench.step()
    assert bench.said("refused", key, "h1", code, "why") == ["PartRefused", "JobFinished"]
    assert bench.outcome(key).reason is reason
    assert bench.outcome(key).status == status << 8


@pytest.mark.parametrize("code", ["cwd", "checkpoint"])
def test_a_host_that_was_lost_has_refused_nothing(bench: Bench, code: str) -> None:
    """A job that goes on elsewhere asks a second host, as one that has not run yet does."""
    key = bench.placed(rerunnable=True, hosts=("h1", "h2", "h3"))
    bench.take(silent(bench.cluster, "h1", bench.now))
    bench.take(expired(bench.cluster, "h1", [key], bench.now))
    [first] = bench.step()[key]
    assert bench.said("refused", key, first, code, "why") == ["PartRefused", "JobRequeued"]
    bench.now = bench.job(key).not_before
    [second] = bench.step()[key]
    assert bench.said("refused", key, second, code, "why") == ["PartRefused", "JobFinished"]


def test_a_job_that_can_use_one_host_only_ends_after_some_starts(bench: Bench) -> None:
    key = bench.submit(hosts=("h2",))
    starts = 0
    while key in bench.cluster.jobs.rows:
        assert bench.step() == {key: {"h2": 1}}
        bench.said("refused", key, "h2", "cwd", "why")
        starts += 1
        if key in bench.cluster.jobs.rows:
            bench.now = bench.job(key).not_before
    assert starts == 5


@pytest.mark.parametrize("code", ["no_user", "lookup", "files", "spool"])
def test_a_host_that_lacks_what_others_have_loses_the_job_to_them(bench: Bench, code: str) -> None:
    key = bench.submit()
    for _ in range(20):
        [host] = bench.step()[key]
        assert bench.said("refused", key, host, code, "why") == ["PartRefused", "JobRequeued"]
        bench.now = bench.job(key).not_before
    assert set(bench.job(key).avoid) == {"h1", "h2", "h3"}


def test_a_user_whom_the_masters_host_has_not_either_ends_the_job(bench: Bench) -> None:
    key = bench.submit()
    bench.step()
    assert without_user(bench.cluster, key, bench.now) == []
    bench.said("refused", key, "h1", NO_USER, "user alice is not known on host h1")
    bench.take(without_user(bench.cluster, key, bench.now))
    assert bench.outcome(key).status == 255 << 8
    assert bench.outcome(key).why == "user alice is known neither on host h1 nor on the master's host"
    assert without_user(bench.cluster, key, bench.now) == []


def test_a_job_that_has_found_a_host_meanwhile_goes_on(bench: Bench) -> None:
    key = bench.submit()
    bench.step()
    bench.said("refused", key, "h1", NO_USER, "user alice is not known on host h1")
    bench.now = bench.job(key).not_before
    assert bench.step()
    assert without_user(bench.cluster, key, bench.now) == []


def test_a_host_that_says_so_twice_is_no_second_one_beside_one_that_was_lost(bench: Bench) -> None:
    key = bench.placed(rerunnable=True, hosts=("h1", "h2"))
    bench.take(silent(bench.cluster, "h1", bench.now))
    bench.take(expired(bench.cluster, "h1", [key], bench.now))
    for _ in range(2):
        assert bench.step()[key] == {"h2": 1}
        assert bench.said("refused", key, "h2", "checkpoint", "why") == ["PartRefused", "JobRequeued"]
        bench.now = bench.job(key).not_before


def test_a_gang_that_a_host_refused_ends_with_that_and_not_as_its_other_part_did(bench: Bench) -> None:
    """What was prepared on the other host is killed."""
    key = bench.submit(slots=2, max_slots=2, resreq="span[ptile=1]")
    first, second = bench.step()[key]
    bench.said("prepared", key, second, f"{second}:1")
    bench.said("refused", key, first, "not_allowed", "why")
    bench.ended(key, second, status=9)
    outcome = bench.outcome(key)
    assert (outcome.status, outcome.reason, outcome.why) == (255 << 8, TermReason.TERM_OTHER, "why")
