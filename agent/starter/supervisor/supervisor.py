"""What shepherds say, and what is done when one says nothing, stops or dies.

Rule: a shepherd is believed only about the part that it was given; when it dies, its processes fall to the starter,
which ends them.
"""

from __future__ import annotations

import heapq
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from agent.starter.process import account
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.parts import OVER, Part, State
from agent.starter.supervisor.pool import Lane, Pool
from agent.starter.supervisor.shepherd_handle import Key
from agent.starter.system import cgroup, kernel, proctree
from agent.starter.system.watch import Watch
from agent.starter.wire.frames import FrameError

ACK_SECONDS = 2.0
KILL_AGAIN = 5.0
LEASE_SLACK = 2.0
SWEEP_PAUSE = 0.02

NONSENSE = (FrameError, LookupError, TypeError, ValueError)
"""What comes of a shepherd that does not say what shepherds say: it is the user's process, and loses its part."""

Report = Callable[[dict[str, Any]], None]


class Herd:
    """The parts that are here and the shepherds that have them."""

    def __init__(self, host: str, journal: Journal, watch: Watch, parts: dict[str, Part], report: Report, answer: Report) -> None:
        self.parts = parts
        self.journal = journal
        self.pool = Pool(host, journal, watch, self._read)
        self._report = report
        self._answer = answer
        self._timers: list[tuple[float, int, str, str]] = []
        self._count = 0
        self._lost: list[Part] = []
        self._orphans = False

    # -- what shepherds say ------------------------------------------------------------------------------------------

    def _read(self, lane: Lane) -> None:
        pipe = lane.pipe
        if pipe is None or pipe.closed:
            return
        try:
            said = pipe.read()
            for message in said or ():
                self._take(lane, message)
        except NONSENSE:
            said = None
        if said is None:
            if not lane.doomed:
                self.pool.kill(lane)
            pipe.close()
            return
        if pipe.waiting:
            self.pool.to_flush.add(lane)

    def _take(self, lane: Lane, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answered(lane, message)
            return
        part = self.parts.get(lane.busy) if lane.busy is not None else None
        if part is not None and message.get("uid") == part.uid:
            self._take_of(lane, part, message)

    def _answered(self, lane: Lane, message: dict[str, Any]) -> None:
        """Work beside parts is done: the answer goes to the agent."""
        kind = lane.asked.get(message["id"])
        if kind is None or kind != message.get("is"):
            return
        del lane.asked[message["id"]]
        if kind == "wrote":
            self._wrote(message["id"], str(message.get("error") or ""))
        else:
            self._answer(message)
        if not lane.asked and lane.busy is None:
            self.pool.rest(lane)

    def _wrote(self, uid: str, error: str) -> None:
        part = self.parts.get(uid)
        if part is not None:
            part.writing, part.wrote = False, error
            self.journal.wrote(part)
        self._report({"uid": uid, "is": "wrote", "error": error})

    def write(self, key: Key, order: dict[str, Any]) -> None:
        """Write for a part that has ended (``append``, ``deliver``); what was written once is not written again."""
        part = self.parts.get(order["id"])
        if part is not None and part.wrote is not None:
            self._report({"uid": part.uid, "is": "wrote", "error": part.wrote})
            return
        if part is not None and part.writing:
            return
        try:
            self.pool.ask(key, order, "wrote")
        except OSError as e:
            self._report({"uid": order["id"], "is": "wrote", "error": f"no process to write it: {e.strerror}"})
            return
        if part is not None:
            part.writing = True

    def _take_of(self, lane: Lane, part: Part, message: dict[str, Any]) -> None:
        what = message.get("is")
        if what == "ended":
            self._ended(lane, part, message)
        elif what == "gone":
            part.post = int(message.get("post") or 0)
            self._gone(lane, part)
        elif what == "prepared":
            part.state, part.addr, part.door = State.PREPARED, message.get("addr"), str(message.get("door") or "")
            self._report(message)
        elif what == "started":
            part.state, part.started = State.RUNNING, message
            if message["tasks"]:
                part.pid, part.starttime = message["tasks"][0]["pid"], message["tasks"][0]["starttime"]
            self._report(message)
        elif what == "refused":
            part.state, part.reason = State.REFUSED, message
            self._report(message)
        elif what == "deaf":
            self._report(message)
        elif what in ("task_started", "task_ended"):
            part.news[int(message["rank"])] = message
            self._report(message)
        elif what == "killing":
            part.kill_asked = 0
            self._arm(KILL_AGAIN, "again", part.uid)
        elif what == "stuck":
            # Something of the part changed its user: only a starter that is root can end it.
            proctree.kill_all(lambda: proctree.below([lane.pid]))

    def _ended(self, lane: Lane, part: Part, message: dict[str, Any]) -> None:
        if part.end is None:
            part.end = message["end"]
            lane.kept.add(part.uid)
            lane.end_bytes += 600
        part.state = State.ENDED
        if message.get("gone"):
            part.state = State.GONE
        self._report(message)
        if part.state is State.GONE:
            self._free(lane, part)

    def _gone(self, lane: Lane, part: Part) -> None:
        if part.state is not State.REFUSED:
            part.state = State.GONE
            self._report({"uid": part.uid, "is": "gone", "post": part.post})
        self._free(lane, part)

    def _free(self, lane: Lane, part: Part) -> None:
        cgroup.remove(part.cgroup, lane.pid)
        if part.forgotten or part.state is State.REFUSED:
            self._drop([part])
        self.pool.rest(lane)

    def _drop(self, parts: list[Part]) -> None:
        """Nobody asks for these any more."""
        for part in parts:
            self.parts.pop(part.uid, None)
            lane = self.pool.lanes.get(part.lane)
            if lane is not None:
                lane.kept.discard(part.uid)
                if lane.pid not in self.pool.by_pid and not lane.kept:
                    self.pool.drop(lane)
        if parts:
            self.journal.forget([part.uid for part in parts])

    def forget(self, uids: list[str]) -> None:
        """The master has these ends; a part that is not over is dropped when it is."""
        done: list[Part] = []
        for uid in uids:
            part = self.parts.get(uid)
            if part is not None and (part.end is not None or part.state in OVER):
                part.forgotten = True
                if part.state in OVER:
                    done.append(part)
        self._drop(done)

    # -- orders to shepherds -----------------------------------------------------------------------------------------

    def order(self, part: Part, order: dict[str, Any]) -> None:
        """Send an order about a part to the shepherd that has it."""
        lane = self.pool.lanes.get(part.lane)
        if lane is not None and lane.busy == part.uid:
            lane.send({**order, "uid": part.uid})
            self.pool.to_flush.add(lane)

    def kill(self, part: Part, posts: bool = False) -> None:
        """Kill (``posts``: post-execution follows), and kill the shepherd too if it does not say within 2 s that it does."""
        lane = self.pool.lanes.get(part.lane)
        if part.state in OVER or lane is None or lane.busy != part.uid or part.kill_asked:
            return
        self._count += 1
        part.kill_asked = self._count
        self.order(part, {"do": "kill", "posts": posts})
        self._arm(ACK_SECONDS, f"ack {part.kill_asked}", part.uid)

    def lease(self, part: Part) -> None:
        """Look after a part's deadline: its shepherd should have acted when it passed."""
        if part.deadline is not None:
            self._arm(part.deadline + LEASE_SLACK - kernel.boottime(), "lease", part.uid)

    # -- time --------------------------------------------------------------------------------------------------------

    def _arm(self, seconds: float, what: str, uid: str) -> None:
        self._count += 1
        heapq.heappush(self._timers, (time.monotonic() + max(0.0, min(seconds, 5.0)), self._count, what, uid))

    def wait_for(self) -> float | None:
        """Seconds until ``on_time`` has something to do."""
        if self._orphans:
            return SWEEP_PAUSE
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def on_time(self) -> None:
        """Do what is due."""
        if self._orphans:
            self._end_orphans()
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            _, _, what, uid = heapq.heappop(self._timers)
            part = self.parts.get(uid)
            lane = self.pool.lanes.get(part.lane) if part else None
            if part is None or lane is None or lane.busy != uid:
                continue
            if what == "again":
                self.kill(part)
            elif what == "lease":
                if part.deadline is not None and kernel.boottime() >= part.deadline + LEASE_SLACK:
                    self.kill(part)
                else:
                    self.lease(part)
            elif what == f"ack {part.kill_asked}":
                self.pool.kill(lane)

    # -- death -------------------------------------------------------------------------------------------------------

    def reap(self) -> None:
        """Take every child of the starter that has ended: shepherds, and what dead shepherds left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if not pid:
                return
            lane = self.pool.by_pid.get(pid)
            if lane is not None:
                self._died(lane, status)

    def _died(self, lane: Lane, status: int) -> None:
        while lane.pipe is not None and not lane.pipe.closed and self._read_last(lane):
            pass
        self.pool.died(lane)
        for asked, kind in lane.asked.items():
            if kind == "wrote":
                self._wrote(asked, "the shepherd that wrote it died")
            else:
                self._answer({"is": kind, "id": asked, "error": "the shepherd that read it died"})
        lane.asked.clear()
        part = self.parts.get(lane.busy) if lane.busy is not None else None
        lane.busy = None
        if part is not None:
            code = os.waitstatus_to_exitcode(status)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            part.reason = {"uid": part.uid, "is": "lost", "reason": f"the shepherd of {part.title} {how}"}
            cgroup.remove(part.cgroup, 0)
            self._lost.append(part)
        self._end_orphans()

    def _read_last(self, lane: Lane) -> bool:
        assert lane.pipe is not None
        try:
            said = lane.pipe.read()
            for message in said or ():
                self._take(lane, message)
        except NONSENSE:
            return False
        return bool(said)

    def _end_orphans(self) -> None:
        """Kill whatever a dead shepherd left; when nothing is left, its parts are over."""
        own = os.getpid()
        shepherds = self.pool.by_pid.keys()

        def orphans() -> set[int]:
            found = set(proctree.children(own)) - shepherds
            return found | (proctree.below(found) - shepherds) if found else found

        self._orphans = bool(orphans())
        if self._orphans:
            proctree.kill_all(orphans)
            return
        lost, self._lost = self._lost, []
        for part in lost:
            self._settle_lost(part)

    def _settle_lost(self, part: Part) -> None:
        """Its end may have reached the disk before the shepherd died; otherwise it is unknown."""
        if part.state in OVER:
            if part.state is State.REFUSED:
                self._drop([part])
            return
        known = part.end is not None
        if not known:
            part.end = account.read_ends(self.journal.end_path(part.lane)).get(part.uid)
        if part.end is None:
            assert part.reason is not None
            part.state = State.LOST
            self.journal.over(part)
            self._report(part.reason)
            return
        part.reason = None
        part.state = State.GONE
        self._report({"uid": part.uid, "is": "gone"} if known else part.again() or {})
        if part.forgotten:
            self._drop([part])

    def stop(self) -> None:
        """The starter ends: kill every part, then every shepherd, then what they leave; give up after 10 s."""
        for part in list(self.parts.values()):
            self.kill(part)
        self.pool.flush()
        deadline = time.monotonic() + 10.0

        def wait(condition: Callable[[], bool], seconds: float) -> None:
            until = min(deadline, time.monotonic() + seconds)
            while condition() and time.monotonic() < until:
                for lane in list(self.pool.lanes.values()):
                    self._read(lane)
                self.pool.flush()
                self.reap()
                self.on_time()
                time.sleep(0.005)

        wait(lambda: any(lane.busy for lane in self.pool.by_pid.values()), 4.0)
        for lane in self.pool.by_pid.values():
            proctree.send(lane.pid, signal.SIGKILL)
        wait(lambda: bool(self.pool.by_pid) or self._orphans, 10.0)
