"""What counts against a host: failed starts that are its own fault, and LSF's exit rate; what a user does cannot close it."""

from __future__ import annotations

from lavad.core.rules.host_faults import Faults, exceeds, exited, loses_jobs, refused, started, started_elsewhere

MOST = 3


def black(faults: Faults) -> bool:
    return loses_jobs(faults, MOST)


def test_jobs_that_start_elsewhere_prove_the_fault() -> None:
    faults = Faults()
    for key in (1, 2, 3):
        faults = refused(faults, key, "cwd", "no /home")
    assert not black(faults)
    for key in (1, 2):
        faults = started_elsewhere(faults, key)
    assert not black(faults)
    faults = started_elsewhere(faults, 3)
    assert black(faults)
    assert faults.why == "no /home"
    assert not loses_jobs(faults, 0)


def test_a_users_own_faults_prove_nothing() -> None:
    """A thousand jobs with a folder that no host has; jobs that end themselves; a job that runs elsewhere but was never here."""
    faults = Faults()
    for key in range(1000):
        faults = refused(faults, key, "cwd", "no such folder")
    assert not black(faults)
    assert not black(started_elsewhere(faults, 5000))
    assert len(faults.refused) <= 200
    for key in range(10):
        faults = refused(Faults(), key, "pre_abort", "it said so")
        assert faults == Faults()


def test_the_same_job_counts_once() -> None:
    faults = Faults()
    for _ in range(10):
        faults = started_elsewhere(refused(faults, 1, "lookup", "no directory"), 1)
    assert not black(faults)


def test_what_a_host_says_of_itself_counts_at_once() -> None:
    faults = Faults()
    for key in (1, 2, 3):
        faults = refused(faults, key, "lookup", "no directory")
    assert black(faults)


def test_a_job_that_starts_there_ends_the_row() -> None:
    faults = refused(refused(Faults(), 1, "lookup", "x"), 2, "lookup", "x")
    assert not black(refused(started(faults), 3, "lookup", "x"))


def test_on_trial_one_failure_is_enough() -> None:
    faults = Faults(on_trial=True)
    assert not black(faults)
    assert black(refused(faults, 1, "lookup", "x"))
    assert not black(refused(faults, 1, "cwd", "x"))
    assert black(started_elsewhere(refused(faults, 1, "cwd", "x"), 1))
    assert not started(faults).on_trial


def test_the_exit_rate_is_of_the_newest_minutes() -> None:
    faults = Faults()
    for at in range(6):
        faults = exited(faults, float(at), 300.0)
    assert exceeds(faults, 5.0, 6.0, 300.0)
    assert not exceeds(faults, 6.0, 6.0, 300.0)
    assert not exceeds(faults, None, 6.0, 300.0)
    assert not exceeds(faults, 5.0, 301.0, 300.0)
    assert exited(faults, 1000.0, 300.0).exits == (1000.0,)
    assert started(faults).exits == faults.exits
