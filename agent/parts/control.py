"""Carries out what ``agent.core`` decides about parts: requests of the master, limits, kill sequences and checkpoints."""

from __future__ import annotations

import heapq
import logging
import os
import signal
import time

from agent.checkpoint import app
from agent.checkpoint import site as site_method
from agent.core import checkpoint, decide
from agent.core import effects as eff
from agent.core.part import Part, Request, RequestKind, Stage
from agent.launch import outputs
from agent.launch.site import Site
from agent.launch.timeleft import TimeLeft
from agent.parts import prepost
from agent.parts import report_messages as messages
from agent.parts.completion import Completion
from agent.parts.entry import Entry
from agent.parts.folder_looks import FolderLooks
from agent.parts.host_monitor import HostMonitor
from agent.parts.job_report import CHECKPOINT, STAGED, owner_of
from agent.parts.spool import Spool
from agent.parts.staging import Stager
from agent.parts.table import PartTable, Reporter
from agent.starter.protocol import answers, orders
from agent.starter.protocol.reports import End
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb

log = logging.getLogger("lava-agent")

SPARE_WAKES = 1000
"""Times of parts that are over which may be kept."""


def now() -> float:
    """CLOCK_BOOTTIME in seconds, the clock of leases and limits: it counts while the machine sleeps, and nobody can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class PartControl:
    """Controls the parts of ``table`` through the starter, and reports to the master what was done."""

    def __init__(
        self,
        site: Site,
        table: PartTable,
        reporter: Reporter,
        starter: Outgoing,
        spool: Spool,
        monitor: HostMonitor,
        completion: Completion,
        time_left: TimeLeft,
    ) -> None:
        self._site = site
        self._table = table
        self._reporter = reporter
        self._starter = starter
        self._spool = spool
        self._monitor = monitor
        self._completion = completion
        self._time_left = time_left
        self._looks = FolderLooks(starter)
        self.staging = Stager(site, table, reporter, starter, self._looks)
        self._wakes: list[tuple[float, str]] = []
        """A heap of (CLOCK_BOOTTIME, uid): when ``decide.tick`` is due for a part."""

    def asked(self, entry: Entry, asked: pb.Signal) -> None:
        """The master asks for a signal, an end, a checkpoint."""
        if asked.unless_begun:
            answer = pb.Granted(number=asked.number, ok=False, why="it has begun")
            self._reporter.put(messages.about(entry, granted=answer), entry)
            return
        kind = RequestKind.named(asked.kind)
        request = Request(asked.number, kind, asked.signal, asked.reason, asked.kill_after, now(), asked.notice)
        if asked.HasField("period"):
            entry.set_checkpoint_period(asked.period, now())
        log.info("job %s: %s asked (%d)", outputs.show(entry.key), asked.kind, asked.number)
        self.apply(entry, *decide.asked(entry.part, request, now()))
        if kind is RequestKind.KILL:
            self.killed(entry, asked.reason)

    def stop(self, entry: Entry, stopped: bool) -> None:
        """Suspend or resume a part."""
        was = entry.part.stopped
        self.apply(entry, *decide.stop(entry.part, stopped, now()))
        if stopped and not was:
            self._completion.suspended(entry)

    def apply(self, entry: Entry, part: Part, effects: list[eff.Effect]) -> None:
        """Store what was decided about a part, and carry out the effects."""
        if part is entry.part and not effects:
            return
        limit, entry.part = entry.part.limit, part
        if part.limit != limit and (note := entry.note(self._monitor.peaks(entry.uid))) is not None:
            self._starter.put(note)  # before what ends it, or its shepherd would tell of that end without it
        for effect in effects:
            if isinstance(effect, eff.Send):
                self._starter.put(messages.signal(effect))
            elif isinstance(effect, eff.KillAll):
                self._starter.put(orders.Kill(prepost.to_kill(entry), posts=not prepost.runs_again(entry, self._site)))
            elif isinstance(effect, eff.Answer):
                if not effect.ok:
                    entry.part = decide.given_up(entry.part, effect.request)
                    self._spool.keep(entry.part)
                answer = pb.Granted(number=effect.request, ok=effect.ok, why=effect.why)
                self._reporter.put(messages.about(entry, granted=answer), entry)
            elif isinstance(effect, eff.ReportStopped):
                self._reporter.put(messages.about(entry, stopped=pb.Stopped(stopped=effect.stopped)), entry)
            elif isinstance(effect, eff.AskCheckpoint | eff.MakeCheckpoint | eff.ReportCheckpoint):
                self._apply_to_checkpoints(entry, effect)
            elif isinstance(effect, eff.Run):
                self._completion.run(entry, effect.command)
            elif isinstance(effect, eff.Save):
                self._spool.keep(entry.part)
        self.set_timer(entry)

    def _apply_to_checkpoints(self, entry: Entry, effect: eff.AskCheckpoint | eff.MakeCheckpoint | eff.ReportCheckpoint) -> None:
        state = entry.checkpoint
        if state is None:
            return
        match effect:
            case eff.AskCheckpoint(_, request, kill_after, within):
                self.apply_checkpoint(entry, *checkpoint.ask(now(), state, request, kill_after, within))
            case eff.MakeCheckpoint(_, kill):
                self._make_checkpoint(entry, kill)
            case eff.ReportCheckpoint(_, generation, seconds, size, why, newest):
                said = pb.Checkpointed(
                    generation=generation, seconds=seconds, size=size, why=why, method=state.method, newest=newest
                )
                self._reporter.put(messages.about(entry, checkpointed=said), entry)

    def apply_checkpoint(self, entry: Entry, state: checkpoint.Checkpoints, effects: list[eff.Effect]) -> None:
        """Store what was decided about a part's checkpoints, and carry out the effects."""
        entry.checkpoint = state
        if effects:
            self.apply(entry, entry.part, effects)

    def look_for_checkpoints(self) -> None:
        """Ask for the checkpoints that are due, and have each checkpoint folder searched unless a search is still running."""
        for entry in self._table:
            self.staging.look(entry, now())
            if entry.checkpoint is None or entry.part.stage is not Stage.RUNNING or entry.made is None:
                continue
            self.apply_checkpoint(entry, *checkpoint.tick(now(), entry.checkpoint))
            self._looks.periodic(entry, now())

    def found_checkpoints(self, found: answers.Folders | answers.Generations) -> None:
        """The result of a search: the checkpoints in a part's folder, of an older starter without a look into them."""
        entry = self._table.find(app.uid_of(found.id))
        if entry is None:
            return
        entry.work.looked = 0.0
        if entry.checkpoint is None or entry.reported or found.error:
            return
        if isinstance(found, answers.Folders):
            newest, first = app.newest(found.names), not entry.checkpoint.listed
            if first:
                self._learnt(entry, checkpoint.listed(entry.checkpoint, newest))
            if not first or entry.work.searched:  # nothing better comes after an end
                self._learnt(entry, checkpoint.found(now(), entry.checkpoint, newest))
            return
        for generation, size in found.whole:
            self._learnt(entry, checkpoint.found(now(), entry.checkpoint, generation, size))
        for generation, why in found.damaged:
            self._learnt(entry, checkpoint.damaged(now(), entry.checkpoint, generation, why))

    def _learnt(self, entry: Entry, decided: checkpoint.Decided) -> None:
        self.apply_checkpoint(entry, *(checkpoint.after_end(decided) if entry.part.stage >= Stage.ENDED else decided))

    def _make_checkpoint(self, entry: Entry, kill: bool) -> None:
        """Start the site's program beside the job, under the job's lease."""
        if entry.made is None or entry.checkpoint is None or entry.end is not None:
            return
        if entry.order.start.lease and entry.work.deadline is None:
            self.apply_checkpoint(entry, *checkpoint.not_made(now(), entry.checkpoint, "the host does not hear its master"))
            return
        entry.work.making = f"{entry.uid}.{time.time_ns() // 1_000_000}{CHECKPOINT}"
        pids = [task.pid for task in entry.tasks]
        made, folder = entry.made, entry.folder()
        part = site_method.part(entry.work.making, entry.order, made, self._site, folder, pids, kill, entry.work.deadline)
        self._starter.start(0, made.template, part)

    def checkpoint_here(self, uid: str, end: End | None, reason: str | None) -> None:
        """The starter has a part that writes or copies a checkpoint; it has ended (``end``, or ``reason``), or runs (None)."""
        if uid.endswith(STAGED):
            self.staging.here(uid, end, reason, now())
            return
        entry = self._table.find(owner_of(uid))
        if entry is not None and entry.checkpoint is not None:
            entry.work.making = uid
            entry.checkpoint = checkpoint.under_way(entry.checkpoint, now())
        if end is not None or reason is not None:
            self.checkpoint_made(uid, end, reason or "")

    def checkpoint_made(self, uid: str, end: End | None, reason: str) -> None:
        """The part that wrote or copied a checkpoint has ended."""
        if uid.endswith(STAGED):
            self.staging.ended(uid, end, reason, now())
            return
        self._starter.put(orders.Forget((uid,)))
        entry = self._table.find(owner_of(uid))
        if entry is None or entry.checkpoint is None or entry.work.making != uid:
            return
        entry.work.making = ""
        generation, size, why = site_method.outcome(end, reason)
        if why:
            if (end is None or os.WIFSIGNALED(end.status)) and not entry.part.stopped:
                # what wrote it may have been killed while the job's processes stood still for it
                self._starter.put(messages.signal(eff.Send(entry.uid, signal.SIGCONT)))
            self.apply_checkpoint(entry, *checkpoint.not_made(now(), entry.checkpoint, why))
        else:
            self.apply_checkpoint(entry, *checkpoint.found(now(), entry.checkpoint, generation, size))

    def waits_for_checkpoint(self, entry: Entry) -> bool:
        """A part has ended: whether a checkpoint that is to end it is still being written, looked for, or copied.

        Others are given up. One that was lost is looked for alone: what wrote or copied one goes on without the part.
        """
        if entry.lost:
            return self._looks.waits(entry, now())
        if entry.work.making and entry.checkpoint is not None:
            if checkpoint.waits_for_it(entry.checkpoint):
                return True
            self._starter.put(orders.Kill((entry.work.making,)))
        return self._looks.waits(entry, now()) if entry.work.copied is None else self.staging.waits(entry, now())

    def killed(self, entry: Entry, reason: str) -> None:
        """The job is to be killed: a part of it that has ended already waits for less."""
        if entry.part.stage >= Stage.ENDED:
            self._looks.killed(entry, reason)
            self.staging.killed(entry, reason, now())

    def sampled(self, usage: dict[str, pb.Usage]) -> None:
        """New usage samples, by uid: end parts that exceed a limit."""
        for uid, use in usage.items():
            if entry := self._table.find(uid):
                # PSS, where it was measured, counts shared pages only once.
                mem = min(use.rss, use.pss or use.rss)
                self.apply(entry, *decide.used(entry.part, now(), use.cpu, mem, use.swap, len(use.pids), use.threads))
                for order in entry.after_sample(use, self._monitor.peaks(uid)):
                    self._starter.put(order)

    def wrote_too_much(self, over: dict[str, str]) -> None:
        """End the attempts ``over``, by uid, each with the name of the TermReason."""
        for uid, limit in over.items():
            if entry := self._table.find(uid):
                self.apply(entry, *decide.wrote_too_much(entry.part, now(), limit))

    def next_wake(self) -> float | None:
        """Seconds until ``on_time`` has something to do, None: nothing."""
        return max(0.0, self._wakes[0][0] - now()) if self._wakes else None

    def on_time(self) -> None:
        """Do what is due: limits and steps of kill sequences."""
        at = now()
        while self._wakes and self._wakes[0][0] <= at:
            _, uid = heapq.heappop(self._wakes)
            if entry := self._table.find(uid):
                entry.wake = 0.0
                self.apply(entry, *decide.tick(entry.part, at))
                self.set_timer(entry)

    def set_timer(self, entry: Entry) -> None:
        """Wake up for the part when ``decide`` needs it; tell the part when it must end, where that has changed."""
        if entry.part.stage is Stage.RUNNING:
            self._time_left.tell(entry.uid, decide.ends_at(entry.part, now()))
        at = decide.wake_at(entry.part)
        if at is not None and at != entry.wake:
            entry.wake = at
            heapq.heappush(self._wakes, (at, entry.uid))
            if len(self._wakes) > SPARE_WAKES + 2 * len(self._table):
                self._drop_old_wakes()

    def _drop_old_wakes(self) -> None:
        """A run limit of days would keep the time of each job that ended long before it."""
        kept = [(at, uid) for at, uid in self._wakes if (entry := self._table.find(uid)) is not None and entry.wake == at]
        self._wakes = kept
        heapq.heapify(self._wakes)

    def kill(self, entry: Entry) -> None:
        """SIGKILL all processes of a part."""
        self._starter.put(orders.Kill(prepost.to_kill(entry)))
        self.staging.give_up(entry, now())
