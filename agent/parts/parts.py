"""The parts of this host: what the starter reports of them, what is decided, and what master and starter are told.

Rule: what happens to a part is heard here and decided in ``agent.core``; how an end is made known is ``agent.parts.completion``.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec

from agent.checkpoint import app
from agent.core import checkpoint, decide
from agent.core import effects as eff
from agent.core.part import Part, Stage
from agent.launch import build, frameworks, rendezvous, roles
from agent.launch.site import Site
from agent.master.link import Outbox
from agent.parts import report_messages as saying
from agent.parts.completion import Ends
from agent.parts.entry import Entry
from agent.parts.host_monitor import Watch
from agent.parts.job_report import RESIZED, Closing, is_own, owner_of
from agent.parts.resizing import Resizing
from agent.parts.spool import Spool
from agent.starter_client.outgoing import Outgoing
from agent.starter_client.starterlink import StarterLink
from proto import agent_pb2 as pb

log = logging.getLogger("lava-agent")


LOOK_LOST = 60.0
"""Seconds after which a look into a checkpoint folder that was not answered is begun again."""


def now() -> float:
    """The clock of leases and limits: it goes on while the machine sleeps, and no one can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Parts:
    """All attempts that are here."""

    def __init__(self, site: Site, spool: Spool, watch: Watch) -> None:
        self.outbox = Outbox()
        self.starter = Outgoing()
        self.spool = spool
        self._site = site
        self._watch = watch
        self._ends = Ends(Closing(site), spool, self.outbox, self.starter)
        self.resizing = Resizing(self._ends, self.starter, site.hostfile_dir)
        self._greeted_before = False
        self._wakes: list[tuple[float, str]] = []

    @property
    def entries(self) -> dict[str, Entry]:
        """All attempts that are here, by uid."""
        return self._ends.entries

    @entries.setter
    def entries(self, entries: dict[str, Entry]) -> None:
        self._ends.entries = entries

    # -- the starter -------------------------------------------------------------------------------------------------

    def starter_up(self, link: StarterLink, hello: dict[str, Any]) -> None:
        """A starter greeted: what it knows replaces what was believed."""
        waiting = self.starter.waiting()
        self.starter.up(link, int(hello["seq"]))
        listed = {str(status["uid"]): status for status in hello["parts"]}
        for uid, status in listed.items():
            if not is_own(uid):
                self._reconcile(uid, status)
        for uid, entry in list(self.entries.items()):
            if uid not in listed and not self._greeted_before:
                # From before a restart of the agent, and over: the master sees in Hello that it is not here.
                del self.entries[uid]
                self.spool.forget(uid)
            elif uid not in listed and not entry.told and uid not in waiting:
                self._refuse(entry, "starter", f"the starter of {self._site.host} was restarted")
        for uid, status in listed.items():
            over = status["state"] in ("gone", "lost", "refused")
            if uid.endswith(RESIZED) and over and owner_of(uid) in self.entries:
                self._command_ended(uid, status)
            elif is_own(uid) and (over or owner_of(uid) not in self.entries):
                self.starter.put({"do": "forget", "uids": [uid]})
        self._greeted_before = True

    def reported(self, reports: list[dict[str, Any]]) -> None:
        """Reports of the starter."""
        for one in reports:
            self._reported(one)

    def _reconcile(self, uid: str, status: dict[str, Any]) -> None:
        entry = self.entries.get(uid)
        if entry is None:
            part = Part(uid=uid, key=int(status["key"]), attempt=int(status["attempt"]))
            order = pb.Order(key=part.key, attempt=part.attempt, uid=uid)
            entry = self.entries[uid] = Entry(part, order, None, build.Places(), time.time())
        if entry.told and entry.over:
            return
        if status.get("wrote") is not None:
            entry.writer = "failed" if status["wrote"] else "done"
        elif entry.writer == "sent":
            entry.writer = ""  # by another starter, who may not have come to it
        state = status["state"]
        entry.shepherd = int(status.get("pid") or 0)
        if status.get("tasks") is not None and state == "running":
            at = status.get("at") or entry.started_at or entry.received
            self._started(entry, {"tasks": status["tasks"], "at": at, "shepherd": status.get("shepherd")})
            self._ends.put(saying.started(entry), entry)
        for said in status.get("news") or ():
            _HEARD[said["is"]](self, entry, said)
        if status.get("end") is not None:
            entry.over, entry.post = entry.over or state == "gone", int(status.get("post") or 0)
            self._ended(entry, status["end"])
        elif state == "prepared":
            self._prepared(entry, status)
        elif state == "refused":
            self._refuse(entry, str(status.get("code")), str(status.get("reason")))
        elif state in ("lost", "gone"):
            self._lost(entry, str(status.get("reason") or "its shepherd was lost"))

    def _reported(self, said: dict[str, Any]) -> None:
        uid = str(said["uid"])
        what = said["is"]
        if uid.endswith(RESIZED):
            if what in ("ended", "refused", "lost"):
                self._command_ended(uid, said)
            return
        if is_own(uid):
            if what in ("ended", "refused", "lost"):
                self._ends.mailed(uid, what == "ended" and said["end"]["status"] == 0, str(said.get("reason", "")))
            return
        entry = self.entries.get(uid)
        if entry is not None and (hear := _HEARD.get(what)):
            hear(self, entry, said)

    def _command_ended(self, uid: str, said: dict[str, Any]) -> None:
        end = said.get("end")
        why = "" if end else str(said.get("reason") or "its end is not known")
        self.resizing.ended(uid, int(end["status"]) if end else 0, why)

    def _started_now(self, entry: Entry, said: dict[str, Any]) -> None:
        self._started(entry, said)
        self._ends.put(saying.started(entry), entry)
        self._ends.begun(entry)

    def stop(self, entry: Entry, stopped: bool) -> None:
        """Suspend it, or let it go on."""
        was = entry.part.stopped
        self.decided(entry, *decide.stop(entry.part, stopped, now()))
        if stopped and not was:
            self._ends.suspended(entry)

    def _task_started(self, entry: Entry, said: dict[str, Any]) -> None:
        entry.task_started(int(said["rank"]), int(said["pid"]), int(said["starttime"]))
        self._ends.put(saying.task_started(entry, said), entry)

    def _ended_now(self, entry: Entry, said: dict[str, Any]) -> None:
        entry.over = entry.over or bool(said.get("gone"))
        self._ended(entry, said["end"])

    def _deaf(self, entry: Entry) -> None:
        if entry.checkpoint is not None:
            self._checkpointed(entry, *checkpoint.deaf(entry.checkpoint))

    def _prepared(self, entry: Entry, said: dict[str, Any]) -> None:
        entry.endpoint, entry.door = rendezvous.endpoint(said.get("addr")), str(said.get("door") or "")
        if entry.part.stage < Stage.PREPARED:
            entry.part = msgspec.structs.replace(entry.part, stage=Stage.PREPARED)
        self._ends.put(saying.prepared(entry), entry)

    def _started(self, entry: Entry, said: dict[str, Any]) -> None:
        entry.started(said)
        ago = max(0.0, time.time() - entry.started_at)
        entry.part = decide.started(entry.part, now() - ago)
        if not entry.orphan:
            self.spool.keep(entry.part)
        entry.begin_checkpoints(now())
        self._wake_later(entry)

    def _ended(self, entry: Entry, end: dict[str, Any]) -> None:
        if entry.end is None:
            entry.end = end
            entry.use = saying.use_of(end, self._watch.final(entry.uid))
            entry.limit = decide.limit_of_end(entry.part, int(end["status"]), entry.use.cpu, entry.use.max_mem)
            entry.part = decide.ended(entry.part)
        if entry.told or (entry.part.rules.after and not entry.over):
            return
        if not entry.writer:
            self._ends.close(entry)
        if entry.writer != "sent":
            self._ends.tell(entry)

    def _gone(self, entry: Entry, said: dict[str, Any]) -> None:
        entry.post = int(said.get("post") or 0)
        entry.over = True
        self.resizing.over(entry)
        entry.part = decide.gone(entry.part)
        if entry.end is None and not entry.told and not entry.orphan:
            self._lost(entry, "it was killed before it ran")
        elif entry.told:
            self._ends.put(saying.gone(entry), entry)
        elif entry.end is not None and entry.part.rules.after:
            self._ended(entry, entry.end)
        self._ends.forget_if_done(entry)

    def _lost(self, entry: Entry, reason: str) -> None:
        if entry.told:
            return
        entry.lost, entry.over = reason, True
        self.resizing.over(entry)
        entry.part = decide.gone(entry.part)
        self._watch.final(entry.uid)
        log.warning("job %s: %s", build.show(entry.key), reason)
        self._ends.tell(entry)

    def _refuse(self, entry: Entry, code: str, why: str) -> None:
        why = " ".join(why.split())
        log.info("job %s is refused: %s: %s", build.show(entry.key), code, why)
        self._ends.put(saying.refused(entry, code, why), entry)
        entry.told = entry.acked = entry.over = True
        self._ends.forget_if_done(entry)

    # -- asked by the master -----------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """A part that is about to start; an older attempt of the job is ended."""
        other = self.entries.get(self._ends.newest.get(entry.key, ""))
        if other is not None and other.part.attempt < entry.part.attempt and not other.over:
            log.warning("job %s: attempt %d is stale, it is ended", build.show(entry.key), other.part.attempt)
            other.dropped = "another attempt of the job is here"
            self.kill([other.uid])
        self.entries[entry.uid] = entry
        self._ends.newest[entry.key] = entry.uid

    def acked(self, uids: list[str]) -> None:
        """The master has these ends."""
        for uid in uids:
            entry = self.entries.get(uid)
            if entry is None:
                self.starter.forget(uid)
            else:
                entry.acked = True
                self._ends.forget_if_done(entry)

    def new_stream(self) -> None:
        """Every end that the master has not got is told on the new stream, with all else that it did not acknowledge."""
        self.outbox.new_stream()
        waiting = self.outbox.ends()
        for entry in self.entries.values():
            if entry.told and not (entry.acked or entry.orphan) and entry.uid not in waiting:
                self._ends.say(entry)

    def say_again(self, entry: Entry) -> None:
        """Where a part is now, for a master that asks for what it has asked for before."""
        if said := saying.again(entry):
            self._ends.put(said, entry)

    def end(self, entry: Entry) -> None:
        """The master wants nothing of it left."""
        if entry.over and entry.told:
            self._ends.put(saying.gone(entry), entry)
        else:
            entry.dropped = "the master ended this attempt"
            self.kill([entry.uid])

    def end_all(self) -> None:
        """All that is here is of another store's time: it ends without a word."""
        self.outbox.clear()
        for entry in list(self.entries.values()):
            entry.orphan = True
            self.kill([entry.uid])
            self._ends.forget_if_done(entry)

    # -- doing -------------------------------------------------------------------------------------------------------

    def decided(self, entry: Entry, part: Part, effects: list[eff.Effect]) -> None:
        if part is entry.part and not effects:
            return
        entry.part = part
        for effect in effects:
            if isinstance(effect, eff.Send):
                self.starter.put(saying.signal(effect))
            elif isinstance(effect, eff.KillAll):
                self.starter.put({"do": "kill", "uids": [effect.uid], "posts": True})
            elif isinstance(effect, eff.Grant):
                granted = pb.Granted(wish=effect.wish, ok=effect.ok, why=effect.why)
                self._ends.put(saying.about(entry, granted=granted), entry)
            elif isinstance(effect, eff.SayStopped):
                self._ends.put(saying.about(entry, stopped=pb.Stopped(stopped=effect.stopped)), entry)
            elif isinstance(effect, eff.AskCheckpoint):
                if entry.checkpoint is not None:
                    self._checkpointed(entry, *checkpoint.ask(now(), entry.checkpoint, effect.wish, effect.kill_after))
            elif isinstance(effect, eff.SayCheckpoint):
                self._ends.put(saying.about(entry, checkpointed=pb.Checkpointed(generation=effect.generation)), entry)
            elif isinstance(effect, eff.Run):
                self._ends.run(entry, effect.command)
            elif isinstance(effect, eff.Keep):
                self.spool.keep(part)
        self._wake_later(entry)

    def _checkpointed(self, entry: Entry, state: checkpoint.Checkpoints, effects: list[eff.Effect]) -> None:
        entry.checkpoint = state
        if effects:
            self.decided(entry, entry.part, effects)

    def look_for_checkpoints(self) -> None:
        """What is due now, and a look into each folder by its user, unless the last look has not come back."""
        for entry in list(self.entries.values()):
            if entry.checkpoint is None or entry.part.stage is not Stage.RUNNING or entry.made is None:
                continue
            self._checkpointed(entry, *checkpoint.tick(now(), entry.checkpoint))
            if entry.looked and now() < entry.looked + LOOK_LOST:
                continue
            entry.looked = now()
            self.starter.put(app.look(entry.uid, entry.made.user, entry.checkpoint_folder()))

    def looked(self, frame: dict[str, Any]) -> None:
        """What the user's shepherd found in a folder."""
        entry = self.entries.get(app.uid_of(str(frame["id"])))
        if entry is None:
            return
        entry.looked = 0.0
        if entry.checkpoint is not None and entry.end is None:
            self._checkpointed(entry, *checkpoint.found(entry.checkpoint, app.newest(frame.get("names") or [])))

    def sampled(self, usage: dict[str, pb.Usage]) -> None:
        """Usage samples came in: whoever uses too much is ended."""
        for uid, use in usage.items():
            if entry := self.entries.get(uid):
                # Shared pages count once where that was measured.
                mem = min(use.rss, use.pss or use.rss)
                self.decided(entry, *decide.used(entry.part, now(), use.cpu, mem, use.swap, len(use.pids), use.threads))
                self._note_for_first_host(entry)
                self._watch_roles(entry, use)

    def _watch_roles(self, entry: Entry, use: pb.Usage) -> None:
        """A task over the memory limit of its role is killed; the others go on, as far as the master lets them."""
        text = entry.text
        if text is None or not text.roles:
            return
        for task in use.tasks:
            most = roles.memory_limit(text, entry.order.start.hosts, task.rank)
            if most and (task.pss or task.rss) > most and task.rank not in entry.over_limit:
                entry.over_limit[task.rank] = "TERM_MEMLIMIT"
                self.starter.put({"do": "end_task", "uid": entry.uid, "rank": task.rank})

    def _note_for_first_host(self, entry: Entry) -> None:
        """The report of a job over several hosts is written on its first one, where only the shepherds are heard."""
        peaks = self._watch.peaks(entry.uid)
        if entry.order.start.place and entry.text and frameworks.on_every_host(entry.text.launch) and peaks != entry.noted:
            entry.noted = peaks
            self.starter.put({"do": "note", "uid": entry.uid, "use": peaks._asdict()})

    def next_wake(self) -> float | None:
        """Seconds until ``on_time`` has something to do."""
        return max(0.0, self._wakes[0][0] - now()) if self._wakes else None

    def on_time(self) -> None:
        """Limits and kill sequences that are due."""
        at = now()
        while self._wakes and self._wakes[0][0] <= at:
            _, uid = heapq.heappop(self._wakes)
            if entry := self.entries.get(uid):
                entry.wake = 0.0
                self.decided(entry, *decide.tick(entry.part, at))
                self._wake_later(entry)

    def _wake_later(self, entry: Entry) -> None:
        at = decide.wake_at(entry.part)
        if at is not None and at != entry.wake:
            entry.wake = at
            heapq.heappush(self._wakes, (at, entry.uid))

    def kill(self, uids: list[str]) -> None:
        self.starter.put({"do": "kill", "uids": uids})


# What the starter says of a part, and who hears it.
_HEARD: dict[str, Callable[[Parts, Entry, dict[str, Any]], None]] = {
    "prepared": Parts._prepared,
    "started": Parts._started_now,
    "ended": Parts._ended_now,
    "deaf": lambda parts, entry, said: parts._deaf(entry),
    "task_started": Parts._task_started,
    "task_ended": lambda parts, entry, said: parts._ends.put(saying.task_ended(entry, said), entry),
    "wrote": lambda parts, entry, said: parts._ends.wrote(entry, str(said["error"])),
    "gone": Parts._gone,
    "refused": lambda parts, entry, said: parts._refuse(entry, str(said["code"]), str(said["reason"])),
    "lost": lambda parts, entry, said: parts._lost(entry, str(said["reason"])),
}
