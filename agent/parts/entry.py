"""One attempt on this host as the runner holds it: its pure part, its order, and what the starter said."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from google.protobuf.message import DecodeError

from agent.core import checkpoint, decide
from agent.core.checkpoint import Checkpoints
from agent.core.part import Part, Stage
from agent.core.staging import Staging
from agent.launch import checkpoints, frameworks, outputs, roles
from agent.launch.build import FALLBACK_FOLDER, Compiled, jobfile
from agent.launch.outputs import OutputPaths, show
from agent.launch.report import Use
from agent.launch.site import Site
from agent.monitor.procscan import folder_of, parent_of
from agent.parts.spool import Saved
from agent.starter.protocol.orders import EndTask, Note
from agent.starter.protocol.reports import End, HostUse, PartReport, PartState, RunningTask
from proto import agent_pb2 as pb
from proto.daemon.cpu_precedence import LEAST, make_nice


class Writing(Enum):
    """How far the report of a job is on its way into the user's file."""

    NOT_BEGUN = "not begun"
    NOTHING = "nothing"
    """There is nothing to write."""
    ORDERED = "ordered"
    DONE = "done"
    FAILED = "failed"


class GpuEnd(NamedTuple):
    """What is wrong with the GPUs of a part as it ends; ``told``: which of them broke under it, as the user reads it."""

    faults: tuple[pb.GpuFault, ...] = ()
    told: str = ""


_NO_ENDPOINT, _NO_GPU_END, _NO_USE, _NOTHING_NOTED = pb.Endpoint(), GpuEnd(), Use(), HostUse()
_NOT_ENDED = pb.Kill()
log = logging.getLogger("lava-agent")


class CheckpointWork:
    """What is going on for the checkpoints of a part; mutable as its entry is. Most parts have no such thing."""

    looked = 0.0
    """When the look into its folder began that is still unanswered; 0: there is none."""
    searched = False
    """A look into its folder was begun after its end."""
    ended = 0.0
    """Since when its end waits for such a look (CLOCK_BOOTTIME); 0: it has not waited for one."""
    hurried = False
    """A user has killed the job after this end, which waits no longer."""
    making = ""
    """The uid of the part that writes one now."""
    copying = ""
    """The uid of the part that copies one now."""
    holder: pb.Holder | None = None
    """The host to which copies go; None: to the shared folder, or the master has named none."""
    wanted = -1
    """Of a job on several hosts: the generation that all of them copy; -1: the master has named none."""
    ending = 0.0
    """When that was asked to end (CLOCK_BOOTTIME); 0: it was not."""
    copied: Staging | None = None
    """What is copied; None: nothing is to be."""
    deadline: float | None = None
    """When the lease of the job ends (CLOCK_BOOTTIME); None: not known, or it has none."""
    period: float | None = None
    """The period that was asked for (bchkpnt -p) before the job's command runs."""


class PrePostPhase(Enum):
    """How far the commands are that run around a part as another user than the job's."""

    BEFORE = "before"
    """The part is started when they have ended well."""
    DURING = "during"
    AFTER = "after"
    """What the starter said of the end of the part is ``held`` until they have ended."""
    OVER = "over"


class PrePostWork:
    """The commands around a part that run as another user than the job's; most parts have none. Mutable as its entry is."""

    phase = PrePostPhase.DURING
    killed = False
    """The part is not to start any more."""
    held: PartReport | None = None


class Entry:
    """Mutable: changed only in the agent's turn, by what works on parts."""

    prepost: PrePostWork | None

    __slots__ = (
        "acked",
        "attach_address",
        "begun",
        "checkpoint",
        "cwd",
        "dropped",
        "end",
        "ended_for",
        "endpoint",
        "gpu_end",
        "gpus",
        "key",
        "limit",
        "live_hosts",
        "lost",
        "made",
        "mailed",
        "noted",
        "order",
        "orphan",
        "over",
        "over_limit",
        "part",
        "post",
        "prepost",
        "ran_out_of_memory",
        "received",
        "reported",
        "shepherd",
        "started_at",
        "tasks",
        "told",
        "uid",
        "unwritten",
        "use",
        "user",
        "wake",
        "where",
        "work",
        "writing",
    )

    def __init__(self, part: Part, order: pb.Order, made: Compiled | None, where: OutputPaths, received: float) -> None:
        self.part, self.order = part, order
        self.gpus = _gpus_of(order.start)
        """UUIDs of the GPUs that it holds on this host."""
        self.uid, self.key = part.uid, part.key
        self.made, self.where, self.received = made, where, received
        self.wake = 0.0
        self.tasks: tuple[RunningTask, ...] = ()
        self.shepherd = 0
        self.endpoint = _NO_ENDPOINT
        self.post = 0
        """The wait status of its post-execution command."""
        self.cwd = self.attach_address = ""
        """Where the user of an interactive part attaches."""
        self.started_at = 0.0
        self.end: End | None = None
        self.lost = self.limit = ""
        self.gpu_end, self.ended_for = _NO_GPU_END, _NOT_ENDED
        """``ended_for``: what befell another host of the job, for which it was ended here, and how the job ended by that."""
        self.use = _NO_USE
        self.noted = _NOTHING_NOTED
        """The usage of its ranks that its shepherd was told last."""
        self.live_hosts: list[tuple[str, int]] | None = None
        """What the host files of a resizable job say."""
        self.mailed: set[str] = set()
        """The uids of the parts that mailed its suspensions, and of its warning and control commands."""
        self.work, self.prepost = CheckpointWork(), None
        self.over_limit: dict[int, str] = {}
        """Rank to the limit of its role that the task went over."""
        self.over = self.acked = self.begun = self.ran_out_of_memory = False
        """``begun``: who wants a mail that it has begun was sent one; ``ran_out_of_memory``: the kernel has killed processes
        of it for its memory limit."""
        self.reported = False
        """The master was told how it ended (or that it was refused)."""
        self.told: pb.Report | None = None
        """How it ended, as the master was told last."""
        self.dropped = self.unwritten = ""
        """Why it is ended on behalf of the master or of a newer attempt; why its report is not in the user's file
        (``FILE: reason``)."""
        self.orphan = False
        """It belongs to another store: to be killed and forgotten without a report."""
        self.writing = Writing.NOT_BEGUN
        self.checkpoint: Checkpoints | None = None

    @property
    def text(self) -> pb.JobText | None:
        """The job's text, where it is known."""
        return self.made.text if self.made else None

    def started(self, tasks: tuple[RunningTask, ...], at: float, shepherd: int | None) -> None:
        """The starter reports that its processes run."""
        self.tasks = tasks
        self._make_nice(tasks)
        self.started_at = at
        self.shepherd = shepherd or self.shepherd or (parent_of(tasks[0].pid) if tasks else 0)
        if tasks and not self.cwd:
            self.cwd = folder_of(tasks[0].pid)

    def task_started(self, task: RunningTask) -> None:
        """One task runs that was started by itself."""
        self.tasks = (*(one for one in self.tasks if one.rank != task.rank), task)
        self._make_nice((task,))
        self.over_limit.pop(task.rank, None)

    def _make_nice(self, tasks: tuple[RunningTask, ...]) -> None:
        """What NICE says of processes goes for their sessions as well: between sessions it says nothing (sched(7))."""
        if self.made is not None and self.made.text.nice > 0:
            for task in tasks:
                make_nice(task.pid, task.starttime, min(self.made.text.nice, LEAST))

    @property
    def pid(self) -> int:
        """Of its first task, 0: none runs."""
        return self.tasks[0].pid if self.tasks else 0

    def status(self) -> pb.PartStatus:
        """Its entry in Hello. An end is left out while its report is still being written."""
        if self.lost and self.reported:
            state = PartState.LOST
        elif self.reported:
            state = PartState.GONE if self.over and self.end is None else PartState.ENDED
        else:
            state = _STATES[min(self.part.stage, Stage.RUNNING)]
        return pb.PartStatus(key=self.key, attempt=self.part.attempt, uid=self.uid, state=state.value, pid=self.pid)

    def report_written(self, why: str) -> None:
        """Its report is in the user's file, or ``why`` not."""
        self.writing, self.unwritten = Writing.FAILED if why else Writing.DONE, why

    def folder(self) -> str:
        """Where it runs. The shepherd enters only the folder asked for or the one to fall back to."""
        asked, real = self.where.cwd, (self.end.cwd if self.end else "") or self.cwd
        return FALLBACK_FOLDER if real == FALLBACK_FOLDER and self.text is not None else asked

    def begin_checkpoints(self, now: float, site: Site) -> None:
        """It runs: from here on it may be asked for checkpoints, if it writes any."""
        text, rules = self.text, self.part.rules
        if text is None or not rules.checkpoint:
            return
        several = bool(checkpoints.part_of(text, self.order.start))
        if several and self.work.copied is None:
            self.work.copied = Staging(self.uid, named=True, first=rules.first, wanted=self.work.wanted)
        if rules.first and self.checkpoint is None:
            known, period = self.order.start.restart, float(text.checkpoint_period)
            method, wait = checkpoints.method(text, site), float(checkpoints.timeout(site))
            self.checkpoint = checkpoint.begin(self.uid, known, period, float(text.checkpoint_initial), now, method, wait)
            if (text.checkpoint_stage or text.checkpoint_to_hosts) and not several:
                holder = self.work.holder.host if self.work.holder is not None else ""
                self.work.copied = Staging(self.uid, away=not text.checkpoint_stage, holder=holder)
            if self.work.period is not None:
                self.set_checkpoint_period(self.work.period, now)

    def set_checkpoint_period(self, period: float, now: float) -> None:
        """Another period from now on, or from when it runs."""
        if self.checkpoint is None:
            self.work.period = period
        else:
            self.checkpoint = checkpoint.set_period(self.checkpoint, period, now)

    def amend(self, changed: pb.Amend, site: Site, now: float) -> None:
        """bmod or the master has changed it; ``now``: CLOCK_BOOTTIME. The files that are written now are delivered at the end."""
        if self.made is None:
            return
        text = pb.JobText()
        text.CopyFrom(self.made.text)
        for field, value in changed.ListFields():
            setattr(text, field.name, value)
        if changed.HasField("checkpoint_period"):
            self.set_checkpoint_period(changed.checkpoint_period, now)
        self.made = copy.copy(self.made)
        self.made.text = text
        self.where = outputs.delivered_to(self.where, outputs.output_paths(text, self.key, self.made.user, site))

    def note(self, peaks: HostUse) -> Note | None:
        """What its shepherd is to tell the first host of the job, None: nothing, or nothing new.

        The report of a job over several hosts is written on its first one, which hears only the shepherds of the others: each
        is told what its agent saw, and for which limit the agent ends it.
        """
        text, noted = self.text, peaks._replace(limit=self.part.limit)
        if text is None or not self.order.start.place or not frameworks.on_every_host(text.launch) or noted == self.noted:
            return None
        self.noted = noted
        return Note(self.uid, noted)

    def after_sample(self, use: pb.Usage, peaks: HostUse) -> Iterator[EndTask | Note]:
        """What the starter is told after a sample of its usage.

        A task over the memory limit of its role is killed; the others go on, if the master lets them.
        """
        text, start = self.text, self.order.start
        if text is None:
            return
        if (note := self.note(peaks)) is not None:
            yield note
        for task in use.tasks if text.roles else ():
            most = roles.memory_limit(text, start.hosts, task.rank)
            if most and (task.pss or task.rss) > most and task.rank not in self.over_limit:
                self.over_limit[task.rank] = "TERM_MEMLIMIT"
                yield EndTask(self.uid, task.rank)

    def needs_lease(self) -> bool:
        """Whether something of it runs, or may still copy a checkpoint."""
        return self.end is None or (self.work.copied is not None and not self.reported)

    def leased(self) -> list[str]:
        """The uids of what runs for it under its lease."""
        return [uid for uid in (self.uid, self.work.making, self.work.copying) if uid]

    def kept_files(self) -> list[str]:
        """What it may have in the agent's own folder for its user."""
        files = [path for path in (self.where.kept, self.where.kept_error) if path]
        return [*files, jobfile(self.order, self.made)] if self.made is not None else files

    def checkpoint_folder(self) -> str:
        """Where the job writes its checkpoints; "" if it writes none."""
        text = self.text
        return checkpoints.folder_of(text, self.order) if text is not None and text.checkpoint_folder else ""

    def name(self) -> str:
        """The job's name as reports show it."""
        text = self.text
        if text is None:
            return show(self.key)
        return self.order.start.name or text.name or text.command


def _gpus_of(start: pb.Start) -> tuple[str, ...]:
    return tuple(start.hosts[start.place].gpus) if start.hosts else ()


_STATES = {Stage.SENT: PartState.PREPARING, Stage.PREPARED: PartState.PREPARED, Stage.RUNNING: PartState.RUNNING}


def adopted(saved: dict[str, Saved], site: Site, now: float) -> list[Entry]:
    """After a restart of the agent: an entry for each part that its notes tell of, to be matched with the starter's list.

    ``now``: CLOCK_BOOTTIME.
    """
    made: dict[bytes, Compiled] = {}
    found: list[Entry] = []
    for uid, one in saved.items():
        if one.user is None:
            continue
        try:
            order = pb.Order.FromString(one.order)
            if one.text not in made:
                made[one.text] = Compiled(pb.JobText.FromString(one.text), one.user, site)
        except DecodeError as e:
            log.warning("attempt %s: what is noted of it is damaged: %s", uid, e)
            continue
        compiled = made[one.text]
        rules = compiled.rules(order.start, site)
        part = decide.resumed(one.part, now) if one.part else Part(uid, order.key, order.attempt, rules)
        where = outputs.output_paths(compiled.text, order.key, one.user, site)
        found.append(entry := Entry(part, order, compiled, where, one.received))
        entry.begun = part.stage >= Stage.RUNNING
    return found
