"""Copies of checkpoint generations (``bsub -k "DIR stage"``) in the shared folder or on a host, made by parts of the agent's own.

Rule: the job waits for none of them. An end after which the job may start elsewhere is told when its newest generation is there.
"""

from __future__ import annotations

import signal
import time

from agent.checkpoint import site as site_method
from agent.core import staging
from agent.core.effects import Effect, ReportStaged, Send, StageGeneration
from agent.launch import checkpoints
from agent.launch.site import Site
from agent.parts import report_messages as messages
from agent.parts.entry import CheckpointWork, Entry
from agent.parts.folder_looks import FolderLooks
from agent.parts.job_report import STAGED, owner_of
from agent.parts.table import PartTable, Reporter
from agent.starter.protocol import orders
from agent.starter.protocol.reports import End
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb

REMOVAL = 10.0
"""Seconds that a copy which is given up has to remove what it has written."""


class Stager:
    """Carries out what ``agent.core.staging`` decides. Times are CLOCK_BOOTTIME."""

    def __init__(self, site: Site, table: PartTable, reporter: Reporter, starter: Outgoing, looks: FolderLooks) -> None:
        self._looks = looks
        self._site = site
        self._table = table
        self._reporter = reporter
        self._starter = starter

    def look(self, entry: Entry, now: float) -> None:
        """Begin a copy where one is due; give up one that an ended part has waited for too long, or that is not of its newest."""
        if entry.work.copied is None:
            return
        if entry.end is None and _may_write(entry):
            self._apply(entry, *staging.look(now, entry.work.copied, _known(entry)))
        elif entry.work.copying and _is_over(entry.work, now, checkpoints.timeout(self._site)):
            self.give_up(entry, now)
        elif entry.work.copying and not entry.work.ending and staging.is_given_up(entry.work.copied, _known(entry)):
            self.give_up(entry, now)  # of an older one: the end waits for the newest

    def here(self, uid: str, end: End | None, reason: str | None, now: float) -> None:
        """The starter has a part that copies; it has ended (``end``, or ``reason``), or still runs (None)."""
        entry = self._table.find(owner_of(uid))
        if entry is not None and entry.work.copied is not None:
            entry.work.copying = uid
            entry.work.copied = staging.found(now, entry.work.copied, int(uid.removesuffix(STAGED).rpartition(".")[2]))
        if end is not None or reason is not None:
            self.ended(uid, end, reason or "", now)

    def ended(self, uid: str, end: End | None, reason: str, now: float) -> None:
        """A part that copied has ended."""
        self._starter.put(orders.Forget((uid,)))
        entry = self._table.find(owner_of(uid))
        if entry is None or entry.work.copied is None or entry.work.copying != uid:
            return
        entry.work.copying, entry.work.ending = "", 0.0
        _, size, why = site_method.outcome(end, reason, "copy")
        by_host = site_method.is_holders_fault(end)
        self._apply(entry, *staging.done(now, entry.work.copied, size, why, by_host, _known(entry)))

    def ordered(self, entry: Entry, order: pb.Order, now: float) -> None:
        """The master names the host to which copies go from now on, or the generation that all hosts of the job copy."""
        if order.HasField("copy_to"):
            self._to_host(entry, order.copy_to)
        else:
            self._named(entry, order.copy_generation, now)

    def _to_host(self, entry: Entry, holder: pb.Holder) -> None:
        entry.work.holder = holder
        if entry.work.copied is not None:
            entry.work.copied = staging.to_host(entry.work.copied, holder.host)

    def _named(self, entry: Entry, generation: int, now: float) -> None:
        work = entry.work
        work.wanted = generation
        if work.copied is not None:
            work.copied = staging.name(work.copied, generation)
            if work.copying and staging.is_given_up(work.copied):
                self.give_up(entry, now)

    def waits(self, entry: Entry, now: float) -> bool:
        """A part has ended: whether its end is told only when a copy is whole. A copy that nobody needs is given up."""
        work = entry.work
        if work.copied is None or entry.end is None:
            return False
        first, known = work.copied.first, _known(entry)
        if entry.dropped or entry.orphan or not staging.is_waited_for(entry.end.status, entry.part.reason, first):
            self.give_up(entry, now)
            return False
        work.copied = staging.part_ended(work.copied, now)
        within = checkpoints.timeout(self._site)
        if now >= work.copied.ended + within:
            return bool(work.copying)
        if self._looks.waits(entry, now, within):
            return True
        if _may_write(entry):
            self._apply(entry, *staging.look(now, work.copied, known))
            return bool(work.copying) or staging.awaits(now, work.copied, known)
        return bool(work.copying) or staging.is_due(now, work.copied, known) or staging.awaits(now, work.copied, known)

    def killed(self, entry: Entry, reason: str, now: float) -> None:
        """A part that has ended is to be killed: by a user, who does not wait for a copy, or as its checkpoint is made."""
        if entry.work.copied is not None and not staging.is_waited_for(signal.SIGKILL, reason):
            entry.work.copied = staging.given_up(entry.work.copied)
            self.give_up(entry, now)

    def give_up(self, entry: Entry, now: float) -> None:
        """End the copy that is under way, which removes what it has written, or is killed; its part tells when it is gone."""
        uid = entry.work.copying
        if uid and not entry.work.ending:
            entry.work.ending = now
            self._starter.put(messages.signal(Send(uid, signal.SIGTERM)))
        elif uid:
            self._starter.put(orders.Kill((uid,)))

    def _apply(self, entry: Entry, state: staging.Staging, effects: list[Effect]) -> None:
        entry.work.copied = state
        for effect in effects:
            if isinstance(effect, StageGeneration):
                self._begin(entry, effect.generation)
            elif isinstance(effect, ReportStaged):
                said = pb.Checkpointed(
                    generation=effect.generation,
                    seconds=effect.seconds,
                    size=effect.size,
                    why=effect.why,
                    staged=True,
                    holder=effect.host,
                )
                self._reporter.put(messages.about(entry, checkpointed=said), entry)

    def _begin(self, entry: Entry, generation: int) -> None:
        made, order, deadline = entry.made, entry.order, entry.work.deadline
        if made is None:
            return
        uid = f"{entry.uid}.{time.time_ns() // 1_000_000}.{generation}{STAGED}"
        entry.work.copying = uid
        waited_for, holder = entry.end is not None or _is_ending(entry), entry.work.holder
        part = site_method.copier(uid, order, made, self._site, generation, holder, deadline, waited_for)
        self._starter.start(0, made.template, part)


def _known(entry: Entry) -> int:
    """The newest whole generation, -1: there is none, or the first host looks for them."""
    return entry.checkpoint.known if entry.checkpoint is not None else -1


def _is_ending(entry: Entry) -> bool:
    """Whether it is being ended, and writes no further checkpoint for that."""
    return bool(entry.part.reason) and (entry.checkpoint is None or not entry.checkpoint.pending)


def _is_over(work: CheckpointWork, now: float, timeout: int) -> bool:
    """Whether the time of a copy is over, which an end waits for, or which is given up."""
    if work.ending:
        return now >= work.ending + REMOVAL
    # 0.0: the end does not wait for it yet, but for the checkpoint that it comes with
    return work.copied is not None and 0.0 < work.copied.ended <= now - timeout


def _may_write(entry: Entry) -> bool:
    """Whether its lease is known, under which a copy is made: the job may be elsewhere once that is over."""
    return not entry.order.start.lease or entry.work.deadline is not None
