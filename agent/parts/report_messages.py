"""The agent's reports of a part, as messages to the master, and the summary for the user's report."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from agent.core import decide
from agent.core.checkpoint import CATCH_WITHIN
from agent.core.effects import Send
from agent.core.part import Stage
from agent.launch.report import Summary, Use
from agent.parts.entry import Entry
from agent.parts.host_monitor import Final
from agent.starter.protocol.orders import EndTask, Finish, Scope, Signal, StartTask
from agent.starter.protocol.part import NO_RANK
from agent.starter.protocol.reports import End, FirstFailure, HostEnd, HostUse, TaskEnded, TaskStarted
from proto import agent_pb2 as pb

ENDED = "the master ended this attempt"
"""Why a part is over that the master ordered to end."""


def about(entry: Entry, **what: Any) -> pb.Report:
    """A report about a part."""
    return pb.Report(key=entry.key, attempt=entry.part.attempt, uid=entry.uid, **what)


def signal(effect: Send) -> Signal:
    """The order to the starter."""
    if effect.tasks:
        return Signal((effect.uid,), effect.signal, Scope.CATCHING, CATCH_WITHIN)
    return Signal((effect.uid,), effect.signal)


def start_task(order: pb.Order) -> StartTask:
    """The order to the starter to start one task of a role job."""
    task = order.start_task
    return StartTask(order.uid, task.rank, task.number, task.delay)


def end_task(order: pb.Order) -> EndTask:
    """The order to end one, which starts again with others."""
    return EndTask(order.uid, order.end_task.rank, order.end_task.number, asked=True)


def finish(order: pb.Order) -> Finish:
    """The order to the starter that a role job ends."""
    end = order.finish
    return Finish(order.uid, FirstFailure(end.rank, end.status, end.why) if end.status else None, end.leave)


def prepared(entry: Entry) -> pb.Report:
    """All is in place on this host."""
    return about(entry, prepared=pb.Prepared(endpoint=entry.endpoint, attach_address=entry.attach_address))


def started(entry: Entry) -> pb.Report:
    """Its processes run."""
    return about(entry, started=pb.Started(pid=entry.pid, started=entry.started_at, cwd=entry.cwd))


def again(entry: Entry) -> pb.Report | None:
    """Its current stage, if a repeated start order needs it."""
    if entry.part.stage is Stage.PREPARED:
        return prepared(entry)
    return started(entry) if entry.part.stage is Stage.RUNNING and entry.started_at else None


def task_started(entry: Entry, said: TaskStarted) -> pb.Report:
    """A task that was ordered by itself runs."""
    return about(entry, task_started=pb.TaskStarted(rank=said.rank, number=said.number, pid=said.pid))


def task_ended(entry: Entry, said: TaskEnded) -> pb.Report:
    """A task of a part that goes on ended."""
    limit = entry.over_limit.get(said.rank, "")
    return about(entry, task_ended=pb.TaskEnded(rank=said.rank, number=said.number, status=said.status, limit=limit))


def gone(entry: Entry) -> pb.Report:
    """Nothing of it is left."""
    return about(entry, gone=pb.Gone(post=entry.post, gpu_faults=entry.gpu_end.faults))


def refused(entry: Entry, code: str, why: str) -> pb.Report:
    """It was not started, and nothing of it is here.

    A file that the agent keeps for it, and not the user, says nothing of the job where the host's own disk takes no files.
    """
    kept = (f"output file {path}: {os.strerror(number)}" for path in entry.kept_files() for number in (errno.ENOSPC, errno.EROFS))
    code = "files" if code == "output" and why in kept else code
    return about(entry, refused=pb.PartRefused(code=code, why=why))


def ended(entry: Entry, output: str) -> pb.Report:
    """How it ended, or that this is unknown."""
    report, use = about(entry), entry.use
    told = report.ended  # filled in place: a message that is given to another one is copied
    _tell_use(told, use)
    told.gpu_faults.extend(entry.gpu_end.faults)
    if entry.end is None:
        told.lost, told.first_rank, told.gone = entry.lost or "its end is not known", -1, True
        told.utime = use.cpu
        return report
    end, first = entry.end, entry.end.first
    told.status, told.at, told.started = end.status, end.at, end.started
    # the samples saw also what its end no longer waited for: tasks of blaunch that were killed with it, daemons it left behind
    unreaped = max(0.0, use.cpu - end.utime - end.stime)
    told.utime, told.stime = end.utime + unreaped, end.stime
    for task in end.tasks:
        told.tasks.add(
            rank=task.rank,
            pid=task.pid,
            status=task.status or 0,
            utime=task.utime,
            stime=task.stime,
            maxrss=task.maxrss_kb,
        )
    told.first_rank = first.rank if first else -1
    told.first_reason = (first.reason if first else "") or ("lease" if end.lease else "")
    told.limit, told.output = entry.limit, output
    told.note = end.note or (f"its report was not written: {entry.unwritten}" if entry.unwritten else "")
    told.gone, told.post = entry.over, entry.post
    folder = entry.folder()
    if entry.text is not None and folder != entry.text.cwd:
        told.cwd = folder
    return report


def _tell_use(told: pb.Ended, use: Use) -> None:
    told.max_mem, told.max_swap, told.avg_mem = use.max_mem, use.max_swap, use.avg_mem
    told.max_processes, told.max_threads = use.processes, use.threads
    told.cpu_peak, told.cpu_peak_after = use.cpu_peak, use.cpu_peak_after
    told.gpus.extend(use.gpus)


def use_seen(seen: Final) -> Use:
    """What it used by the samples alone, where its end is not known."""
    return use_of(End(0, 0.0, 0.0, 0.0, 0.0, 0, (), None, False), seen)


def use_of(end: End, seen: Final) -> Use:
    """What it used: the samples' peaks, or what the kernel says where it was too short for samples."""
    floor = end.shepherd_kb
    largest = max(end.maxrss_kb, sum(task.maxrss_kb for task in end.tasks if task.maxrss_kb > floor))
    return Use(
        cpu=max(end.utime + end.stime, seen.cpu),
        max_mem=max(seen.mem, largest if largest > floor else 0),
        avg_mem=seen.avg_mem,
        max_swap=seen.swap,
        processes=seen.processes or len(end.tasks),
        threads=seen.threads,
        cpu_peak=seen.cpus,
        cpu_peak_after=seen.cpus_after,
        gpus=seen.gpus,
    )


def use_of_job(own: Use, others: Iterable[HostEnd]) -> Use:
    """What a job over several hosts used: this host's and what the other hosts' shepherds told."""
    total = own
    for one in others:
        use = one.use or HostUse()
        total = replace(
            total,
            # as on this host: the samples saw also what the end no longer waited for
            cpu=total.cpu + max(one.utime + one.stime, use.cpu),
            max_mem=total.max_mem + max(use.mem, one.mem),
            avg_mem=total.avg_mem + use.avg_mem,
            max_swap=total.max_swap + use.swap,
            processes=total.processes + (use.processes or one.tasks),
            threads=total.threads + use.threads,
        )
    return total


def limit_of_job(entry: Entry, end: End) -> str:
    """The limit that ended the job, here or on the host of the rank that failed first; of any host where no rank did. ""
    if none. The master finds that of another host in the report of that host, and may have killed this part for it."""
    rank = end.first.rank if end.first else NO_RANK
    if entry.limit or entry.part.reason or rank in {task.rank for task in end.tasks}:
        return entry.limit
    failed = [one for one in end.others if one.status] if rank >= 0 else []
    for one in failed or end.others:
        use = one.use or HostUse()
        cpu, mem = max(one.utime + one.stime, use.cpu), max(use.mem, one.mem)
        if limit := use.limit or decide.limit_of_end(replace(entry.part, killing=False), one.status, cpu, mem):
            return limit
    return ""


def summary_of(entry: Entry, end: End, host: str) -> Summary:
    """What the report in the output file tells."""
    text = entry.text
    assert text is not None
    assert entry.made is not None
    first = end.first
    why = f"rank {first.rank}: {first.reason or 'failed'}" if first else entry.ended_for.why if end.status else ""
    if first and (text.roles or first.rank < 0):
        why = first.reason or "failed"
    if end.lease:
        why = "the master was not heard for the lease of the job"
    if end.status and entry.gpu_end.told:
        why = entry.gpu_end.told
    folder = entry.folder()
    return Summary(
        key=entry.key,
        name=entry.name(),
        hosts=tuple((slot.host, slot.slots) for slot in entry.order.start.hosts),
        host=host,
        admin=text.admins[0] if text.admins else "lsfadmin",
        home=text.home or entry.made.user.home,
        cwd=folder,
        lost_cwd="" if folder == entry.where.cwd else entry.where.cwd,
        dispatched=entry.received,
        started=end.started or entry.received,
        ended=end.at,
        status=entry.ended_for.status or end.status if end.status else 0,
        reason=limit_of_job(entry, end) or (entry.part.reason if end.status else ""),
        why=why,
        note=end.note,
        use=use_of_job(entry.use, end.others),
        # as all hosts together have it reserved; a master of the release before does not say
        requested_mem=sum(slot.reserved_mem for slot in entry.order.start.hosts) or text.requested_mem,
    )


def summary_so_far(entry: Entry, host: str) -> Summary:
    """The summary of one that has only begun."""
    at = entry.started_at or entry.received
    began = End(status=0, at=at, started=at, utime=0.0, stime=0.0, maxrss_kb=0, tasks=(), first=None, lease=False)
    return summary_of(entry, entry.end or began, host)


def why_again(entry: Entry) -> str:
    """Why this attempt was cut short so that the job runs again, "" when this is its end: then it has a report.

    What befell another host of it this one hears from the link between them.
    """
    end, text = entry.end, entry.text
    if end is not None and entry.part.migrating and (end.status or entry.part.rules.checkpoint):
        return "it is migrated"
    if end is None or text is None or not text.leased or entry.part.killing or limit_of_job(entry, end):
        return ""
    if end.lease:
        return "the master was not heard for the lease of the job"
    failed = end.first is not None and end.first.rank >= 0
    if failed and entry.dropped == ENDED and not entry.ended_for.why:
        return ""  # the master heard of the rank that failed on another host, and ends all for it
    if entry.dropped:
        return entry.dropped
    return end.first.reason if end.first and not failed else ""
