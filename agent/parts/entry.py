"""One attempt on this host as the runner holds it: its pure part, its order, and what the starter said."""

from __future__ import annotations

from typing import Any

from agent.core import checkpoint
from agent.core.checkpoint import Checkpoints
from agent.core.part import Part, Stage
from agent.launch.build import FALLBACK_FOLDER, Compiled, Places, checkpoint_folder, jobfile, show
from agent.launch.report import Use
from agent.launch.site import Site
from agent.monitor.proc_info import folder_of, parent_of
from agent.monitor.usage import Peaks
from proto import agent_pb2 as pb


class Entry:
    """Mutable: the runner is the only one who touches it."""

    __slots__ = (
        "acked",
        "checkpoint",
        "cwd",
        "door",
        "dropped",
        "end",
        "endpoint",
        "key",
        "limit",
        "live_hosts",
        "looked",
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
        "received",
        "shepherd",
        "started_at",
        "tasks",
        "told",
        "use",
        "user",
        "wake",
        "where",
        "writer",
    )

    def __init__(self, part: Part, order: pb.Order, made: Compiled | None, where: Places, received: float) -> None:
        self.part = part
        self.order = order
        self.key = part.key
        self.made = made
        self.where = where
        self.received = received
        self.wake = 0.0
        self.tasks: tuple[tuple[int, int, int], ...] = ()
        self.shepherd = 0
        self.endpoint = pb.Endpoint()
        self.post = 0
        """The wait status of its post-execution command."""
        self.door = ""
        """Where the user of an interactive part comes in."""
        self.started_at = 0.0
        self.cwd = ""
        self.end: dict[str, Any] | None = None
        self.lost = ""
        self.limit = ""
        self.use = Use()
        self.noted = Peaks()
        self.live_hosts: list[tuple[str, int]] | None = None
        """What the host files of a resizable job say."""
        self.mailed: set[str] = set()
        """The uids of the parts that mailed what became of it: that it began, each time that it was suspended."""
        self.looked = 0.0
        """When a look into its checkpoint folder was begun that is not answered yet."""
        self.over_limit: dict[int, str] = {}
        """Rank to the limit of its role that the task went over."""
        self.over = False
        self.told = False
        """The master was told how it ended (or that it was refused)."""
        self.acked = False
        self.dropped = ""
        """Why the master, or a newer attempt, wants nothing of it left."""
        self.orphan = False
        """Of another store's time: to be killed and forgotten without a word."""
        self.writer = ""
        """Its report in the user's file: "" not yet thought of, "none", "sent" (ordered), "done", "failed"."""
        self.checkpoint: Checkpoints | None = None

    @property
    def uid(self) -> str:
        """The attempt's random id."""
        return self.part.uid

    @property
    def text(self) -> pb.JobText | None:
        """The job's text, where it is known."""
        return self.made.text if self.made else None

    def started(self, said: dict[str, Any]) -> None:
        """Its processes run, says the starter."""
        self.tasks = tuple((int(t["rank"]), int(t["pid"]), int(t["starttime"])) for t in said["tasks"])
        self.started_at = float(said["at"])
        self.shepherd = int(said.get("shepherd") or self.shepherd or parent_of(self.tasks))
        if self.tasks and not self.cwd:
            self.cwd = folder_of(self.tasks[0][1])

    def task_started(self, rank: int, pid: int, starttime: int) -> None:
        """One task runs that was started by itself."""
        self.tasks = (*(task for task in self.tasks if task[0] != rank), (rank, pid, starttime))
        self.over_limit.pop(rank, None)

    def status(self) -> pb.PartStatus:
        """As the master is told in Hello. An end whose report is still being written is not told yet."""
        if self.lost and self.told:
            state = "lost"
        elif self.told:
            state = "gone" if self.over and self.end is None else "ended"
        else:
            state = _STATES[min(self.part.stage, Stage.RUNNING)]
        pid = self.tasks[0][1] if self.tasks else 0
        return pb.PartStatus(key=self.key, attempt=self.part.attempt, uid=self.uid, state=state, pid=pid)

    def folder(self) -> str:
        """Where it runs. The shepherd enters only the folder asked for or the one to fall back to."""
        asked, real = self.where.cwd, str((self.end or {}).get("cwd") or self.cwd)
        return FALLBACK_FOLDER if real == FALLBACK_FOLDER and self.text is not None else asked

    def begin_checkpoints(self, now: float) -> None:
        """It runs: from here on it may be asked for checkpoints, if it writes any."""
        text, rules = self.text, self.part.rules
        if text is not None and rules.checkpoint and rules.first and self.checkpoint is None:
            known, period = self.order.start.restart, float(text.checkpoint_period)
            self.checkpoint = checkpoint.begin(self.uid, known, period, float(text.checkpoint_initial), now)

    def kept_files(self, site: Site) -> list[str]:
        """What it may have in the agent's own folder for its user."""
        files = [path for path in (self.where.kept, self.where.kept_error) if path]
        return [*files, jobfile(self.order, self.made, site)] if self.made is not None else files

    def checkpoint_folder(self) -> str:
        """Where the job writes its checkpoints; "" if it writes none."""
        text = self.text
        return checkpoint_folder(text, self.key) if text is not None and text.checkpoint_folder else ""

    def name(self) -> str:
        """The job's name as reports show it."""
        text = self.text
        if text is None:
            return show(self.key)
        return self.order.start.name or text.name or text.command


_STATES = {Stage.SENT: "preparing", Stage.PREPARED: "prepared", Stage.RUNNING: "running"}
