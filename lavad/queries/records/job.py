"""One job at length, and why it waits."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.decide.modify.permitted import Permitted
from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Job, Part
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import index_of, job_of, show
from lavad.core.lang.job_names import ArrayError, parse_job_id
from lavad.core.lang.states import FINAL, SUSPENDED, WAITING, JobState
from lavad.core.plan.volatile import PartUsage, TaskUsage
from lavad.core.site.rights import may_control
from lavad.queries.facts import jobfacts, reasons, visibility
from lavad.queries.facts.history import History, Times, time_of
from lavad.queries.facts.jobset import UNFINISHED, JobSet, Wanted
from lavad.queries.facts.sentences import HistoryFormatter
from lavad.queries.frame.request import Request
from lavad.queries.frame.view import View
from lavad.queries.jobs import why
from lavad.queries.records import asked, rows
from lavad.sched.ask.estimate import estimate, get_queue_position
from lavad.sched.ask.trial import starts
from lavad.sched.ask.what_if import find_changes
from proto import records

NOT_FOUND = "is not found"


def find(request: Request, word: str) -> Job:
    """The live or finished job or element that an id names, where the caller may see all of it. Raises Refused."""
    try:
        number, indices = parse_job_id(word)
    except ArrayError as error:
        raise Refused(f"{error}.") from None
    if indices is not None and len(indices) != 1:
        raise Refused(f"Job <{word}> names several elements")
    wanted = Wanted(UNFINISHED | FINAL, ids={number: indices})
    found = next(iter(JobSet(request.view, wanted, None)), None)
    if found is None or not visibility.sees(request, request.view.spec(found), False):
        raise Refused(f"Job <{word}> {NOT_FOUND}")
    if indices is None and index_of(found.key):
        raise Refused(f"Job <{word}> is an array: name one of its elements, as {word}[{index_of(found.key)}]")
    if not visibility.sees(request, request.view.spec(found), True):
        raise Refused(f"Job <{word}>: User permission denied")
    return found


def read(request: Request) -> records.Job:
    view, job = request.view, find(request, asked.name(request))
    spec, text = view.spec(job), view.texts([job])[job.key]
    usage = jobfacts.Usage(job, view)
    history = History(view.reader.events_of(job_of(job.key))).of(job.key)
    formatter = HistoryFormatter(view, job, text, True)
    good = jobfacts.Efficiency(job, spec, usage, request.now) if job.run is not None and usage.known else None
    return records.Job(
        row=rows.row(view, job),
        command=text.script or text.command,
        cwd=text.cwd,
        output=text.output,
        error=text.error,
        input=text.input,
        resreq=spec.resreq,
        dependency=job.depend.text if job.depend is not None else spec.dependency,
        description=text.description,
        application=spec.app,
        group=spec.group,
        user_group=spec.user_group,
        from_host=spec.from_host,
        mem_limit=spec.limits.mem,
        parts=[_part(view, part, usage.parts.get(part.host)) for part in jobfacts.parts_of(job)],
        reasons=_reasons(view, job),
        story=[records.Told(at=time_of(event), text=line) for event in history for line in formatter.sentences(event)],
        seconds={name: spent for name, spent in Times(history, request.now).seconds.items() if spent},
        cpu_time=usage.cpu,
        max_mem=usage.max_mem,
        cpu_efficiency=good.cpu if good is not None else None,
        mem_efficiency=good.memory if good is not None and good.memory else None,
        samples=view.samples(job.key),
        may_change=may_control(request.cluster.conf, spec, request.caller),
    )


def _reasons(view: View, job: Job) -> list[str]:
    if job.state in WAITING:
        lines = reasons.pending(view, job, 0, True)
    else:
        lines = reasons.suspended(view, job) if job.state in SUSPENDED else []
    return [words for line in lines if (words := line.strip().rstrip(";"))]


def _part(view: View, part: Part, usage: PartUsage | None) -> records.JobPart:
    host = view.cluster.hosts.rows.get(part.host)
    known = {gpu.uuid: str(gpu.index) for gpu in host.facts.gpus} if host is not None else {}
    end = part.end
    return records.JobPart(
        host=part.host,
        slots=slots_in(part),
        state=part.state.name,
        gpus=[known.get(uuid, uuid) for uuid in part.gpus],
        cpus=jobfacts.cpus_of(part),
        reserved_mem=next((amount for name, amount in part.reserved if name == "mem"), None),
        cpu=usage.cpu if usage is not None else end.utime + end.stime if end is not None else 0.0,
        mem=usage.rss if usage is not None else 0,
        max_mem=max(usage.max_mem, usage.rss) if usage is not None else end.max_mem if end is not None else 0,
        tasks=list(_tasks(part, () if usage is None else usage.tasks)),
    )


def _tasks(part: Part, live: tuple[TaskUsage, ...]) -> Iterator[records.Task]:
    for task in live:
        yield records.Task(
            rank=task.rank,
            pid=task.pid,
            cpu=task.cpu,
            mem=task.rss,
            state=task.state,
            gpu_util=task.gpu_util,
            gpu_mem=task.gpu_mem,
        )
    if not live and part.end is not None:
        for ended in part.end.tasks:
            cpu = ended.utime + ended.stime
            state = f"exit {ended.status >> 8 & 0xFF}" if not ended.status & 0x7F else f"signal {ended.status & 0x7F}"
            yield records.Task(rank=ended.rank, pid=ended.pid, cpu=cpu, mem=ended.maxrss, state=state, gpu_util=0, gpu_mem=0)


def read_why(request: Request) -> records.Why:
    """As ``lava why`` has it."""
    view, job = request.view, find(request, asked.name(request))
    waits = job.state is JobState.PEND and not job.blocked
    moment = why.moment_of(request)
    place = get_queue_position(moment, job.key) if waits else None
    now = waits and starts(moment, job.key)
    found = estimate(moment, job.key) if waits and not now else None
    changes = find_changes(moment, job.key, Permitted.of(request.cluster, job.key)) if found else []
    return records.Why(
        id=show(job.key),
        state=job.state.name,
        reasons=_reasons(view, job),
        position=place.ahead + 1 if place is not None else None,
        waiting=place.waiting if place is not None else None,
        starts_now=now,
        changes=[records.Change(text=change.text) for change in changes[: why.MOST]],
        soonest=found.soonest if found is not None else None,
        latest=found.latest if found is not None else None,
    )
