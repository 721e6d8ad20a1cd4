"""bhist's sentences: what each event of a job is called in LSF's words.

Rule: a sentence ends in ``;`` and is registered with ``@tells``. An event without one is no part of the history that users read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lavad.core import events as ev
from lavad.core.job.depend import NEVER
from lavad.core.job.job import Attempt, End, Job, Part, Placed
from lavad.core.job.spec import JobText
from lavad.core.lang.ids import index_of, show
from lavad.core.lang.states import JobState, SignalKind, TermReason
from lavad.core.site.pend_reason import text as reason_text
from lavad.lsb.write import signal_name
from lavad.queries.facts import hangs, jobfacts, paragraphs, resreqs
from lavad.queries.frame.view import View


def _said(reason: str) -> str:
    """What was said with -C."""
    return f", Reason <{reason}>" if reason else ""


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

    def sentences(self, event: ev.Event) -> list[str]:
        """The paragraphs of an event, none if users do not read of it."""
        tell = _TELLS.get(type(event))
        return tell(self, event) if tell is not None else []

    @tells(ev.JobSubmitted)
    def submitted(self, event: ev.JobSubmitted) -> list[str]:
        """Submitted from host …"""
        spec = self.view.spec(Job(key=event.key, spec=event.spec, name="", submitted=event.at))
        to = f"{',' if self.view.hpc else ''} to Queue <{spec.queue}>"
        hold = " on hold" if event.held else ""
        options = "" if self.brief else paragraphs.submission(self.view, spec, self.text, event.depend)
        return [f"Submitted from host <{spec.from_host}>{hold}{to}{options};"]

    @tells(ev.JobDispatched)
    def dispatched(self, event: ev.JobDispatched) -> list[str]:
        """Dispatched to …"""
        parts = tuple(Part(host=placed.host, slots=placed.slots) for placed in event.parts)
        self.first_host = parts[0].host if parts else ""
        self.has_started = False
        run = Attempt(number=event.attempt, uid="", dispatched=event.at, parts=parts)
        job = Job(key=self.job.key, spec=self.job.spec, name="", submitted=0.0, run=run)
        places = paragraphs.places(self.view, job)
        if self.view.hpc:
            effective = resreqs.effective(self.view, self.view.spec(self.job), job)
            index = index_of(self.job.key)
            verb = f"[{index}] dispatched" if index else "Dispatched"
            return [f"{verb} {places}, Effective RES_REQ <{effective} >;"]
        return [f"Dispatched to {places.removeprefix('on ')};"]

    @tells(ev.PartStarted)
    def started(self, event: ev.PartStarted) -> list[str]:
        """Starting and running, of the first part."""
        return self._start(event.pid, event.cwd or self.text.cwd) if event.host == self.first_host else []

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
        return self._start(end.tasks[0].pid, self.text.cwd)

    @tells(ev.PartEnded)
    def part_ended(self, event: ev.PartEnded) -> list[str]:
        """The end of a part says when it started, where nothing else did."""
        return self._short(event.end) if event.host == self.first_host else []

    @tells(ev.PartRefused)
    def refused(self, event: ev.PartRefused) -> list[str]:
        """A host did not start it."""
        return [f"Host <{event.host}> did not start the job: {event.why};"]

    @tells(ev.JobHeld, ev.ElementsHeld)
    def held(self, event: ev.JobHeld | ev.ElementsHeld) -> list[str]:
        """bstop of a pending job."""
        return [f"Suspended by the user or administrator while pending{_said(event.why)};"]

    @tells(ev.JobReleased, ev.ElementsReleased)
    def released(self, event: ev.Event) -> list[str]:
        """bresume of it."""
        return ["Pending: Waiting for scheduling after resumed by user: 1 host;"]

    @tells(ev.JobSuspended)
    def suspended(self, event: ev.JobSuspended) -> list[str]:
        """bstop of a running job, or load."""
        if event.state is JobState.SSUSP:
            return [f"Suspended: {event.why or 'by the system'};"]
        return [f"Suspended by the user or administrator{_said(event.why)};"]

    @tells(ev.JobDeadlocked)
    def deadlocked(self, event: ev.JobDeadlocked) -> list[str]:
        """GANG=N: it and others wait for each other."""
        others = " ".join(f"<{show(key)}>" for key in event.others)
        return [f"Deadlock: it holds job slots that jobs {others} wait for, and waits for theirs;"]

    @tells(ev.JobResumed, ev.JobFound)
    def running(self, event: ev.Event) -> list[str]:
        """It goes on."""
        return ["Running;"]

    @tells(ev.JobLost)
    def lost(self, event: ev.JobLost) -> list[str]:
        """Its host is silent."""
        return ["Unknown; unable to reach the execution host;"]

    @tells(ev.SignalRequested)
    def signal_requested(self, event: ev.SignalRequested) -> list[str]:
        """Something was asked of it."""
        pending = event.pending
        by = f"by user or administrator <{pending.by}>{_said(pending.said)};"
        if pending.kind is SignalKind.MIGRATE:
            return [f"Migration requested {by}"]
        if pending.kind is SignalKind.CHECKPOINT:
            return [f"Checkpoint requested {by}"]
        return [f"Signal <{signal_name(pending)}> requested {by}"] if pending.by else []

    @tells(ev.CheckpointMade)
    def checkpointed(self, event: ev.CheckpointMade) -> list[str]:
        """A checkpoint is on disk."""
        return [f"Checkpoint succeeded (generation {event.generation});"]

    @tells(ev.RanksSuspected)
    def suspected(self, event: ev.RanksSuspected) -> list[str]:
        """Ranks that seem to hang."""
        if not event.suspects:
            return ["No rank seems to hang any more;"]
        return [f"{hangs.words(suspect, event.at)};" for suspect in event.suspects]

    @tells(ev.JobSwitched)
    def switched(self, event: ev.JobSwitched) -> list[str]:
        """bswitch."""
        return [f"Switched to Queue <{event.queue}> by user or administrator <{event.by}>;"]

    @tells(ev.JobMoved)
    def moved(self, event: ev.JobMoved) -> list[str]:
        """btop, bbot."""
        end = "top" if event.top else "bottom"
        return [f"Job moved to position {event.place} relative to <{end}> by user or administrator <{event.by}>;"]

    @tells(ev.JobModified)
    def modified(self, event: ev.JobModified) -> list[str]:
        """bmod; its lines are not wrapped."""
        changes = "".join(f"\n\t\t\t {change.rstrip(';')};" for change in event.changes)
        return [f"Parameters of the job are changed:{changes}"]

    @tells(ev.JobRevived)
    def revived(self, event: ev.JobRevived) -> list[str]:
        """brequeue of a finished job."""
        return [f"Job has been requeued by user or administrator <{event.by}>;"]

    @tells(ev.DependencyJudged)
    def judged(self, event: ev.DependencyJudged) -> list[str]:
        """Its condition can never be met (LSF says nothing of one that is)."""
        return ["Pending: Dependency condition invalid or never satisfied: 1 host;"] if event.stands == NEVER else []

    @tells(ev.MessagePosted)
    def posted(self, event: ev.MessagePosted) -> list[str]:
        """bpost."""
        return [f"Message <{event.message.number}> posted by <{event.message.by}>: <{event.message.text}>;"]

    @tells(ev.TaskStarted)
    def task_started(self, event: ev.TaskStarted) -> list[str]:
        """A task of a role runs that was started late, or again."""
        again = f", start {event.number}" if event.number > 1 else ""
        return [f"Task {event.name or event.rank} started (Pid {event.pid}){again};"]

    @tells(ev.TaskEnded)
    def task_ended(self, event: ev.TaskEnded) -> list[str]:
        """A task of a role ended."""
        code = os.waitstatus_to_exitcode(event.status)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}" if code else "ended well"
        limit = f" ({jobfacts.term_text(event.limit)})" if event.limit is not TermReason.NONE else ""
        return [f"Task {event.name or event.rank} {how}{limit};"]

    @tells(ev.TaskRetried)
    def task_retried(self, event: ev.TaskRetried) -> list[str]:
        """It is to start again."""
        when = f" in {event.delay:g} seconds" if event.delay else ""
        return [f"Restarting{when}: {event.why};"]

    @tells(ev.JobJudged)
    def decided(self, event: ev.JobJudged) -> list[str]:
        """The tasks' ends have decided the job."""
        if event.again:
            return [f"Restarting the whole job: {event.again};"]
        return [f"Failed: {event.end.first_reason};"] if event.end.status and event.end.first_reason else []

    @tells(ev.SlotsReserved)
    def reserved(self, event: ev.SlotsReserved) -> list[str]:
        """Slots are held for it."""
        total = sum(part.slots for part in event.parts)
        hosts = " ".join(f"<{part.slots}*{part.host}>" for part in event.parts)
        return [f"Reserved <{total}> job slot{'s' if total > 1 else ''} on host(s) {hosts};"]

    @tells(ev.SlotsReleased)
    def released_slots(self, event: ev.SlotsReleased) -> list[str]:
        """They are held no more."""
        return [f"Released reserved job slots{': ' + event.why if event.why else ''};"]

    @tells(ev.JobRequeued)
    def requeued(self, event: ev.JobRequeued) -> list[str]:
        """It waits again."""
        words = event.why.rstrip(".;") or reason_text(event.reason, self.view.cluster.conf)
        lines = self._short(event.end)
        if event.end is not None:
            lines += _verdict(event.end.status, (event.end.utime + event.end.stime) * self.factor)
        count = "" if words.endswith(")") else ": 1 host"
        return [*lines, f"Pending: {words or 'Requeued job is waiting for rescheduling'}{count};"]

    @tells(ev.ElementsKilled)
    def killed(self, event: ev.ElementsKilled) -> list[str]:
        """An element that never ran."""
        return [*_kill(event.by), "Exited;"]

    @tells(ev.JobFinished)
    def finished(self, event: ev.JobFinished) -> list[str]:
        """How it ended."""
        if self.job.outcome is None:
            return []
        lines = _kill(event.by) if self.job.run is None else self._short(event.end)
        lines += paragraphs.ended(self.job, ";", self.factor)
        if event.post:
            lines.append("Post job process failed;")
        elif self.job.state is JobState.DONE:
            lines.append("Post job process done successfully;")
        return lines


def _kill(by: str) -> list[str]:
    return [f"Signal <KILL> requested by user or administrator <{by}>;"] if by else []


def _verdict(status: int, seconds: float) -> list[str]:
    used = f"The CPU time used is {seconds:.1f} seconds;"
    if status & 0x7F:
        return [f"Exited by signal {status & 0x7F}. {used}"]
    return [f"Exited with exit code {status >> 8 & 0xFF}. {used}"]


@tells(ev.JobGrew)
def _grew(_: HistoryFormatter, event: ev.JobGrew) -> list[str]:
    """Hosts or slots were added."""
    return [f"Additional allocation on {_places(event.parts)};"]


@tells(ev.JobShrank)
def _shrank(_: HistoryFormatter, event: ev.JobShrank) -> list[str]:
    """Hosts or slots are given back."""
    why = f" by user or administrator <{event.by}>" if event.by else f": {event.why}" if event.why else ""
    return [f"Release allocation on {_places(event.parts)}{why};"]


@tells(ev.JobResized)
def _resized(_: HistoryFormatter, event: ev.JobResized) -> list[str]:
    """It is done, or was refused by its command."""
    return ["Resize notification accepted;" if event.ok else f"Resize notification rejected: {event.why or 'it failed'};"]


@tells(ev.PartLeft)
def _left(_: HistoryFormatter, event: ev.PartLeft) -> list[str]:
    """A host is no longer the job's."""
    why = f": {event.why}" if event.why else ""
    return [f"Host <{event.host}> has left the job{why};"]


@tells(ev.ResizeAsked)
def _asked(_: HistoryFormatter, event: ev.ResizeAsked) -> list[str]:
    """bresize request or cancel."""
    if not event.most:
        return [f"Resize request cancelled by user or administrator <{event.by}>;"]
    return [f"Resize request for up to {event.most} slots by user or administrator <{event.by}>;"]


def _places(parts: Sequence[Placed]) -> str:
    count = sum(placed.slots for placed in parts)
    named = " ".join(f"<{placed.slots}*{placed.host}>" if placed.slots > 1 else f"<{placed.host}>" for placed in parts)
    return f"{count} Hosts/Processors {named}"
