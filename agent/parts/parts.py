"""The parts of this host: what the starter reports of them, what is decided, and what master and starter are told.

Rule: what happens to a part is heard here and decided in ``agent.core``; how an end is made known is ``agent.parts.completion``.
"""

from __future__ import annotations

import heapq
import logging
import time

import msgspec

from agent.checkpoint import app
from agent.core import checkpoint, decide
from agent.core import effects as eff
from agent.core.part import Part, Stage
from agent.launch import mpi, outputs
from agent.launch.site import Site
from agent.parts import report_messages as messages
from agent.parts.completion import Completion
from agent.parts.entry import Entry, Writing
from agent.parts.host_monitor import HostMonitor
from agent.parts.job_report import RESIZED, is_own, owner_of
from agent.parts.resizing import Resizing
from agent.parts.spool import Spool
from agent.parts.table import PartTable, Reporter
from agent.starter.protocol import orders, reports
from agent.starter.protocol.reports import (
    Address,
    End,
    Ended,
    Gone,
    Hello,
    Lost,
    PartReport,
    PartState,
    PartStatus,
    Prepared,
    Refused,
    SignalIgnored,
    Started,
    TaskEnded,
    TaskReport,
    TaskStarted,
    Wrote,
)
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb

log = logging.getLogger("lava-agent")


LOOK_LOST = 60.0
"""Seconds after which an unanswered look into a checkpoint folder is repeated."""


def now() -> float:
    """The clock of leases and limits: it goes on while the machine sleeps, and no one can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Parts:
    """Takes reports and orders about the attempts of ``table``, and carries out what is decided."""

    def __init__(
        self,
        site: Site,
        table: PartTable,
        reporter: Reporter,
        starter: Outgoing,
        spool: Spool,
        monitor: HostMonitor,
        completion: Completion,
        resizing: Resizing,
    ) -> None:
        self._host = site.host
        self._table = table
        self._reporter = reporter
        self._starter = starter
        self._spool = spool
        self._monitor = monitor
        self._completion = completion
        self._resizing = resizing
        self._greeted_before = False
        self._wakes: list[tuple[float, str]] = []

    # -- the starter -------------------------------------------------------------------------------------------------

    def starter_up(self, hello: Hello, waiting: set[str]) -> None:
        """A starter greeted: its list of parts replaces what was known. ``waiting``: parts that are still to be sent to it."""
        listed = {status.uid: status for status in hello.parts}
        for uid, status in listed.items():
            if not is_own(uid):
                self._reconcile(uid, status)
        for entry in self._table:
            if entry.uid not in listed and not self._greeted_before:
                # From before a restart of the agent, and over: the master sees in Hello that it is not here.
                self._table.remove(entry)
                self._spool.forget(entry.uid)
            elif entry.uid not in listed and not entry.reported and entry.uid not in waiting:
                self._refuse(entry, "starter", f"the starter of {self._host} was restarted")
        for uid, status in listed.items():
            owned = owner_of(uid) in self._table
            if uid.endswith(RESIZED) and status.state.over and owned:
                self._command_ended(uid, status.end, status.reason)
            elif is_own(uid) and (status.state.over or not owned):
                self._starter.put(orders.Forget((uid,)))
        self._greeted_before = True

    def _reconcile(self, uid: str, status: PartStatus) -> None:
        entry = self._table.find(uid)
        if entry is None:
            part = Part(uid=uid, key=status.key, attempt=status.attempt)
            order = pb.Order(key=part.key, attempt=part.attempt, uid=uid)
            entry = Entry(part, order, None, outputs.OutputPaths(), time.time())
            self._table.add(entry)
        if entry.reported and entry.over:
            return
        if status.wrote is not None:
            entry.writing = Writing.FAILED if status.wrote else Writing.DONE
        elif entry.writing is Writing.ORDERED:
            entry.writing = Writing.NOT_BEGUN  # ordered from another starter, who may not have come to it
        entry.shepherd = status.pid or 0
        if status.tasks is not None and status.state is PartState.RUNNING:
            at = status.at or entry.started_at or entry.received
            self._started(entry, Started(uid, status.tasks, at, status.shepherd))
            self._reporter.put(messages.started(entry), entry)
        for news in status.news:
            self._task_report(entry, news)
        self._reconcile_end(entry, status)

    def _reconcile_end(self, entry: Entry, status: PartStatus) -> None:
        if status.end is not None:
            entry.over, entry.post = entry.over or status.state is PartState.GONE, status.post
            self._ended(entry, status.end)
        elif status.state is PartState.PREPARED:
            self._prepared(entry, status.addr, status.door)
        elif status.state is PartState.REFUSED:
            self._refuse(entry, str(status.code), str(status.reason))
        elif status.state.over:
            self._lost(entry, status.reason or "its shepherd was lost")

    def reported(self, found: list[PartReport]) -> None:
        """Reports of the starter."""
        for report in found:
            if is_own(report.uid):
                self._own_reported(report)
            elif (entry := self._table.find(report.uid)) is not None:
                self._reported(entry, report)

    def _own_reported(self, report: PartReport) -> None:
        """A report of a part that the agent added itself: a mail, or a resize command."""
        if not isinstance(report, Ended | Refused | Lost):
            return
        end = report.end if isinstance(report, Ended) else None
        reason = "" if isinstance(report, Ended) else report.reason
        if report.uid.endswith(RESIZED):
            self._command_ended(report.uid, end, reason)
        else:
            self._completion.mailed(report.uid, end is not None and end.status == 0, reason)

    def _command_ended(self, uid: str, end: End | None, reason: str | None) -> None:
        why = "" if end else reason or "its end is not known"
        self._resizing.ended(uid, end.status if end else 0, why)

    def _reported(self, entry: Entry, report: PartReport) -> None:
        match report:
            case Prepared(_, addr, door):
                self._prepared(entry, addr, door)
            case Started():
                self._started(entry, report)
                self._reporter.put(messages.started(entry), entry)
                self._completion.begun(entry)
            case Ended(_, end, gone):
                entry.over = entry.over or gone
                self._ended(entry, end)
            case Gone(_, post):
                self._gone(entry, post)
            case Refused(_, code, reason):
                self._refuse(entry, code, reason)
            case Lost(_, reason):
                self._lost(entry, reason)
            case SignalIgnored():
                if entry.checkpoint is not None:
                    self._checkpointed(entry, *checkpoint.signal_ignored(entry.checkpoint))
            case TaskStarted() | TaskEnded():
                self._task_report(entry, report)
            case Wrote(error):
                self._completion.wrote(entry, error)

    def _task_report(self, entry: Entry, report: TaskReport) -> None:
        if isinstance(report, TaskEnded):
            self._reporter.put(messages.task_ended(entry, report), entry)
            return
        entry.task_started(reports.RunningTask(report.rank, report.pid, report.starttime))
        self._reporter.put(messages.task_started(entry, report), entry)

    def stop(self, entry: Entry, stopped: bool) -> None:
        """Suspend it, or let it go on."""
        was = entry.part.stopped
        self.decided(entry, *decide.stop(entry.part, stopped, now()))
        if stopped and not was:
            self._completion.suspended(entry)

    def _prepared(self, entry: Entry, address: Address | None, door: str) -> None:
        entry.endpoint, entry.door = mpi.endpoint(address), door
        if entry.part.stage < Stage.PREPARED:
            entry.part = msgspec.structs.replace(entry.part, stage=Stage.PREPARED)
        self._reporter.put(messages.prepared(entry), entry)

    def _started(self, entry: Entry, report: Started) -> None:
        entry.started(report.tasks, report.at, report.shepherd)
        ago = max(0.0, time.time() - entry.started_at)
        entry.part = decide.started(entry.part, now() - ago)
        if not entry.orphan:
            self._spool.keep(entry.part)
        entry.begin_checkpoints(now())
        self._wake_later(entry)

    def _ended(self, entry: Entry, end: End) -> None:
        if entry.end is None:
            entry.end = end
            entry.use = messages.use_of(end, self._monitor.final(entry.uid))
            entry.limit = decide.limit_of_end(entry.part, end.status, entry.use.cpu, entry.use.max_mem)
            entry.part = decide.ended(entry.part)
        if entry.reported or (entry.part.rules.after and not entry.over):
            return
        if entry.writing is Writing.NOT_BEGUN:
            self._completion.close(entry)
        if entry.writing is not Writing.ORDERED:
            self._completion.tell(entry)

    def _gone(self, entry: Entry, post: int) -> None:
        entry.post = post
        entry.over = True
        self._resizing.over(entry)
        entry.part = decide.gone(entry.part)
        if entry.end is None and not entry.reported and not entry.orphan:
            self._lost(entry, "it was killed before it ran")
        elif entry.reported:
            self._reporter.put(messages.gone(entry), entry)
        elif entry.end is not None and entry.part.rules.after:
            self._ended(entry, entry.end)
        self._completion.forget_if_done(entry)

    def _lost(self, entry: Entry, reason: str) -> None:
        if entry.reported:
            return
        entry.lost, entry.over = reason, True
        self._resizing.over(entry)
        entry.part = decide.gone(entry.part)
        self._monitor.final(entry.uid)
        log.warning("job %s: %s", outputs.show(entry.key), reason)
        self._completion.tell(entry)

    def _refuse(self, entry: Entry, code: str, why: str) -> None:
        why = " ".join(why.split())
        log.info("job %s is refused: %s: %s", outputs.show(entry.key), code, why)
        self._reporter.put(messages.refused(entry, code, why), entry)
        entry.reported = entry.acked = entry.over = True
        self._completion.forget_if_done(entry)

    # -- asked by the master -----------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """A part that is about to start; an older attempt of the job is ended."""
        other = self._table.find_newest(entry.key)
        if other is not None and other.part.attempt < entry.part.attempt and not other.over:
            log.warning("job %s: attempt %d is stale, it is ended", outputs.show(entry.key), other.part.attempt)
            other.dropped = "another attempt of the job is here"
            self.kill(other)
        self._table.add_newest(entry)

    def acked(self, uids: list[str]) -> None:
        """The master has these ends."""
        for uid in uids:
            entry = self._table.find(uid)
            if entry is None:
                self._starter.forget(uid)
            else:
                entry.acked = True
                self._completion.forget_if_done(entry)

    def new_stream(self) -> None:
        """On a new stream, report again all that the master has not acknowledged, every end included."""
        waiting = self._reporter.new_stream()
        for entry in self._table:
            if entry.reported and not (entry.acked or entry.orphan) and entry.uid not in waiting:
                self._completion.say(entry)

    def say_again(self, entry: Entry) -> None:
        """Report the current stage again after a repeated start order."""
        if said := messages.again(entry):
            self._reporter.put(said, entry)

    def end(self, entry: Entry) -> None:
        """The master wants nothing of it left."""
        if entry.over and entry.reported:
            self._reporter.put(messages.gone(entry), entry)
        else:
            entry.dropped = "the master ended this attempt"
            self.kill(entry)

    def end_all(self) -> None:
        """The master has another store: end all that is here without a report."""
        self._reporter.clear()
        for entry in self._table:
            entry.orphan = True
            self.kill(entry)
            self._completion.forget_if_done(entry)

    # -- doing -------------------------------------------------------------------------------------------------------

    def decided(self, entry: Entry, part: Part, effects: list[eff.Effect]) -> None:
        """Take over what was decided, and do what follows."""
        if part is entry.part and not effects:
            return
        entry.part = part
        for effect in effects:
            if isinstance(effect, eff.Send):
                self._starter.put(messages.signal(effect))
            elif isinstance(effect, eff.KillAll):
                self._starter.put(orders.Kill((effect.uid,), posts=True))
            elif isinstance(effect, eff.Answer):
                answer = pb.Granted(wish=effect.request, ok=effect.ok, why=effect.why)
                self._reporter.put(messages.about(entry, granted=answer), entry)
            elif isinstance(effect, eff.ReportStopped):
                self._reporter.put(messages.about(entry, stopped=pb.Stopped(stopped=effect.stopped)), entry)
            elif isinstance(effect, eff.AskCheckpoint):
                if entry.checkpoint is not None:
                    self._checkpointed(entry, *checkpoint.ask(now(), entry.checkpoint, effect.request, effect.kill_after))
            elif isinstance(effect, eff.ReportCheckpoint):
                self._reporter.put(messages.about(entry, checkpointed=pb.Checkpointed(generation=effect.generation)), entry)
            elif isinstance(effect, eff.Run):
                self._completion.run(entry, effect.command)
            elif isinstance(effect, eff.Save):
                self._spool.keep(part)
        self._wake_later(entry)

    def _checkpointed(self, entry: Entry, state: checkpoint.Checkpoints, effects: list[eff.Effect]) -> None:
        entry.checkpoint = state
        if effects:
            self.decided(entry, entry.part, effects)

    def look_for_checkpoints(self) -> None:
        """Ask for the checkpoints that are due; look into each checkpoint folder, unless the last look is still unanswered."""
        for entry in self._table:
            if entry.checkpoint is None or entry.part.stage is not Stage.RUNNING or entry.made is None:
                continue
            self._checkpointed(entry, *checkpoint.tick(now(), entry.checkpoint))
            if entry.looked and now() < entry.looked + LOOK_LOST:
                continue
            entry.looked = now()
            self._starter.put(app.look(entry.uid, entry.made.user, entry.checkpoint_folder()))

    def looked(self, found: reports.Folders) -> None:
        """What the user's shepherd found in a folder."""
        entry = self._table.find(app.uid_of(found.id))
        if entry is None:
            return
        entry.looked = 0.0
        if entry.checkpoint is not None and entry.end is None:
            self._checkpointed(entry, *checkpoint.found(entry.checkpoint, app.newest(found.names)))

    def sampled(self, usage: dict[str, pb.Usage]) -> None:
        """Usage samples came in: whoever uses too much is ended."""
        for uid, use in usage.items():
            if entry := self._table.find(uid):
                # Shared pages count once where that was measured.
                mem = min(use.rss, use.pss or use.rss)
                self.decided(entry, *decide.used(entry.part, now(), use.cpu, mem, use.swap, len(use.pids), use.threads))
                for order in entry.after_sample(use, self._monitor.peaks(uid)):
                    self._starter.put(order)

    def next_wake(self) -> float | None:
        """Seconds until ``on_time`` has something to do."""
        return max(0.0, self._wakes[0][0] - now()) if self._wakes else None

    def on_time(self) -> None:
        """Limits and kill sequences that are due."""
        at = now()
        while self._wakes and self._wakes[0][0] <= at:
            _, uid = heapq.heappop(self._wakes)
            if entry := self._table.find(uid):
                entry.wake = 0.0
                self.decided(entry, *decide.tick(entry.part, at))
                self._wake_later(entry)

    def _wake_later(self, entry: Entry) -> None:
        at = decide.wake_at(entry.part)
        if at is not None and at != entry.wake:
            entry.wake = at
            heapq.heappush(self._wakes, (at, entry.uid))

    def kill(self, entry: Entry) -> None:
        """SIGKILL all that is left of it."""
        self._starter.put(orders.Kill((entry.uid,)))
