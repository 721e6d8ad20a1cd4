"""What agents say, as records of the core. Rule: an unknown kind, of an agent of another version, is read as nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from lavad.core.job import reports
from lavad.core.job.endpoint import Endpoint
from lavad.core.job.gpu_use import GpuUse
from lavad.core.job.job import End, TaskEnd
from lavad.core.job.reports import PartReport
from lavad.core.lang.asks import Caller
from lavad.core.lang.states import TermReason
from lavad.core.plan.volatile import GpuState, PartUsage, TaskUsage
from lavad.core.site.gpu_links import LETTERS
from lavad.core.site.host import Facts, Gpu, Mount
from lavad.wire.byname import reader_of, record_of, records_of
from lavad.wire.records import Copies, Heartbeat, Hello, PartStatus, PeekData, WorkFolders
from proto import agent_pb2 as pb

FromAgent: TypeAlias = pb.FromAgent
CommandFrame: TypeAlias = pb.CommandFrame
_About: TypeAlias = dict[str, Any]


class Reports(msgspec.Struct, frozen=True):
    """Reports of one message, in their order."""

    reports: tuple[PartReport, ...]


def hello(message: FromAgent) -> Hello:
    """The greeting, with which a stream begins."""
    found = message.hello
    return record_of(Hello, found, facts=facts(found.facts), parts=records_of(PartStatus, found.parts))


def read(message: FromAgent, host: str) -> Reports | Heartbeat | PeekData | Copies | WorkFolders | None:
    """A later message of a host's stream."""
    match message.WhichOneof("kind"):
        case "reports":
            return Reports(tuple(report(one, host) for one in message.reports.reports))
        case "heartbeat":
            beat = message.heartbeat
            used = tuple(usage(one) for one in beat.usage)
            return Heartbeat(
                sent=beat.sent,
                load=dict(beat.load),
                usage=used,
                health=beat.health,
                gpus=records_of(GpuState, beat.gpus),
                gpu_error=beat.gpu_error,
            )
        case "peek":
            return record_of(PeekData, message.peek)
        case "copies":
            return record_of(Copies, message.copies)
        case "work_folders":
            return record_of(WorkFolders, message.work_folders)
    return None


def caller(frame: CommandFrame, host: str, may_administer: bool) -> Caller:
    """Who sends a command, as the agent of the host vouches."""
    return Caller(user=frame.user, uid=frame.uid, host=host, may_administer=may_administer)


def facts(message: pb.Facts) -> Facts:
    """What an agent says its host is; what it does not know has a default."""
    gpus = tuple(record_of(Gpu, gpu, links="".join(LETTERS.get(link, "-") for link in gpu.links)) for gpu in message.gpus)
    return record_of(
        Facts,
        message,
        ncpus=message.ncpus or 1,
        starter=message.starter or 1,
        type=message.type or "UNKNOWN",
        model=message.model or "UNKNOWN",
        cpu_factor=message.cpu_factor or 1.0,
        gpus=gpus,
        mounts=records_of(Mount, message.mounts),
        resources=tuple(message.resources),
        local=tuple(sorted(message.local.items())),
    )


def usage(message: pb.Usage) -> PartUsage:
    """What a part uses now."""
    tasks, gpus = records_of(TaskUsage, message.tasks), records_of(GpuUse, message.gpus)
    return record_of(PartUsage, message, tasks=tasks, gpus=gpus)


def end(message: pb.Ended) -> End:
    """How a part ended."""
    converted = {
        "tasks": records_of(TaskEnd, message.tasks),
        "gpus": records_of(GpuUse, message.gpus),
        "first_rank": message.first_rank if message.first_reason else -1,
        "limit": _limit(message.limit),
    }
    return _read_end(message, converted)


_read_end = reader_of(End, pb.Ended, "tasks", "gpus", "first_rank", "limit")


def endpoint(message: pb.Endpoint) -> Endpoint:
    """Where a prepared part can be reached."""
    return record_of(Endpoint, message)


def _limit(name: str) -> TermReason:
    """A limit that an agent enforced."""
    return TermReason.__members__.get(name, TermReason.NONE) if name else TermReason.NONE


def _newest(message: pb.Checkpointed) -> int | None:
    """The newest generation that is whole, where that is told."""
    return message.newest if message.HasField("newest") else None


def report(message: pb.Report, host: str) -> PartReport:
    """A report about a part on a host."""
    read_kind = _KINDS.get(message.WhichOneof("what") or "")
    about: _About = {"host": host, "key": message.key, "attempt": message.attempt, "uid": message.uid, "serial": message.serial}
    return PartReport(**about) if read_kind is None else read_kind(message, about)


def _ended(message: pb.Ended, about: _About) -> reports.EndedReport:
    faults = records_of(reports.GpuFault, message.gpu_faults)
    return reports.EndedReport(end=end(message), gone=message.gone, gpu_faults=faults, **about)


_KINDS: dict[str, Callable[[pb.Report, _About], PartReport]] = {
    "prepared": lambda m, about: record_of(reports.PreparedReport, m.prepared, endpoint=endpoint(m.prepared.endpoint), **about),
    "started": lambda m, about: record_of(reports.StartedReport, m.started, **about),
    "ended": lambda m, about: _ended(m.ended, about),
    "gone": lambda m, about: record_of(
        reports.GoneReport, m.gone, gpu_faults=records_of(reports.GpuFault, m.gone.gpu_faults), **about
    ),
    "refused": lambda m, about: record_of(reports.RefusedReport, m.refused, **about),
    "stopped": lambda m, about: record_of(reports.StoppedReport, m.stopped, **about),
    "granted": lambda m, about: record_of(reports.GrantedReport, m.granted, **about),
    "checkpointed": lambda m, about: record_of(reports.CheckpointReport, m.checkpointed, newest=_newest(m.checkpointed), **about),
    "resized": lambda m, about: record_of(reports.ResizeReport, m.resized, **about),
    "task_started": lambda m, about: record_of(reports.TaskStartReport, m.task_started, **about),
    "task_ended": lambda m, about: record_of(reports.TaskEndReport, m.task_ended, limit=_limit(m.task_ended.limit), **about),
}
