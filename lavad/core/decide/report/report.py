"""Dispatches reports to decisions by kind."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.report import parts, tasks
from lavad.core.job import reports


def decide_report(cluster: Cluster, report: reports.PartReport, now: float) -> list[ev.Event]:
    """The events that follow from a report; none from a stale report or one of an unknown kind."""
    match report:
        case reports.PreparedReport():
            return parts.prepared(cluster, report, now)
        case reports.StartedReport():
            return parts.started(cluster, report, now)
        case reports.EndedReport():
            return parts.ended(cluster, report, now)
        case reports.GoneReport():
            return parts.gone(cluster, report, now)
        case reports.RefusedReport():
            return parts.refused(cluster, report, now)
        case reports.StoppedReport():
            return parts.stopped(cluster, report, now)
        case reports.GrantedReport():
            return parts.granted(cluster, report, now)
        case reports.CheckpointReport():
            return parts.checkpointed(cluster, report, now)
        case reports.ResizeReport():
            return parts.resized(cluster, report, now)
        case reports.TaskStartReport():
            return tasks.task_started(cluster, report, now)
        case reports.TaskEndReport():
            return tasks.task_ended(cluster, report, now)
    return []
