"""lava why JOB of a job that has ended: how, by whom or at which limit, and what to do so that the next one does not."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.containers import CONTAINER, image_of
from lavad.core.decide.modify.permitted import Permitted
from lavad.core.job.job import Job, Part
from lavad.core.job.roles import task_name
from lavad.core.job.run_time import run_time
from lavad.core.job.spec import Spec
from lavad.core.job.task_run import TaskRun
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.job_names import ArrayError, parse_job_id
from lavad.core.lang.states import JobState, SignalKind, TermReason
from lavad.core.site.pend_reason import text as reason_text
from lavad.queries.explain import table
from lavad.queries.facts import jobfacts, visibility
from lavad.queries.facts.history import History
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request
from lavad.store.asked import Find
from proto.advice import enough, size

MOST = 6
"""Elements that are named for each kind of end."""


def find(request: Request, word: str) -> list[Job]:
    """The job or element, or all elements of an array, where it is over; [] while any of it is live, or if there is none."""
    try:
        job, indices = parse_job_id(word)
    except ArrayError:
        return []
    key = key_of(job, next(iter(indices), 0) if indices else 0)
    if job in request.cluster.jobs.rows or (not indices and job in request.cluster.arrays.rows):
        return []
    rows = request.view.finished_jobs(Find(keys=(key,)))
    return [row for row in rows if visibility.sees(request, request.view.spec(row), detail=True)]


def explanation(request: Request, jobs: list[Job]) -> str:
    """What is said of it; of several elements, how many ended in which way, and of the first that failed all."""
    if len(jobs) == 1:
        return "".join(_one(request, jobs[0]))
    failed = [job for job in jobs if job.state is JobState.EXIT]
    done = len(jobs) - len(failed)
    text = f"Array <{job_of(jobs[0].key)}>: {len(jobs)} elements have ended, {done} done, {len(failed)} exited\n"
    ways: defaultdict[str, list[Job]] = defaultdict(list)
    for job in failed:
        ways[_way(job)].append(job)
    for way, those in sorted(ways.items(), key=lambda pair: -len(pair[1])):
        names = " ".join(f"[{index_of(job.key)}]" for job in those[:MOST])
        text += f"  {len(those)} {way}: {names}{' ...' if len(those) > MOST else ''}\n"
    return text if not failed else f"{text}\n{''.join(_one(request, failed[0]))}"


def earlier(request: Request, job: Job) -> str:
    """Why its earlier attempts ended, by time; "" where there were none."""
    if job.attempt <= (job.run is not None):
        return ""
    lines = []
    for event in _events(request, job):
        if isinstance(event, ev.JobRequeued):
            why = event.why.rstrip(".;") or reason_text(event.reason, request.cluster.conf)
            lines.append(f"  {formats.full_time(event.at)}: {why}\n")
    more = f"  ... and {len(lines) - MOST} before\n" if len(lines) > MOST else ""
    return "\nIt has run before, and was put back in its queue\n" + more + "".join(lines[-MOST:]) if lines else ""


def _events(request: Request, job: Job) -> list[ev.Event]:
    return History(request.view.reader.events_of(job_of(job.key))).of(job.key)


def _way(job: Job) -> str:
    outcome = job.outcome
    if outcome is not None and outcome.reason is not TermReason.NONE:
        return outcome.reason.name
    code = jobfacts.exit_code(job)
    return "killed before they started" if code is None else f"exit code {code}"


def _one(request: Request, job: Job) -> Iterator[str]:
    spec = request.view.spec(job)
    ran = run_time(job, request.now)
    where = ", ".join(dict.fromkeys(part.host for part in jobfacts.parts_of(job)))
    yield f"Job <{show_key(job.key)}>, User <{spec.user}>, Queue <{spec.queue}>: {job.state.name} since "
    yield formats.full_time(jobfacts.end_of(job) or job.since)
    yield f", after {_time(ran)} on {where}\n" if where else ", before it started\n"
    yield "\nHow it ended\n"
    lines, todo = _reasons(request, job, spec)
    yield "".join(f"  {line}\n" for line in lines)
    if todo:
        yield "\nWhat to do\n" + "".join(f"  {line}\n" for line in todo)
    yield earlier(request, job)


def _reasons(request: Request, job: Job, spec: Spec) -> tuple[list[str], list[str]]:
    """(what happened, what to do)."""
    outcome = job.outcome
    if outcome is None:
        return ["not known"], []
    if job.state is JobState.DONE:
        return ["Done successfully", *([outcome.why] if outcome.why else [])], []
    lines, todo = [], []
    entry = table.of_end(outcome.reason)
    if entry is not None:
        lines.append(f"{entry.name}: {entry.means}")
        todo.append(table.advice(entry, show_key(job.key)))
    killed = _killer(request, job)
    lines += killed
    limit, more = _limit(request, job, spec)
    lines += limit
    if more:
        todo = more
    if outcome.why and not any(outcome.why in line for line in killed):
        lines.append(_sentence(outcome.why, spec))
    if entry is None:
        lines, todo = _by_code(request, job, spec, lines)
    if outcome.reason is TermReason.TERM_OTHER:  # to ask why is what has just been done
        todo = [table.advice(found, show_key(job.key)) for found in table.find(outcome.why)[:1]]
    return lines, [left for line in todo if (left := _without_this(line))]


def _without_this(advice: str) -> str:
    """Advice without that to ask what has just been asked."""
    return "; ".join(step for step in re.split(r"; (?:else )?", advice) if not step.startswith("lava why "))


def _sentence(why: str, spec: Spec) -> str:
    """A reason with a capital letter, unless it begins with the name of a task."""
    names = any(why.startswith(f"{role.name}[") for role in spec.roles)
    return f"{why[0] if names else why[0].upper()}{why[1:].rstrip('.;')}"


def _by_code(request: Request, job: Job, spec: Spec, lines: list[str]) -> tuple[list[str], list[str]]:
    """Of a job that ended by itself: what its exit code says, and where its output is."""
    code = jobfacts.exit_code(job)
    if code is None:
        return lines or ["It was ended before it started"], []
    known = table.of_exit(code)
    if known is None:
        return [f"Exited with exit code {code}: this code is the program's own", *lines], [
            "read its output, or the program's documentation"
        ]
    told = f"{known.text}{f' ({known.name})' if known.name else ''}: {known.means}"
    if known.name and job.outcome is not None and not job.outcome.status & 0x7F:
        ended = f"of a shell in which signal {code - 128} ({known.name}) ended a command: {known.means}"
        told = f"Exited with exit code {code}: the program's own, as mpirun has such, or {ended}"
    around = _around(request, job, spec, code)
    if around:
        maybe = f"Or {around} could not be set up: its output says which, and why"
        return [told, maybe, *lines], [f"read its output; is {around} on each host?", table.advice(known, show_key(job.key))]
    return [told, *lines, *_memory_of_host(request, job, code)], [table.advice(known, show_key(job.key))]


def _around(request: Request, job: Job, spec: Spec, code: int) -> str:
    """What is set up before the command, and ends the task with this code where it cannot be; "" for nothing."""
    text = request.view.texts([job])[job.key]
    failed = _first_task(job)
    of_roles = [text.roles[failed.role]] if failed is not None and failed.role < len(text.roles) else list(text.roles)
    if code == 126:
        found = [f"the working folder {one.cwd}" for one in of_roles if one.cwd]
        found += ["the scratch folder" for one in of_roles if one.scratch]
    elif code == 127:
        site = image_of(request.cluster, spec, ())  # CONTAINER of its profile or queue
        own = (*text.software, *(step for one in of_roles for step in one.software))
        steps = [(CONTAINER, site), *own] if site else own
        found = [f"{step[0]}({','.join(step[1:])})" for step in steps]
    else:
        found = []
    return " or ".join(dict.fromkeys(found))


def _first_task(job: Job) -> TaskRun | None:
    """The task of a role that decided the end of the job; None: no task did."""
    run = job.run
    if run is None or run.verdict is None or not 0 <= run.verdict.first_rank < len(run.tasks):
        return None
    return run.tasks[run.verdict.first_rank]


def _memory_of_host(request: Request, job: Job, code: int) -> list[str]:
    """A job that was killed by KILL, and had nearly all memory of its host."""
    found = []
    for part in jobfacts.parts_of(job) if code == 128 + 9 else ():
        host = request.cluster.hosts.rows.get(part.host)
        if part.end is not None and host is not None and part.end.max_mem > 0.9 * host.facts.max_mem * 1024 > 0:
            found.append(f"It used {size(part.end.max_mem)} on {part.host}, which has {size(host.facts.max_mem * 1024)} in all")
    return found


def _killer(request: Request, job: Job) -> list[str]:
    """Who asked for its end, when, and why (-C); what was asked before it was requeued is of the past."""
    asked: list[tuple[float, str, str]] = []
    for event in _events(request, job):
        if isinstance(event, (ev.JobRequeued, ev.JobRevived)):
            asked = []
        elif isinstance(event, ev.SignalRequested) and event.pending.kind is SignalKind.KILL and event.pending.by:
            asked.append((event.at, event.pending.by, event.pending.said))
        elif isinstance(event, (ev.JobFinished, ev.ElementsKilled)) and event.by:
            asked.append((event.at, event.by, ""))
    return [f"Killed by {by} at {formats.full_time(at)}{f': {said}' if said else ''}" for at, by, said in asked[:1]]


def _limit(request: Request, job: Job, spec: Spec) -> tuple[list[str], list[str]]:
    """(what it had reached of its limit, the option that asks for enough)."""
    reason = job.outcome.reason if job.outcome is not None else TermReason.NONE
    limits = job.run.limits if job.run is not None and job.run.limits is not None else spec.limits
    if reason is TermReason.TERM_MEMLIMIT:
        task = _first_task(job)
        return _memory_limit(job, limits.mem) if task is None else _memory_limit_of_task(job, spec, task)
    if reason is TermReason.TERM_RUNLIMIT:
        return _run_limit(request, job, spec)
    if reason is TermReason.TERM_CPULIMIT and limits.cpu is not None:
        used = jobfacts.cpu_time(job)
        return [f"Killed at its CPU limit of {_time(limits.cpu)}; it had used {_time(used)}"], [
            f"bsub -c {_minutes(max(used, limits.cpu))}"
        ]
    return [], []


def _worst(job: Job) -> Part | None:
    """The part that reached the memory limit, else the largest."""
    ended = [part for part in jobfacts.parts_of(job) if part.end is not None]
    at_limit = [part for part in ended if part.end is not None and part.end.limit is TermReason.TERM_MEMLIMIT]
    return max(at_limit or ended, key=lambda part: part.end.max_mem if part.end is not None else 0, default=None)


def _memory_limit(job: Job, limit: int | None) -> tuple[list[str], list[str]]:
    part = _worst(job)
    if part is None or part.end is None:
        return [], []
    peak = part.end.max_mem
    named = f"its memory limit of {size(limit)}" if limit else "the memory limit"
    more = enough(max(peak, limit or 0))
    return (
        [f"Killed at {named} on {part.host}; its peak there was {size(peak)}"],
        [f'bsub -M {more} -R "rusage[mem={more}]"'],
    )


def _memory_limit_of_task(job: Job, spec: Spec, task: TaskRun) -> tuple[list[str], list[str]]:
    """The same of a task of a role, which has a limit of its own."""
    run, role = job.run, spec.roles[task.role]
    if run is None:
        return [], []
    end, rank = run.parts[task.place].end, run.tasks.index(task)
    peak = max((one.maxrss for one in end.tasks if one.rank == rank), default=0) if end is not None else 0
    limit = role.limits.mem or spec.limits.mem
    named = f"its memory limit of {size(limit)}" if limit else "the memory limit"
    if peak < (limit or 0):  # the kernel tells of its largest process alone, or of less
        peak = 0
    told = f"{task_name(spec, task)} was killed at {named} on {run.parts[task.place].host}"
    more = enough(max(peak, limit or 0))
    return (
        [told + (f"; its peak was {size(peak)}" if peak else "")],
        [f'give role {role.name} more: limits: {{M: {more}}}, and resreq: "rusage[mem={more}]"'],
    )


def _run_limit(request: Request, job: Job, spec: Spec) -> tuple[list[str], list[str]]:
    limit = jobfacts.run_limit(job, spec, request.view)
    if limit is None:
        return [], []
    wanted = _minutes(limit)
    most = request.view.queue(spec.queue).limits.run
    todo = [f'bsub -W {wanted}; or let it write checkpoints and go on from the last: bsub -k "DIR runlimit=requeue"']
    if most is not None and wanted * 60 > most:
        longer = replace(spec, limits=replace(spec.limits, run=wanted * 60))
        permitted = Permitted(request.cluster, spec.user)
        found = [queue.name for queue in request.cluster.conf.queues if permitted.in_queue(longer, queue.name) is not None]
        others = f"; these give more: {' '.join(found)}" if found else ""
        todo.append(f"queue {spec.queue} gives {_time(most)} at most{others}")
    return [f"Killed at its run limit of {_time(limit)}; it had run {_time(run_time(job, request.now))}"], todo


def _minutes(seconds: float) -> int:
    """The limit to ask for where so long was not enough."""
    return max(1, math.ceil(seconds * 1.5 / 60))


def _time(seconds: float) -> str:
    """``63 s``, ``2.5 min``, ``26.0 h``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
