"""Dispatches reports to decisions by kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.specs import together
from lavad.core.decide.report import parts, tasks
from lavad.core.decide.report.array_ends import with_array_ends
from lavad.core.decide.report.clocks import end_in_time, ended_unheard
from lavad.core.job import reports
from lavad.core.job.chunk import RUNS
from lavad.core.job.job import Attempt, End, Job
from lavad.core.lang.states import JobState


def decide_report(cluster: Cluster, report: reports.PartReport, now: float) -> list[ev.Event]:
    """The events that follow from a report; none from a stale report or one of an unknown kind."""
    return with_array_ends(cluster, _decide(cluster, report, now), now)


def _decide(cluster: Cluster, report: reports.PartReport, now: float) -> list[ev.Event]:
    """Those about its job alone."""
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
            return tasks.granted(cluster, report, now)
        case reports.CheckpointReport():
            return parts.checkpointed(cluster, report, now)
        case reports.ResizeReport():
            return parts.resized(cluster, report, now)
        case reports.TaskStartReport():
            return tasks.task_started(cluster, report, now)
        case reports.TaskEndReport():
            return tasks.task_ended(cluster, report, now)
    return []


def decide_reports(cluster: Cluster, told: Sequence[reports.PartReport], now: float) -> list[ev.Event]:
    """The events of several that are ``independent``, or of one."""
    if len(told) == 1:
        return decide_report(cluster, told[0], now)
    ends = _Ends(cluster, now)
    return with_array_ends(cluster, together(cluster, map(ends.decide, told)), now)


class _Ends:
    """Good ends of different jobs. An element of an array that ran and ended as one before it is decided as that one."""

    def __init__(self, cluster: Cluster, now: float) -> None:
        self._cluster = cluster
        self._now = now
        self._before: tuple[Job, Attempt, End] | None = None

    def decide(self, report: reports.PartReport) -> list[ev.Event]:
        job = self._cluster.jobs.rows.get(report.key)
        if not isinstance(report, reports.EndedReport) or job is None or job.run is None:
            return _decide(self._cluster, report, self._now)
        end = end_in_time(job.run, report.end, self._now)
        done = ev.JobFinished(at=self._now, key=job.key, state=JobState.DONE, end=end)
        if ended := ended_unheard(self._cluster, job.run, end, self._now):
            done = replace(done, ended=ended)
        if self._before is not None and _ends_as(job, job.run, report, *self._before):
            return [done]
        events = _decide(self._cluster, report, self._now)
        spec = self._cluster.specs.rows[job.spec]
        # with these what else its end says has a part in the decision
        if events == [done] and not spec.memory_auto and spec.checkpoint is None:
            self._before = job, job.run, report.end
        return events


def _ends_as(job: Job, run: Attempt, report: reports.EndedReport, before: Job, its: Attempt, end: End) -> bool:
    """Whether nothing that decides is different: the two were started together, and nothing became of either but its end.

    Of those of a chunk it makes no difference which waited for others, and which has their slot.
    """
    if not _have_same(run, its) or report.host != run.parts[0].host or report.uid != run.uid or not report.gone:
        return False
    if _deciding(report.end) != _deciding(end) or report.gpu_faults or job.state not in RUNS or before.state not in RUNS:
        return False
    if replace(run, uid=its.uid, chunk=its.chunk, ahead=its.ahead, parts=its.parts) != its:
        return False
    return replace(job, key=before.key, name=before.name, state=before.state, run=its) == before


def _have_same(run: Attempt, other: Attempt) -> bool:
    if run.parts is other.parts:
        return True
    if not (run.chunk and other.chunk):
        return False
    part, its = run.parts[0], other.parts[0]
    return replace(part, slots=its.slots, reserved=its.reserved) == its


def _deciding(end: End) -> tuple[object, ...]:
    return end.status, end.lost, end.first_reason, end.limit, end.note, end.post


def independent(told: Sequence[reports.PartReport]) -> Iterator[list[reports.PartReport]]:
    """Reports of one host in their order; those together that are decided alike whatever became of the others of them.

    These are good ends of different jobs: what follows from one is about its job alone, and perhaps a spec of its own.
    """
    group: dict[int, reports.PartReport] = {}
    for report in told:
        if not _is_good_end(report) or report.key in group:
            yield from [[*group.values()]] if group else ()
            group = {}
        if _is_good_end(report):
            group[report.key] = report
        else:
            yield [report]
    if group:
        yield [*group.values()]


def _is_good_end(report: reports.PartReport) -> bool:
    if not isinstance(report, reports.EndedReport):
        return False
    return report.gone and not (report.end.status or report.end.lost or report.end.first_reason or report.gpu_faults)
