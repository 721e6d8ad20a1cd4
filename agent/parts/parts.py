"""The parts of this host: handles the starter's reports about them, and the master's orders to start, end and forget them.

Rule: decisions are made in ``agent.core`` and carried out in ``control``; the end of a part is handled in ``completion``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from agent.checkpoint import app
from agent.core import checkpoint, decide
from agent.core.part import Part, Stage
from agent.launch import mpi, outputs
from agent.launch.site import Site
from agent.parts import prepost
from agent.parts import report_messages as messages
from agent.parts.completion import Completion
from agent.parts.control import PartControl, now
from agent.parts.entry import Entry, Writing
from agent.parts.gpu_ends import GpuEnds, Later
from agent.parts.host_monitor import HostMonitor
from agent.parts.job_report import is_own, owner_of
from agent.parts.own_parts import OwnParts
from agent.parts.prepost import PrePost
from agent.parts.resizing import Resizing
from agent.parts.spool import Spool
from agent.parts.table import PartTable, Reporter
from agent.starter.protocol import reports
from agent.starter.protocol.answers import Folders, Generations
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
    RanOutOfMemory,
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


class PartWork(NamedTuple):
    """Who carries out what is decided about parts."""

    completion: Completion
    control: PartControl
    resizing: Resizing
    gpu_ends: GpuEnds
    prepost: PrePost


class Parts:
    """Keeps the attempts of ``table`` up to date with what starter and master say."""

    def __init__(
        self,
        site: Site,
        table: PartTable,
        reporter: Reporter,
        starter: Outgoing,
        spool: Spool,
        monitor: HostMonitor,
        work: PartWork,
    ) -> None:
        self._host = site.host
        self._site = site
        self._table = table
        self._reporter = reporter
        self._starter = starter
        self._spool = spool
        self._monitor = monitor
        self._completion, self._control, self._resizing, self._gpu_ends, self._prepost = work
        self._own = OwnParts(table, starter, self._completion, self._control, self._resizing, self._prepost)
        self._own.report, self._own.ended = self._take, self._ended
        self._greeted_before = False

    # -- the starter -------------------------------------------------------------------------------------------------

    def starter_connected(self, hello: Hello, waiting: set[str]) -> None:
        """A starter has connected: update the parts from its list. ``waiting``: uids of parts still to be sent to it."""
        listed = {status.uid: status for status in hello.parts}
        for entry in self._table:
            # what was asked on another connection is not answered on this one
            entry.work.looked, entry.work.searched = 0.0, False
        self._prepost.listed(listed, waiting)
        for uid, status in listed.items():
            try:
                if not is_own(uid):
                    self._reconcile(uid, status)
            except Exception:
                self._not_understood(uid, "the list")
        self._drop_missing(listed, waiting)
        self._own.settle(listed)
        self._greeted_before = True

    def _drop_missing(self, listed: Mapping[str, PartStatus], waiting: set[str]) -> None:
        """Parts that the starter does not know, and which are not on their way to it, are over."""
        for entry in self._table:
            if prepost.waits(entry):
                continue
            if entry.uid not in listed and not self._greeted_before:
                # From before a restart of the agent, and over: it is missing in Hello, which tells the master.
                self._table.remove(entry)
                self._spool.forget(entry.uid)
            elif entry.uid not in listed and not entry.reported and entry.uid not in waiting:
                self._take(Refused(entry.uid, "starter", f"the starter of {self._host} was restarted"))

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
            entry.report_written(status.wrote)
        elif entry.writing is Writing.ORDERED:
            entry.writing = Writing.NOT_BEGUN  # ordered from another starter, which may not have done it
        entry.ran_out_of_memory |= status.oom
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
            entry.post = status.post
            self._take(Ended(entry.uid, status.end, entry.over or status.state is PartState.GONE))
        elif status.state is PartState.PREPARED:
            self._prepared(entry, status.addr, status.door)
        elif status.state is PartState.REFUSED:
            self._take(Refused(entry.uid, str(status.code), str(status.reason)))
        elif status.state.over:
            self._take(Lost(entry.uid, status.reason or "its shepherd was lost"))

    def reported(self, found: list[PartReport]) -> None:
        """Handle reports of the starter."""
        for report in found:
            try:
                if is_own(report.uid):
                    self._own.reported(report)
                else:
                    self._take(report)
            except Exception:
                self._not_understood(owner_of(report.uid), type(report).__name__)

    def _take(self, report: PartReport) -> None:
        """A report about a job's part: handle it, unless something else has to be done first."""
        entry = self._table.find(report.uid)
        if entry is None:
            return
        left = report if entry.prepost is None else self._prepost.take(entry, report)
        if left is not None and not self._gpu_ends.take(entry, left):
            self._reported(entry, left)

    def looked_at(self, found: list[Later]) -> None:
        """Handle the ends of parts whose GPUs were looked at."""
        for entry, report in found:
            try:
                self._reported(entry, report)
            except Exception:
                self._not_understood(report.uid, type(report).__name__)

    def _not_understood(self, uid: str, what: str) -> None:
        """What is wrong with one report must keep no other from the master; its part is ended, as nothing is known of it."""
        log.exception("attempt %s: %s of the starter could not be handled", uid, what)
        entry = self._table.find(uid)
        if entry is not None and entry.end is not None:
            try:
                messages.ended(entry, "")
            except (ValueError, OverflowError):  # its end itself cannot be told
                entry.end, entry.reported = None, False
        if entry is not None and not entry.reported:
            self._control.kill(entry)
            self._lost(entry, f"host {self._host} could not handle what its starter said about it")

    def look_for_checkpoints(self) -> None:
        """Look for checkpoints of parts that run, and for those whose end waits for its newest one no longer."""
        self._control.look_for_checkpoints()
        for entry in self._table:
            self._waited(entry)

    def found_checkpoints(self, found: Folders | Generations) -> None:
        """The result of a search in a part's folder."""
        self._control.found_checkpoints(found)
        if (entry := self._table.find(app.uid_of(found.id))) is not None:
            self._waited(entry)

    def _waited(self, entry: Entry) -> None:
        """If its end waits for a look into its folder, or the copy of a checkpoint: whether it still does."""
        if entry.reported:
            return
        waits = bool(entry.work.ended) or entry.work.copied is not None
        if entry.lost:
            self._tell_lost(entry)
        elif entry.end is not None and waits and not entry.work.copying and entry.writing is Writing.NOT_BEGUN:
            try:
                self._ended(entry, entry.end)
            except Exception:
                self._not_understood(entry.uid, Ended.__name__)

    def _reported(self, entry: Entry, report: PartReport) -> None:
        match report:
            case Prepared(_, addr, attach):
                self._prepared(entry, addr, attach)
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
                    self._control.apply_checkpoint(entry, *checkpoint.signal_ignored(entry.checkpoint))
            case RanOutOfMemory():
                entry.ran_out_of_memory = True
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

    def _prepared(self, entry: Entry, address: Address | None, attach_address: str) -> None:
        entry.endpoint, entry.attach_address = mpi.endpoint(address), attach_address
        if entry.part.stage < Stage.PREPARED:
            entry.part = msgspec.structs.replace(entry.part, stage=Stage.PREPARED)
        self._reporter.put(messages.prepared(entry), entry)

    def _started(self, entry: Entry, report: Started) -> None:
        entry.started(report.tasks, report.at, report.shepherd)
        ago = max(0.0, time.time() - entry.started_at)
        entry.part = decide.started(entry.part, now() - ago)
        if not entry.orphan:
            self._spool.keep(entry.part)
        entry.begin_checkpoints(now(), self._site)
        if entry.part.waiting:
            self._control.apply(entry, *decide.asked_before(entry.part, now()))
        self._control.set_timer(entry)

    def _ended(self, entry: Entry, end: End) -> None:
        if entry.end is None:
            entry.begin_checkpoints(now(), self._site)  # that it runs is not told of one that ends at once
            if (status := decide.status_of_end(entry.part, end.status)) != end.status:
                end = end._replace(status=status)
            entry.end = end
            entry.use = messages.use_of(end, self._monitor.final(entry))
            entry.limit = decide.limit_of_end(entry.part, end.status, entry.use.cpu, entry.use.max_mem, entry.ran_out_of_memory)
            entry.part = decide.ended(entry.part)
        if entry.reported or entry.lost or (entry.part.rules.after and not entry.over):
            return
        if self._control.waits_for_checkpoint(entry):
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
        if entry.reported or entry.lost:
            return
        if entry.part.stage < Stage.GONE:
            entry.begin_checkpoints(now(), self._site)
        entry.lost, entry.over = reason, True
        self._resizing.over(entry)
        entry.part = decide.gone(entry.part)
        entry.use = messages.use_seen(self._monitor.final(entry))
        log.warning("job %s: %s", outputs.show(entry.key), reason)
        self._tell_lost(entry)

    def _tell_lost(self, entry: Entry) -> None:
        if not self._control.waits_for_checkpoint(entry):
            self._completion.tell(entry)

    def _refuse(self, entry: Entry, code: str, why: str) -> None:
        why = " ".join(why.split())
        log.info("job %s is refused: %s: %s", outputs.show(entry.key), code, why)
        self._reporter.put(messages.refused(entry, code, why), entry)
        entry.reported = entry.acked = entry.over = True
        self._completion.forget_if_done(entry)

    # -- orders of the master ----------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Add a part that is about to start, and end an older attempt of the job."""
        other = self._table.find_newest(entry.key)
        if other is not None and other.part.attempt < entry.part.attempt and not other.over:
            log.warning("job %s: attempt %d is stale, it is ended", outputs.show(entry.key), other.part.attempt)
            other.dropped = "another attempt of the job is here"
            self._control.kill(other)
        self._table.add_newest(entry)

    def acked(self, uids: list[str]) -> None:
        """The master has committed the ends of these parts: forget those that are over."""
        for uid in uids:
            entry = self._table.find(uid)
            if entry is None:
                self._starter.forget(uid)
            else:
                entry.acked = True
                self._completion.forget_if_done(entry)

    def new_stream(self) -> None:
        """On a new stream, send again every report that the master has not acknowledged, all ends included."""
        waiting = self._reporter.new_stream()
        for entry in self._table:
            if entry.reported and not (entry.acked or entry.orphan) and entry.uid not in waiting:
                self._completion.say(entry)

    def report_stage_again(self, entry: Entry) -> None:
        """Report the current stage again, after a repeated start order."""
        if report := messages.again(entry):
            self._reporter.put(report, entry)

    def end(self, entry: Entry) -> None:
        """The master orders to end a part, or asks again whether it is gone."""
        if entry.over and entry.reported:
            self._reporter.put(messages.gone(entry), entry)
        else:
            entry.dropped = messages.ENDED
            self._control.kill(entry)

    def forget_acks(self) -> None:
        """The master's store was restored from a backup, which does not have what was acknowledged since."""
        for entry in self._table:
            entry.acked = False

    def end_all(self) -> None:
        """The master has another store: end all parts without reports."""
        self._reporter.clear()
        for entry in self._table:
            entry.orphan = True
            self._control.kill(entry)
            self._completion.forget_if_done(entry)
