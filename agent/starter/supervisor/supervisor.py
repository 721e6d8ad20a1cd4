"""What shepherds report, and what is done when one does not answer, stops or dies.

Rule: a shepherd is believed only about the part that it was given; when it dies, its processes fall to the starter,
which ends them.
"""

from __future__ import annotations

import heapq
import os
import signal
import time
from collections.abc import Callable, Iterable
from enum import Enum

from agent.starter.process import account
from agent.starter.protocol import orders
from agent.starter.protocol.codec import ProtocolError
from agent.starter.protocol.orders import AboutMany, ToPart
from agent.starter.protocol.reports import (
    Data,
    Ended,
    Folders,
    FromShepherd,
    FromStarter,
    Gone,
    Killing,
    Lost,
    PartReport,
    PartState,
    Prepared,
    Refused,
    Report,
    SignalIgnored,
    Started,
    Stuck,
    TaskEnded,
    TaskStarted,
    Wrote,
    find_report,
)
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.parts import Part
from agent.starter.supervisor.pool import Pool
from agent.starter.supervisor.shepherd_handle import ShepherdHandle, ShepherdKey
from agent.starter.system import cgroup, kernel, proctree
from agent.starter.system.watch import Watch
from agent.starter.wire.frames import FrameError
from agent.starter.wire.pipe import FramePipe

ACK_SECONDS = 2.0
KILL_AGAIN = 5.0
LEASE_SLACK = 2.0
SWEEP_PAUSE = 0.02
BYTES_OF_END = 600
"""About what an end takes in an end file."""

NONSENSE = (FrameError, ProtocolError)
"""What a shepherd that breaks the protocol raises: it is the user's process, and loses its part."""


_ANSWERS = (Data, Folders, Wrote)
"""To work beside parts."""


class Due(Enum):
    """What is checked when its time comes."""

    CONFIRMED = "confirmed"
    """The shepherd should have confirmed an order to kill."""
    GONE = "gone"
    """What it kills should be gone."""
    LEASE = "lease"
    """It should have acted when the lease passed."""


class Supervisor:
    """The parts that are here and the shepherds that have them."""

    def __init__(
        self,
        host: str,
        journal: Journal,
        watch: Watch,
        parts: dict[str, Part],
        report: Callable[[PartReport], None],
        answer: Callable[[FromStarter], None],
    ) -> None:
        self.parts = parts
        self.journal = journal
        self.pool = Pool(host, journal, watch, self._read)
        self._report = report
        self._answer = answer
        self._timers: list[tuple[float, int, Due, str, int]] = []
        """When, a number that no other has, what, the uid of the part, and for CONFIRMED the number of the order."""
        self._count = 0
        self._lost: list[Part] = []
        self._orphans = False

    # -- what shepherds say ------------------------------------------------------------------------------------------

    def _read(self, shepherd: ShepherdHandle) -> None:
        pipe = shepherd.pipe
        if pipe is None or pipe.closed:
            return
        if self._take_what_came(shepherd, pipe) is None:
            if not shepherd.doomed:
                self.pool.kill(shepherd)
            pipe.close()
            return
        if pipe.waiting:
            self.pool.to_flush.add(shepherd)

    def _take_what_came(self, shepherd: ShepherdHandle, pipe: FramePipe) -> int | None:
        """The number of reports that were read; None: it closed the socket or broke the protocol."""
        try:
            said = pipe.read()
            for message in said or ():
                if (report := find_report(message)) is not None:
                    self._take(shepherd, report)
        except NONSENSE:
            return None
        return None if said is None else len(said)

    def _take(self, shepherd: ShepherdHandle, report: Report) -> None:
        if isinstance(report, _ANSWERS):
            self._answered(shepherd, report)
        elif isinstance(report, FromShepherd) and report.uid == shepherd.busy and (part := self.parts.get(report.uid)):
            self._take_of(shepherd, part, report)

    def _answered(self, shepherd: ShepherdHandle, answer: Data | Folders | Wrote) -> None:
        """Work beside parts is done: the answer goes to the agent."""
        asked = shepherd.asked.get(answer.id)
        if asked is None or not isinstance(answer, _ANSWER[type(asked)]):
            return
        del shepherd.asked[answer.id]
        if isinstance(answer, Wrote):
            self._wrote(answer.id, answer.error)
        else:
            self._answer(answer)
        if not shepherd.asked and shepherd.busy is None:
            self.pool.rest(shepherd)

    def _wrote(self, uid: str, error: str) -> None:
        part = self.parts.get(uid)
        if part is not None:
            part.writing, part.wrote = False, error
            self.journal.wrote(part)
        self._report(Wrote(uid=uid, error=error))

    def write(self, key: ShepherdKey, order: orders.Write) -> None:
        """Write for a part that has ended; what was written once is not written again."""
        part = self.parts.get(order.id)
        if part is not None and part.wrote is not None:
            self._report(Wrote(uid=part.uid, error=part.wrote))
            return
        if part is not None and part.writing:
            return
        try:
            self.pool.ask(key, order)
        except OSError as e:
            self._report(Wrote(uid=order.id, error=f"no process to write it: {e.strerror}"))
            return
        if part is not None:
            part.writing = True

    def _take_of(self, shepherd: ShepherdHandle, part: Part, report: FromShepherd) -> None:
        match report:
            case Ended():
                self._ended(shepherd, part, report)
            case Gone(_, post):
                part.post = post
                self._gone(shepherd, part)
            case Prepared(_, addr, door):
                part.state, part.addr, part.door = PartState.PREPARED, addr, door
                self._report(report)
            case Started(_, tasks):
                part.state, part.started = PartState.RUNNING, report
                if tasks:
                    part.pid, part.starttime = tasks[0].pid, tasks[0].starttime
                self._report(report)
            case Refused():
                part.state, part.reason = PartState.REFUSED, report
                self._report(report)
            case SignalIgnored():
                self._report(report)
            case TaskStarted(_, rank) | TaskEnded(_, rank):
                part.news[rank] = report
                self._report(report)
            case Killing():
                part.kill_asked = 0
                self._arm(KILL_AGAIN, Due.GONE, part.uid)
            case Stuck():
                # Something of the part changed its user: only a starter that is root can end it.
                proctree.kill_all(lambda: proctree.below([shepherd.pid]))

    def _ended(self, shepherd: ShepherdHandle, part: Part, report: Ended) -> None:
        if part.end is None:
            part.end = report.end
            shepherd.kept.add(part.uid)
            shepherd.end_bytes += BYTES_OF_END
        part.state = PartState.GONE if report.gone else PartState.ENDED
        self._report(report)
        if part.state is PartState.GONE:
            self._free(shepherd, part)

    def _gone(self, shepherd: ShepherdHandle, part: Part) -> None:
        if part.state is not PartState.REFUSED:
            part.state = PartState.GONE
            self._report(Gone(part.uid, part.post))
        self._free(shepherd, part)

    def _free(self, shepherd: ShepherdHandle, part: Part) -> None:
        cgroup.remove(part.cgroup, shepherd.pid)
        if part.forgotten or part.state is PartState.REFUSED:
            self._drop([part])
        self.pool.rest(shepherd)

    def _drop(self, parts: list[Part]) -> None:
        """Nobody asks for these any more."""
        for part in parts:
            self.parts.pop(part.uid, None)
            shepherd = self.pool.shepherds.get(part.shepherd)
            if shepherd is not None:
                shepherd.kept.discard(part.uid)
                if shepherd.pid not in self.pool.by_pid and not shepherd.kept:
                    self.pool.drop(shepherd)
        if parts:
            self.journal.forget([part.uid for part in parts])

    def forget(self, uids: Iterable[str]) -> None:
        """The master has these ends; a part that is not over is dropped when it is."""
        done: list[Part] = []
        for uid in uids:
            part = self.parts.get(uid)
            if part is not None and (part.end is not None or part.state.over):
                part.forgotten = True
                if part.state.over:
                    done.append(part)
        self._drop(done)

    # -- orders to shepherds -----------------------------------------------------------------------------------------

    def order(self, part: Part, order: ToPart) -> None:
        """Send an order about a part to the shepherd that has it."""
        shepherd = self.pool.shepherds.get(part.shepherd)
        if shepherd is not None and shepherd.busy == part.uid:
            shepherd.send(order._replace(uids=(part.uid,)) if isinstance(order, AboutMany) else order)
            self.pool.to_flush.add(shepherd)

    def kill(self, part: Part, posts: bool = False) -> None:
        """Kill (``posts``: post-execution follows), and kill the shepherd too if it does not say within 2 s that it does."""
        shepherd = self.pool.shepherds.get(part.shepherd)
        if part.state.over or shepherd is None or shepherd.busy != part.uid or part.kill_asked:
            return
        self._count += 1
        part.kill_asked = self._count
        self.order(part, orders.Kill((part.uid,), posts))
        self._arm(ACK_SECONDS, Due.CONFIRMED, part.uid, part.kill_asked)

    def lease(self, part: Part) -> None:
        """Look after a part's deadline: its shepherd should have acted when it passed."""
        if part.deadline is not None:
            self._arm(part.deadline + LEASE_SLACK - kernel.boottime(), Due.LEASE, part.uid)

    # -- time --------------------------------------------------------------------------------------------------------

    def _arm(self, seconds: float, what: Due, uid: str, kill: int = 0) -> None:
        self._count += 1
        heapq.heappush(self._timers, (time.monotonic() + max(0.0, min(seconds, 5.0)), self._count, what, uid, kill))

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
            _, _, what, uid, kill = heapq.heappop(self._timers)
            part = self.parts.get(uid)
            shepherd = self.pool.shepherds.get(part.shepherd) if part else None
            if part is None or shepherd is None or shepherd.busy != uid:
                continue
            if what is Due.GONE:
                self.kill(part)
            elif what is Due.LEASE:
                if part.deadline is not None and kernel.boottime() >= part.deadline + LEASE_SLACK:
                    self.kill(part)
                else:
                    self.lease(part)
            elif kill == part.kill_asked:
                self.pool.kill(shepherd)

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
            shepherd = self.pool.by_pid.get(pid)
            if shepherd is not None:
                self._died(shepherd, status)

    def _died(self, shepherd: ShepherdHandle, status: int) -> None:
        while shepherd.pipe is not None and not shepherd.pipe.closed and self._take_what_came(shepherd, shepherd.pipe):
            pass
        self.pool.died(shepherd)
        for asked in shepherd.asked.values():
            if isinstance(asked, orders.Append | orders.Deliver):
                self._wrote(asked.id, "the shepherd that wrote it died")
            else:
                self._answer(failed(asked, "the shepherd that read it died"))
        shepherd.asked.clear()
        part = self.parts.get(shepherd.busy) if shepherd.busy is not None else None
        shepherd.busy = None
        if part is not None:
            code = os.waitstatus_to_exitcode(status)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            part.reason = Lost(part.uid, f"the shepherd of {part.title} {how}")
            cgroup.remove(part.cgroup, 0)
            self._lost.append(part)
        self._end_orphans()

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
        if part.state.over:
            if part.state is PartState.REFUSED:
                self._drop([part])
            return
        known = part.end is not None
        if not known:
            part.end = account.read_ends(self.journal.end_path(part.shepherd)).get(part.uid)
        if part.end is None:
            assert part.reason is not None
            part.state = PartState.LOST
            self.journal.over(part)
            self._report(part.reason)
            return
        part.reason = None
        part.state = PartState.GONE
        self._report(Gone(part.uid) if known or (again := part.again()) is None else again)
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
                for shepherd in list(self.pool.shepherds.values()):
                    self._read(shepherd)
                self.pool.flush()
                self.reap()
                self.on_time()
                time.sleep(0.005)

        wait(lambda: any(shepherd.busy for shepherd in self.pool.by_pid.values()), 4.0)
        for shepherd in self.pool.by_pid.values():
            proctree.send(shepherd.pid, signal.SIGKILL)
        wait(lambda: bool(self.pool.by_pid) or self._orphans, 10.0)


_ANSWER: dict[type, type] = {orders.Read: Data, orders.FindFolders: Folders, orders.Append: Wrote, orders.Deliver: Wrote}


def failed(asked: orders.Read | orders.FindFolders, why: str) -> Data | Folders:
    """The answer to what could not be read."""
    return Data(asked.id, error=why) if isinstance(asked, orders.Read) else Folders(asked.id, error=why)
