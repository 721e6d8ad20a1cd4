"""What many hosts of one job tell at once: each part by itself, and then once what follows for the job.

Whether all are prepared, or over, is a look at all parts, and each fold rebuilds the tuple of parts: for each of a thousand
hosts that is a million. Rule: the reports are of one kind, each of another host and of no first part, so that what is decided for
one does not depend on what becomes of the others. That a host has carried out what ends the attempt decides nothing, but comes
with the end from many hosts.
"""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.report import parts
from lavad.core.decide.report.array_ends import with_array_ends
from lavad.core.decide.report.ending import after_last_part
from lavad.core.job.job import Attempt
from lavad.core.job.places import MANY
from lavad.core.job.reports import (
    EndedReport,
    GoneReport,
    GrantedReport,
    PartReport,
    PreparedReport,
    RefusedReport,
    StartedReport,
    StoppedReport,
)
from lavad.core.lang.states import JobState, SignalKind

_TOLD = (PreparedReport, StartedReport, StoppedReport, EndedReport, GoneReport, GrantedReport, RefusedReport)


def is_of_gang(cluster: Cluster, report: PartReport) -> bool:
    """Whether a report may be decided together with those of other hosts of its job."""
    if not isinstance(report, _TOLD):
        return False
    job = cluster.jobs.rows.get(report.key)
    run = None if job is None else job.run
    if run is None or len(run.parts) < MANY or run.elastic or run.tasks:
        return False
    if isinstance(report, GrantedReport) and not _ends(run, report.number):
        return False
    if isinstance(report, GoneReport) and not parts.is_to_end(run):
        return False
    return run.uid == report.uid and run.parts[0].host != report.host


def _ends(run: Attempt, number: int) -> bool:
    """Whether a request ends the attempt; a migration that a host could not carry out does not."""
    return any(one.number == number and one.ends and one.kind is not SignalKind.MIGRATE for one in run.pending_signals)


def decide_told(cluster: Cluster, told: Iterable[PartReport], now: float) -> list[ev.Event]:
    """What becomes of the parts."""
    events: list[ev.Event] = []
    for report in told:
        match report:
            case PreparedReport():
                events += parts.prepared(cluster, report, now, whole=False)
            case StartedReport():
                events += parts.started(cluster, report, now)
            case EndedReport():
                events += parts.ended(cluster, report, now, whole=False)
            case GoneReport():
                events += parts.gone(cluster, report, now, whole=False)
            case StoppedReport():
                events += parts.stopped(cluster, report, now)
            case GrantedReport():
                events += parts.granted(cluster, report, now)
            case RefusedReport():
                events += parts.refused(cluster, report, now, whole=False)
    return events


def concerns_job(report: PartReport) -> bool:
    """Whether something may follow for the whole job from reports of this kind."""
    return isinstance(report, PreparedReport | EndedReport | GoneReport | RefusedReport)


def decide_whole(cluster: Cluster, key: int, uid: str, now: float) -> list[ev.Event]:
    """What follows for the job once that is folded: all parts may go, or the last is over."""
    job = cluster.jobs.rows.get(key)
    if job is None or job.run is None or job.run.uid != uid:
        return []
    if job.state is not JobState.UNKWN and parts.may_go(job.run):
        return [ev.GangReleased(at=now, key=key, attempt=job.run.number)]
    return with_array_ends(cluster, after_last_part(cluster, job, now), now)
