"""When ranks that hang are named: news only, of the attempt that runs, and while its hosts are heard."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.report.hung import name_suspects
from lavad.core.job.job import Suspect
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import PartUsage, TaskUsage
from lavad.core.rules import hang
from tests.support.worlds.bench import Bench

PERIOD, SECONDS, FRESH = 10.0, 60.0, 40.0
RANKS = 4


def sampled(bench: Bench, times: int = 8) -> hang.Ranks:
    """Four ranks of one host, of which the third is stopped."""
    ranks: hang.Ranks = {}
    for count in range(1, times + 1):
        bench.now += PERIOD
        tasks = tuple(
            TaskUsage(rank=rank, pid=100 + rank, cpu=PERIOD * count * (rank != 2), state="T" if rank == 2 else "R")
            for rank in range(RANKS)
        )
        hang.take(ranks, "h1", PartUsage(key=1, attempt=1, at=bench.now, tasks=tasks), bench.now)
    return ranks


def named(bench: Bench, key: int, ranks: hang.Ranks, attempt: int = 1, later: float = 0.0) -> list[tuple[Suspect, ...]]:
    events = name_suspects(bench.cluster, {key: (attempt, ranks)}, bench.now + later, SECONDS, FRESH).events
    bench.take(events)
    return [event.suspects for event in events]  # type: ignore[attr-defined]


def test_a_stopped_rank_is_named_once(bench: Bench) -> None:
    key = bench.placed("RUN")
    ranks = sampled(bench)
    ((suspect,),) = named(bench, key, ranks)
    assert (suspect.rank, suspect.how) == (2, "stopped")
    assert named(bench, key, ranks) == []


@pytest.mark.parametrize("state", ["USUSP", "SSUSP", "UNKWN", "PEND"])
def test_a_job_that_does_not_run_is_not_judged(bench: Bench, state: str) -> None:
    key = bench.placed(state)
    assert named(bench, key, sampled(bench)) == []


def test_the_time_for_which_a_job_was_suspended_is_none_of_its_ranks(bench: Bench) -> None:
    """It goes on before its hosts take the next sample, which shows that nothing is stopped any more."""
    key = bench.placed("USUSP")
    ranks = sampled(bench)
    bench.take([ev.JobResumed(at=bench.now, key=key)])
    assert bench.cluster.jobs.rows[key].state is JobState.RUN
    assert named(bench, key, ranks) == []
    assert named(bench, key, sampled(bench)) != [], "what is stopped for as long after that"


def test_a_later_attempt_is_another(bench: Bench) -> None:
    key = bench.placed("RUN")
    assert named(bench, key, sampled(bench), attempt=2) == []


def test_nothing_is_said_of_a_host_that_is_silent(bench: Bench) -> None:
    key = bench.placed("RUN")
    ranks = sampled(bench)
    assert named(bench, key, ranks, later=FRESH + 1) == []
    elsewhere = {number: replace(rank, host="h2") for number, rank in ranks.items()}
    assert named(bench, key, elsewhere) == []


def test_nothing_is_said_of_a_job_that_is_over(bench: Bench) -> None:
    key = bench.placed("RUN")
    ranks = sampled(bench)
    bench.ended(key, bench.run(key).parts[0].host)
    assert named(bench, key, ranks) == []


def test_nothing_is_said_while_one_of_its_hosts_is_not_heard(bench: Bench) -> None:
    key = bench.placed(slots=8, resreq="span[ptile=4]")
    first, other = (part.host for part in bench.run(key).parts)
    ranks = {number: replace(rank, host=other if number == 3 else first) for number, rank in sampled(bench).items()}
    old = ranks | {3: replace(ranks[3], heard=bench.now - FRESH - 1)}
    assert named(bench, key, old) == []
    assert named(bench, key, ranks) != []
