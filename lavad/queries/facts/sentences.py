"""bhist's sentences: what LSF calls each event of a job.

Rule: a sentence of a job ends in ``;`` and is registered with ``@tells``. An event without one is not part of the history
that users read. What depends on earlier events of the job (submission, attempts, its end) stands in the formatter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lavad.core import events as ev
from lavad.core.job.checkpoints import Checkpoints, Generation, made, started_again
from lavad.core.job.depend import NEVER
from lavad.core.job.job import Attempt, End, Job, Part, Placed
from lavad.core.job.memory import size_text
from lavad.core.job.spec import JobText
from lavad.core.lang.ids import index_of, show
from lavad.core.lang.job_names import one_line
from lavad.core.lang.states import JobState, SignalKind, TermReason
from lavad.core.site.pend_reason import text as reason_text
from lavad.lsb.write import requeue_name, signal_name
from lavad.queries.facts import checkpoints, jobfacts, paragraphs, resources, slot_reservations, tasks
from lavad.queries.frame.view import View

Tell = TypeVar("Tell", bound=Callable[..., list[str]])
_TELLS: dict[type[ev.Event], Callable[[HistoryFormatter, Any], list[str]]] = {}


def tells(*kinds: type[ev.Event]) -> Callable[[Tell], Tell]:
    """Registers what gives the paragraphs of these events."""

    def register(tell: Tell) -> Tell:
        _TELLS.update(dict.fromkeys(kinds, tell))
        return tell

    return register


class HistoryFormatter:
    """The sentences about the events of one job."""

    def __init__(self, view: View, job: Job, text: JobText, brief: bool, factor: float = 1.0) -> None:
        self.view = view
        self.job = job
        self.text = text
        self.brief = brief
        self.factor = factor
        self.first_host = ""
        self.has_started = False
        self.started_at = 0.0
        self.attempt = 0
        self.known: Checkpoints | None = None
        """Its checkpoints up to the event, where it writes any."""

    def sentences(self, event: ev.Event) -> list[str]:
        """The paragraphs of an event, none if users do not read of it."""
        tell = _TELLS.get(type(event))
        return tell(self, event) if tell is not None else []

    @tells(ev.JobSubmitted)
    def submitted(self, event: ev.JobSubmitted) -> list[str]:
        spec = self.view.spec(Job(key=event.key, spec=event.spec, name="", submitted=event.at))
        to = f"{',' if self.view.hpc else ''} to Queue <{spec.queue}>"
        hold = " on hold" if event.held else ""
        options = "" if self.brief else paragraphs.submission(self.view, spec, self.text, event.depend)
        return [f"Submitted from host <{spec.from_host}>{hold}{to}{options};"]

    @tells(ev.JobDispatched)
    def dispatched(self, event: ev.JobDispatched) -> list[str]:
        parts = tuple(Part(host=placed.host, slots=placed.slots) for placed in event.parts)
        self.first_host = parts[0].host if parts else ""
        self.has_started, self.started_at, self.attempt = False, 0.0, event.attempt
        newest = self.job.run
        queue = newest.queue if newest is not None and newest.number == event.attempt else ""
        run = Attempt(number=event.attempt, uid="", dispatched=event.at, parts=parts, queue=queue)
        job = Job(key=self.job.key, spec=self.job.spec, name="", submitted=0.0, run=run)
        places = paragraphs.places(self.view, job)
        waits = [paragraphs.WAITS_IN_CHUNK] * event.waits + [paragraphs.lent(event.run_limit)] * bool(event.run_limit)
        if self.view.hpc:
            effective = resources.effective(self.view, self.view.spec(self.job), job)
            index = index_of(self.job.key)
            verb = f"[{index}] dispatched" if index else "Dispatched"
            return [f"{verb} {places}, Effective RES_REQ <{effective} >;", *waits]
        return [f"Dispatched to {places.removeprefix('on ')};", *waits]

    @tells(ev.PartStarted)
    def started(self, event: ev.PartStarted) -> list[str]:
        if event.host != self.first_host:
            return []
        self.started_at = event.started or event.at
        return self._start(event.pid, event.cwd or self.text.cwd)

    @tells(ev.PartEnded)
    def part_ended(self, event: ev.PartEnded) -> list[str]:
        """The end of a part says when it started, where nothing else did."""
        return self._short(event.end) if event.host == self.first_host else []

    def _start(self, pid: int, cwd: str) -> list[str]:
        self.has_started = True
        lines = [f"Starting (Pid {pid});"]
        if not self.brief or self.text.home:
            lines.append(f"Running with execution home <{self.text.home}>, Execution CWD <{cwd}>, Execution Pid <{pid}>;")
        return lines

    def _short(self, end: End | None) -> list[str]:
        """The start of an attempt that was over before its start was reported."""
        if self.has_started or end is None or not end.started or not end.tasks:
            return []
        return self._start(end.tasks[0].pid, end.cwd or self.text.cwd)

    @tells(ev.JobRequeued)
    def requeued(self, event: ev.JobRequeued) -> list[str]:
        words = event.why.rstrip(".;") or reason_text(event.reason, self.view.cluster.conf)
        lines = self._short(event.end)
        if event.end is not None and not event.end.lost:
            lines += _verdict(event.end.status, (event.end.utime + event.end.stime) * self.factor)
        lines += self._lost(event)
        count = "" if words.endswith(")") else ": 1 host"
        return [*lines, f"Pending: {words or 'Requeued job is waiting for rescheduling'}{count};"]

    @tells(ev.MemoryLearnt)
    def memory_learnt(self, event: ev.MemoryLearnt) -> list[str]:
        return [f"Memory limit {size_text(event.limit)} is learnt for <{event.what}>;"]

    def _lost(self, event: ev.JobRequeued) -> list[str]:
        """What a checkpointable job has to do again."""
        begun = self.started_at or (event.end.started if event.end is not None else 0.0)
        if not begun or self.view.spec(self.job).checkpoint is None:
            return []
        before = self.known.lost if self.known is not None else 0.0
        at = event.end.at if event.end is not None and event.end.at else event.at
        self.known = started_again(self.known, self.attempt, begun, at)
        return [f"Work lost: {self.known.lost - before:.0f} seconds;"]

    @tells(ev.ElementsKilled)
    def killed(self, event: ev.ElementsKilled) -> list[str]:
        how = "Done successfully" if event.state is JobState.DONE else "Exited"
        return [*_kill(event.by), f"{how}{f': {event.why}' if event.why else ''};"]

    @tells(ev.JobFinished)
    def finished(self, event: ev.JobFinished) -> list[str]:
        if self.job.outcome is None:
            return []
        lines = _kill(event.by) if self.job.run is None else self._short(event.end)
        lines += paragraphs.ended(self.job, ";", self.factor)
        if event.post:
            lines.append("Post job process failed;")
        elif self.job.state is JobState.DONE:
            lines.append("Post job process done successfully;")
        return lines


def _said(reason: str) -> str:
    """What -C said."""
    return f", Reason <{reason}>" if reason else ""


def _kill(by: str) -> list[str]:
    return [f"Signal <KILL> requested by user or administrator <{by}>;"] if by else []


def _verdict(status: int, seconds: float) -> list[str]:
    used = f"The CPU time used is {seconds:.1f} seconds;"
    if status & 0x7F:
        return [f"Exited by signal {status & 0x7F}. {used}"]
    return [f"Exited with exit code {status >> 8 & 0xFF}. {used}"]


def _places(parts: Sequence[Placed]) -> str:
    count = sum(placed.slots for placed in parts)
    named = " ".join(f"<{placed.slots}*{placed.host}>" if placed.slots > 1 else f"<{placed.host}>" for placed in parts)
    return f"{count} Hosts/Processors {named}"


# --- before it runs: held, waiting for jobs or slots
@tells(ev.JobHeld, ev.ElementsHeld)
def _held(_: HistoryFormatter, event: ev.JobHeld | ev.ElementsHeld) -> list[str]:
    return [f"Suspended by the user or administrator while pending{_said(event.why)};"]


@tells(ev.JobReleased, ev.ElementsReleased)
def _released(_: HistoryFormatter, event: ev.Event) -> list[str]:
    return ["Pending: Waiting for scheduling after resumed by user: 1 host;"]


@tells(ev.DependencyJudged)
def _judged(_: HistoryFormatter, event: ev.DependencyJudged) -> list[str]:
    # LSF says nothing of a condition that is met
    return ["Pending: Dependency condition invalid or never satisfied: 1 host;"] if event.stands == NEVER else []


@tells(ev.SlotsReserved)
def _reserved(_: HistoryFormatter, event: ev.SlotsReserved) -> list[str]:
    return [slot_reservations.sentence([(part.host, part.slots) for part in event.parts])]


@tells(ev.SlotsReleased)
def _released_slots(_: HistoryFormatter, event: ev.SlotsReleased) -> list[str]:
    return [f"Released reserved job slots{': ' + event.why if event.why else ''};"]


# --- while it runs
@tells(ev.PartRefused)
def _refused(_: HistoryFormatter, event: ev.PartRefused) -> list[str]:
    return [f"Host <{event.host}> did not start the job: {event.why};"]


@tells(ev.JobSuspended)
def _suspended(_: HistoryFormatter, event: ev.JobSuspended) -> list[str]:
    if event.state is JobState.SSUSP:
        return [f"Suspended: {event.why or 'by the system'};"]
    return [f"Suspended by the user or administrator{_said(event.why)};"]


@tells(ev.JobResumed, ev.JobFound)
def _running(_: HistoryFormatter, event: ev.Event) -> list[str]:
    return ["Running;"]


@tells(ev.JobLost)
def _lost(_: HistoryFormatter, event: ev.JobLost) -> list[str]:
    return ["Unknown; unable to reach the execution host;"]


@tells(ev.JobDeadlocked)
def _deadlocked(_: HistoryFormatter, event: ev.JobDeadlocked) -> list[str]:
    others = " ".join(f"<{show(key)}>" for key in event.others)
    return [f"Deadlock: it holds job slots that jobs {others} wait for, and waits for theirs;"]


@tells(ev.RanksSuspected)
def _suspected(_: HistoryFormatter, event: ev.RanksSuspected) -> list[str]:
    if not event.suspects:
        return ["No rank seems to hang any more;"]
    return [f"{tasks.suspicion(suspect, event.at)};" for suspect in event.suspects]


@tells(ev.CheckpointMade)
def _checkpointed(of: HistoryFormatter, event: ev.CheckpointMade) -> list[str]:
    of.known = made(of.known, Generation(event.generation, event.at, event.attempt))
    facts = [f"generation {event.generation}"]
    if event.size:
        facts.append(checkpoints.size_words(event.size))
    if event.seconds:
        facts.append(f"{event.seconds:.1f} s")
    return [f"Checkpoint succeeded ({', '.join(facts)});"]


@tells(ev.CheckpointStaged)
def _checkpoint_staged(_: HistoryFormatter, event: ev.CheckpointStaged) -> list[str]:
    if event.why:
        return [f"Checkpoint generation {event.generation} is not staged: {event.why};"]
    taken = f"{checkpoints.size_words(event.size)}, {event.seconds:.1f} s"
    where = f" on host <{event.host}>" if event.host else ""
    return [f"Checkpoint generation {event.generation} is staged{where} ({taken});"]


@tells(ev.CheckpointPeriodSet)
def _checkpoint_period_set(_: HistoryFormatter, event: ev.CheckpointPeriodSet) -> list[str]:
    return [f"Checkpoint period is {checkpoints.period_words(event.period, event.cost, event.between_failures)};"]


@tells(ev.CheckpointFailed)
def _checkpoint_failed(_: HistoryFormatter, event: ev.CheckpointFailed) -> list[str]:
    if event.newest is None:
        return [f"Checkpoint failed: {event.why};"]
    instead = f"generation {event.newest}" if event.newest >= 0 else "the beginning"
    return [f"Checkpoint generation {event.generation}: {event.why}; the job goes on from {instead};"]


@tells(ev.PartLeft)
def _left(_: HistoryFormatter, event: ev.PartLeft) -> list[str]:
    why = f": {event.why}" if event.why else ""
    return [f"Host <{event.host}> has left the job{why};"]


# --- what users ask for
@tells(ev.SignalRequested)
def _signal_requested(_: HistoryFormatter, event: ev.SignalRequested) -> list[str]:
    pending = event.pending
    by = f"by user or administrator <{pending.by}>{_said(pending.said)};"
    if pending.kind is SignalKind.MIGRATE:
        return [f"Migration requested {by}"]
    if pending.kind is SignalKind.CHECKPOINT:
        return [f"Checkpoint requested {by}"]
    return [f"Signal <{signal_name(pending)}> requested {by}"] if pending.by else []


@tells(ev.JobSwitched)
def _switched(_: HistoryFormatter, event: ev.JobSwitched) -> list[str]:
    return [f"Switched to Queue <{event.queue}> by user or administrator <{event.by}>;"]


@tells(ev.JobMoved)
def _moved(_: HistoryFormatter, event: ev.JobMoved) -> list[str]:
    end = "top" if event.top else "bottom"
    return [f"Job moved to position {event.place} relative to <{end}> by user or administrator <{event.by}>;"]


@tells(ev.JobModified)
def _modified(_: HistoryFormatter, event: ev.JobModified) -> list[str]:
    changes = "".join(f"\n\t\t\t {one_line(change).rstrip(';')};" for change in event.changes)
    return [f"Parameters of the job are changed:{changes}"]


@tells(ev.JobRevived)
def _revived(_: HistoryFormatter, event: ev.JobRevived) -> list[str]:
    return [f"Signal <{requeue_name(event.job.state)}> requested by user or administrator <{event.by}>;"]


@tells(ev.MessagePosted)
def _posted(_: HistoryFormatter, event: ev.MessagePosted) -> list[str]:
    return [f"Message <{event.message.number}> posted by <{event.message.by}>: <{event.message.text}>;"]


# --- resizing
@tells(ev.ResizeAsked)
def _asked(_: HistoryFormatter, event: ev.ResizeAsked) -> list[str]:
    if not event.most:
        return [f"Resize request cancelled by user or administrator <{event.by}>;"]
    return [f"Resize request for up to {event.most} slots by user or administrator <{event.by}>;"]


@tells(ev.JobGrew)
def _grew(_: HistoryFormatter, event: ev.JobGrew) -> list[str]:
    return [f"Additional allocation on {_places(event.parts)};"]


@tells(ev.JobShrank)
def _shrank(_: HistoryFormatter, event: ev.JobShrank) -> list[str]:
    why = f" by user or administrator <{event.by}>" if event.by else f": {event.why}" if event.why else ""
    return [f"Release allocation on {_places(event.parts)}{why};"]


@tells(ev.JobResized)
def _resized(_: HistoryFormatter, event: ev.JobResized) -> list[str]:
    return ["Resize notification accepted;" if event.ok else f"Resize notification rejected: {event.why or 'it failed'};"]


# --- tasks of roles
@tells(ev.TaskStarted)
def _task_started(_: HistoryFormatter, event: ev.TaskStarted) -> list[str]:
    again = f", start {event.number}" if event.number > 1 else ""
    return [f"Task {event.name or event.rank} started (Pid {event.pid}){again};"]


@tells(ev.TaskEnded)
def _task_ended(_: HistoryFormatter, event: ev.TaskEnded) -> list[str]:
    code = os.waitstatus_to_exitcode(event.status)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}" if code else "ended well"
    limit = f" ({jobfacts.term_text(event.limit)})" if event.limit is not TermReason.NONE else ""
    return [f"Task {event.name or event.rank} {how}{limit};"]


@tells(ev.TaskRetried)
def _task_retried(_: HistoryFormatter, event: ev.TaskRetried) -> list[str]:
    when = f" in {event.delay:g} seconds" if event.delay else ""
    return [f"Restarting{when}: {event.why};"]


@tells(ev.ActionPostponed)
def _action_postponed(_: HistoryFormatter, event: ev.ActionPostponed) -> list[str]:
    return [f"{event.action} follows in {event.delay:g} seconds: {event.why};"]


@tells(ev.TasksRecalled)
def _tasks_recalled(_: HistoryFormatter, event: ev.TasksRecalled) -> list[str]:
    when = f" in {event.delay:g} seconds" if event.delay else ""
    return [f"Restarting {len(event.ranks)} tasks together{when}: {event.why};"]


@tells(ev.JobJudged)
def _decided(_: HistoryFormatter, event: ev.JobJudged) -> list[str]:
    if event.again:
        return [f"Restarting the whole job: {event.again};"]
    return [f"Failed: {event.end.first_reason};"] if event.end.status and event.end.first_reason else []


# --- run limits
@tells(ev.RunLimitMoved)
def _run_limit_moved(_: HistoryFormatter, event: ev.RunLimitMoved) -> list[str]:
    if event.hard:
        return [f"Run limit is set to {event.hard / 60:.1f} minutes, as other jobs need its slots;"]
    return [f"Soft run limit is extended to {event.soft / 60:.1f} minutes;"]
