"""What the agent says of a part, as messages of the wire."""

from __future__ import annotations

from typing import Any

from agent.core.checkpoint import CATCH_WITHIN
from agent.core.effects import Send
from agent.core.part import Stage
from agent.launch import report
from agent.launch.report import Story, Use
from agent.parts.entry import Entry
from agent.parts.host_monitor import Final
from proto import agent_pb2 as pb


def about(entry: Entry, **what: Any) -> pb.Report:
    """A report about a part."""
    return pb.Report(key=entry.key, attempt=entry.part.attempt, uid=entry.uid, **what)


def signal(effect: Send) -> dict[str, Any]:
    """The order to the starter."""
    how = {"scope": "catching", "within": CATCH_WITHIN} if effect.tasks else {"scope": "groups"}
    return {"do": "signal", "uids": [effect.uid], "sig": int(effect.signal), **how}


def prepared(entry: Entry) -> pb.Report:
    """All is in place on this host."""
    return about(entry, prepared=pb.Prepared(endpoint=entry.endpoint, door=entry.door))


def started(entry: Entry) -> pb.Report:
    """Its processes run."""
    pid = entry.tasks[0][1] if entry.tasks else 0
    return about(entry, started=pb.Started(pid=pid, started=entry.started_at, cwd=entry.cwd))


def again(entry: Entry) -> pb.Report | None:
    """Where it is now, if that is worth saying once more."""
    if entry.part.stage is Stage.PREPARED:
        return prepared(entry)
    return started(entry) if entry.part.stage is Stage.RUNNING and entry.started_at else None


def task_started(entry: Entry, said: dict[str, Any]) -> pb.Report:
    """A task that was ordered by itself runs."""
    about_it = {name: int(said[name]) for name in ("rank", "number", "pid")}
    return about(entry, task_started=pb.TaskStarted(**about_it))


def task_ended(entry: Entry, said: dict[str, Any]) -> pb.Report:
    """A task of a part that goes on ended."""
    rank = int(said["rank"])
    ended = pb.TaskEnded(rank=rank, number=int(said["number"]), status=int(said["status"]), limit=entry.over_limit.get(rank, ""))
    return about(entry, task_ended=ended)


def gone(entry: Entry) -> pb.Report:
    """Nothing of it is left."""
    return about(entry, gone=pb.Gone(post=entry.post))


def refused(entry: Entry, code: str, why: str) -> pb.Report:
    """It was not started, and nothing of it is here."""
    return about(entry, refused=pb.PartRefused(code=code, why=why))


def ended(entry: Entry, output: str) -> pb.Report:
    """How it ended, or that this is not known."""
    if entry.end is None:
        return about(entry, ended=pb.Ended(lost=entry.lost or "its end is not known", first_rank=-1, gone=True))
    end = entry.end
    use = entry.use
    first = end.get("first") or {}
    return about(
        entry,
        ended=pb.Ended(
            status=int(end["status"]),
            at=float(end["at"]),
            started=float(end["started"]),
            utime=float(end["utime"]),
            stime=float(end["stime"]),
            max_mem=use.max_mem,
            max_swap=use.max_swap,
            max_processes=use.processes,
            max_threads=use.threads,
            avg_mem=use.avg_mem,
            cpu_peak=use.cpu_peak,
            cpu_peak_after=use.cpu_peak_after,
            tasks=[_task_end(task) for task in end.get("tasks") or []],
            first_rank=int(first.get("rank", -1)),
            first_reason=str(first.get("reason") or ("lease" if end.get("lease") else "")),
            limit=entry.limit,
            output=output,
            gone=entry.over,
            post=entry.post,
        ),
    )


def _task_end(task: dict[str, Any]) -> pb.TaskEnd:
    return pb.TaskEnd(
        rank=task["rank"],
        pid=task["pid"],
        status=int(task.get("status") or 0),
        utime=task["utime"],
        stime=task["stime"],
        maxrss=task["maxrss_kb"],
    )


def use_of(end: dict[str, Any], seen: Final) -> Use:
    """What it used: the samples' peaks, or what the kernel says where it was too short for samples."""
    floor = int(end.get("shepherd_kb") or 0)
    largest = max(int(end["maxrss_kb"]), sum(int(t["maxrss_kb"]) for t in end.get("tasks") or [] if t["maxrss_kb"] > floor))
    return Use(
        cpu=max(float(end["utime"]) + float(end["stime"]), seen.cpu),
        max_mem=max(seen.mem, largest if largest > floor else 0),
        avg_mem=seen.avg_mem,
        max_swap=seen.swap,
        processes=seen.processes or len(end.get("tasks") or []),
        threads=seen.threads,
        cpu_peak=seen.cpus,
        cpu_peak_after=seen.cpus_after,
    )


def use_of_job(own: Use, others: list[dict[str, Any]]) -> Use:
    """What a job over several hosts used: this host's and what the other hosts' shepherds told."""
    total = own
    for one in others:
        try:
            total = _add(total, one, one.get("use") or {})
        except (TypeError, ValueError, AttributeError):  # of a user's own shepherd: nothing is taken for granted
            continue
    return total


def _add(to: Use, told: dict[str, Any], use: dict[str, Any]) -> Use:
    return Use(
        cpu=to.cpu + float(told.get("utime") or 0) + float(told.get("stime") or 0),
        max_mem=to.max_mem + max(int(use.get("mem") or 0), int(told.get("mem") or 0)),
        avg_mem=to.avg_mem + int(use.get("avg_mem") or 0),
        max_swap=to.max_swap + int(use.get("swap") or 0),
        processes=to.processes + (int(use.get("processes") or 0) or int(told.get("tasks") or 0)),
        threads=to.threads + int(use.get("threads") or 0),
        cpu_peak=to.cpu_peak,
        cpu_peak_after=to.cpu_peak_after,
    )


def story(entry: Entry, host: str) -> Story:
    """What the report in the output file tells."""
    end, text = entry.end, entry.text
    assert end is not None
    assert text is not None
    assert entry.made is not None
    first = end.get("first") or {}
    why = f"rank {first['rank']}: {first.get('reason') or 'failed'}" if first else ""
    if first and text.roles:
        why = str(first.get("reason") or "failed")
    if end.get("lease"):
        why = "the master was not heard for the lease of the job"
    folder = entry.folder()
    return Story(
        key=entry.key,
        name=entry.name(),
        hosts=tuple((slot.host, slot.slots) for slot in entry.order.start.hosts),
        host=host,
        admin=text.admins[0] if text.admins else "lsfadmin",
        home=text.home or entry.made.user.home,
        cwd=folder,
        lost_cwd="" if folder == entry.where.cwd else entry.where.cwd,
        dispatched=entry.received,
        started=float(end["started"]) or entry.received,
        ended=float(end["at"]),
        status=int(end["status"]),
        reason=entry.limit or (entry.part.reason if end["status"] else ""),
        why=why,
        use=use_of_job(entry.use, end.get("others") or []),
        requested_mem=text.requested_mem,
    )


def story_so_far(entry: Entry, host: str) -> Story:
    """The story of one that has only begun."""
    at = entry.started_at or entry.received
    end = entry.end or {"status": 0, "at": at, "started": at}
    was, entry.end = entry.end, end
    try:
        return story(entry, host)
    finally:
        entry.end = was


def why_again(entry: Entry) -> str:
    """Why this attempt was cut short so that the job runs again, "" when this is its end: then it has a report.

    What befell another host of it this one hears from the link between them.
    """
    end, text = entry.end, entry.text
    if end is None or text is None or not text.leased or entry.part.killing or entry.limit:
        return ""
    if end.get("lease"):
        return "the master was not heard for the lease of the job"
    if entry.dropped:
        return entry.dropped
    first = end.get("first") or {}
    return str(first.get("reason")) if first and int(first["rank"]) < 0 else ""


def pieces(entry: Entry, host: str, now: float) -> tuple[str, str]:
    """The report's text before and behind the output."""
    assert entry.text is not None
    return report.report(entry.text, story(entry, host), entry.where, now)
