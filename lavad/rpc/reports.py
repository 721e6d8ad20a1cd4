"""From an agent's reports to decisions, one a report, all of one message in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report import report as decide
from lavad.core.decide.report import tasks as task_report
from lavad.core.events import Event
from lavad.core.job.endpoint import endpoint_text
from lavad.engine import Decide
from lavad.rpc import convert
from proto import agent_pb2 as pb

_Read = Callable[[Cluster, pb.Report, str, float], "list[Event]"]


def _prepared(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    return list(
        decide.prepared(cluster, r.key, r.uid, host, endpoint_text(convert.endpoint(r.prepared.endpoint)), now, r.prepared.door)
    )


def _started(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    started = r.started
    return list(decide.started(cluster, r.key, r.uid, host, started.pid, started.started, started.cwd, now))


def _ended(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    return list(decide.ended(cluster, r.key, r.uid, host, convert.end(r.ended), r.ended.gone, now))


def _gone(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    return list(decide.gone(cluster, r.key, r.uid, host, now, r.gone.post_status))


def _refused(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    return list(decide.refused(cluster, r.key, r.uid, host, r.refused.code, r.refused.why, now))


def _stopped(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    return list(decide.stopped(cluster, r.key, r.uid, host, r.stopped.stopped, now))


def _granted(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    return list(decide.granted(cluster, r.key, r.uid, host, r.granted.wish, r.granted.ok, r.granted.why, now))


def _checkpointed(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    return list(decide.checkpointed(cluster, r.key, r.uid, host, r.checkpointed.generation, now))


def _task_started(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    task = r.task_started
    return list(task_report.task_started(cluster, r.key, r.uid, host, task.rank, task.number, task.pid, now))


def _task_ended(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    task, limit = r.task_ended, convert.limit(r.task_ended.limit)
    return list(task_report.task_ended(cluster, r.key, r.uid, host, task.rank, task.number, task.status, limit, now))


def _resized(cluster: Cluster, r: pb.Report, host: str, now: float) -> list[Event]:
    return list(decide.resized(cluster, r.key, r.uid, host, r.resized.number, r.resized.ok, r.resized.why, now))


_READS: dict[str, _Read] = {
    "prepared": _prepared,
    "started": _started,
    "ended": _ended,
    "gone": _gone,
    "refused": _refused,
    "stopped": _stopped,
    "granted": _granted,
    "checkpointed": _checkpointed,
    "task_started": _task_started,
    "task_ended": _task_ended,
    "resized": _resized,
}


def decisions(reports: Iterable[pb.Report], host: str) -> list[Decide]:
    """One decision a report that this version knows."""
    return [_decision(_READS[what], report, host) for report in reports if (what := report.WhichOneof("what")) in _READS]


def _decision(read: _Read, report: pb.Report, host: str) -> Decide:
    return lambda cluster, now: Decided(events=read(cluster, report, host, now))
