"""Ranks that hang, judged from the usage samples of attempts that still run."""

from __future__ import annotations

from collections.abc import Mapping

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.job.job import Attempt, Job, Suspect
from lavad.core.job.spec import Spec
from lavad.core.lang.states import OVER, HangState, JobState
from lavad.core.rules import hang

Watched = Mapping[int, tuple[int, hang.Ranks]]
"""Key of a job to the number of its attempt and what is known of its ranks."""


def name_suspects(cluster: Cluster, watched: Watched, now: float, seconds: float, fresh: float) -> Decided:
    """Events for jobs whose set of hanging ranks has changed.

    ``seconds``: how long a rank must have hung; ``fresh``: how old the last sample of a host may be.
    """
    events: list[ev.Event] = []
    for key, (attempt, ranks) in watched.items():
        job = cluster.jobs.rows.get(key)
        run = job.run if job is not None else None
        if job is None or run is None or run.number != attempt or job.state is not JobState.RUN:
            continue
        if (suspects := _find_suspects(job, run, cluster.specs.rows[job.spec], ranks, now, seconds, fresh)) is None:
            continue
        if _names(suspects) != _names(run.suspects):
            events.append(ev.RanksSuspected(at=now, key=key, attempt=attempt, suspects=suspects))
    return Decided(events=events)


def _find_suspects(
    job: Job, run: Attempt, spec: Spec, ranks: hang.Ranks, now: float, seconds: float, fresh: float
) -> tuple[Suspect, ...] | None:
    """The hanging ranks; None: the samples do not tell."""
    if run.tasks:
        return None  # tasks of different roles behave differently: a waiting one need not hang
    if any(part.stopped or part.end is not None for part in run.parts):
        return None
    hosts = {part.host for part in run.parts if part.state not in OVER}
    if {rank.host for rank in ranks.values()} != hosts:
        return None
    if min(rank.heard for rank in ranks.values()) < now - fresh:
        return None
    # of a job that was resumed the samples may be older: its ranks did nothing for as long as it was suspended
    suspects = hang.judge(ranks, now, seconds) if now - job.since >= seconds else ()
    if not suspects and run.suspects and hang.is_consistent(ranks, run.suspects):
        suspects = run.suspects
    if spec.roles:
        # roles differ: one that waits while another works is normal
        suspects = tuple(suspect for suspect in suspects if suspect.how is HangState.STOPPED)
    return suspects


def _names(suspects: tuple[Suspect, ...]) -> list[tuple[int, str]]:
    return [(suspect.rank, suspect.how) for suspect in suspects]
