"""Supervises the shepherds: handles their reports, and acts when one does not answer, is stopped or dies.

Rule: a shepherd is believed only about its own part; when it dies, the starter inherits its processes and ends them.
"""

from __future__ import annotations

import heapq
import math
import os
import signal
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import get_args

from agent.starter.process import ends
from agent.starter.process.ends import ToldEnd
from agent.starter.protocol import orders
from agent.starter.protocol.answers import Data, Folders, Generations
from agent.starter.protocol.codec import ProtocolError
from agent.starter.protocol.orders import AboutMany, ToPart
from agent.starter.protocol.reports import (
    EncodedReport,
    Ended,
    FromShepherd,
    FromStarter,
    Gone,
    Killing,
    PartReport,
    PartState,
    Prepared,
    RanOutOfMemory,
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
from agent.starter.supervisor.parts import Due, Part
from agent.starter.supervisor.pool import Home, Pool
from agent.starter.supervisor.shepherd_handle import ShepherdHandle
from agent.starter.supervisor.user_requests import UserRequests
from agent.starter.system import kernel, proctree
from agent.starter.system.alarm import Alarm
from agent.starter.system.cgroup import Groups
from agent.starter.system.watch import Watch
from agent.starter.wire.frames import FrameError, parsed
from agent.starter.wire.pipe import FramePipe

ACK_SECONDS = 2.0
ACK_SECONDS_EACH = 0.02
MOST_ACK_SECONDS = 30.0
KILL_AGAIN = 5.0
SWEEP_PAUSE = 0.02
BYTES_OF_END = 600
"""The approximate size of an end in an end file."""

MALFORMED = (FrameError, ProtocolError)
"""Raised for malformed data from a shepherd: it is the user's process, and is killed."""

_ANSWERS = (Data, Folders, Generations, Wrote)
"""Reports that answer a request for a user."""
_ABOUT_PARTS = (ToldEnd, *get_args(FromShepherd))


class Supervisor:
    """The parts on this host and the shepherds that run them."""

    def __init__(
        self,
        home: Home,
        journal: Journal,
        watch: Watch,
        parts: dict[str, Part],
        report: Callable[[PartReport | EncodedReport], None],
        answer: Callable[[FromStarter], None],
    ) -> None:
        self.parts = parts
        self.journal = journal
        self.pool = Pool(home, journal, watch, self._read)
        self._report = report
        self.requests = UserRequests(parts, journal, self.pool, report, answer)
        self._timers: list[tuple[float, int, Due, str, int]] = []
        """A heap of (time, unique number, what, uid of the part, for CONFIRMED the number of the kill order)."""
        self._count = 0
        self._lost: list[tuple[Part, int]] = []
        """Parts of dead shepherds, and their users."""
        self._left: list[Groups] = []
        """Of dead shepherds; processes of theirs may still be in them."""
        self._orphans = False
        self._alarm = Alarm(watch)
        self._rings_at = math.inf
        """When a lease has passed that its shepherd ought to have ended, in seconds of CLOCK_BOOTTIME."""

    # -- reports of shepherds ----------------------------------------------------------------------------------------

    def _read(self, shepherd: ShepherdHandle) -> None:
        pipe = shepherd.pipe
        if pipe is None or pipe.closed:
            return
        if self._read_reports(shepherd, pipe) is None:
            if not shepherd.doomed:
                self.pool.kill(shepherd)
            pipe.close()
            return
        if pipe.waiting:
            self.pool.to_flush.add(shepherd)

    def _read_reports(self, shepherd: ShepherdHandle, pipe: FramePipe) -> int | None:
        """Read and handle what a shepherd has sent: the number of reports; None: it closed the socket or broke the protocol."""
        try:
            received = pipe.read_bodies()
            for body in received or ():
                if (report := ends.find_told(body) or find_report(parsed(body))) is not None:
                    self._on_report(shepherd, report)
        except MALFORMED:
            return None
        return None if received is None else len(received)

    def _on_report(self, shepherd: ShepherdHandle, report: Report | ToldEnd) -> None:
        if isinstance(report, _ANSWERS):
            self.requests.answered(shepherd, report)
        elif isinstance(report, _ABOUT_PARTS) and report.uid == shepherd.busy and (part := self.parts.get(report.uid)):
            self._on_part_report(shepherd, part, report)

    def _on_part_report(self, shepherd: ShepherdHandle, part: Part, report: FromShepherd | ToldEnd) -> None:
        match report:
            case ToldEnd() | Ended():
                self._ended(shepherd, part, report)
            case Gone(_, post):
                part.post = post
                self._gone(shepherd, part)
            case Prepared(_, addr, attach):
                part.state, part.addr, part.attach_address = PartState.PREPARED, addr, attach
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
                part.task_reports[rank] = report
                self._report(report)
            case Killing():
                part.kill_asked = 0
                self._arm(KILL_AGAIN, Due.GONE, part.uid)
            case Stuck():
                # A process of the part has changed its user: only a starter that runs as root can kill it.
                proctree.kill_all(lambda: proctree.below([shepherd.pid]))

    def _ended(self, shepherd: ShepherdHandle, part: Part, report: Ended | ToldEnd) -> None:
        if not part.has_ended:
            encoded = part.ended(report)
            shepherd.kept.add(part.uid)
            shepherd.end_bytes += BYTES_OF_END
            self.journal.ended(encoded)
            self._look_at_memory(shepherd, part)
            self._report(encoded.report(report.gone))
        else:
            self._report(report.encoded.report(True) if isinstance(report, ToldEnd) else report)
        part.state = PartState.GONE if report.gone else PartState.ENDED
        if part.state is PartState.GONE:
            self._free(shepherd, part)

    def _look_at_memory(self, shepherd: ShepherdHandle, part: Part) -> None:
        """Before its end is told: whether the kernel has killed processes of it for its memory limit."""
        if shepherd.groups and shepherd.groups.ran_out_of_memory():
            part.oom = True
            self.journal.ran_out_of_memory(part)
            self._report(RanOutOfMemory(part.uid))

    def _gone(self, shepherd: ShepherdHandle, part: Part) -> None:
        if part.state is not PartState.REFUSED:
            part.state = PartState.GONE
            self._report(Gone(part.uid, part.post))
        self._free(shepherd, part)

    def _free(self, shepherd: ShepherdHandle, part: Part) -> None:
        if shepherd.groups:
            shepherd.groups.end()
        if part.forgotten or part.state is PartState.REFUSED:
            self._drop([part])
        self.pool.release(shepherd)

    def _drop(self, parts: list[Part]) -> None:
        """Forget these parts."""
        for part in parts:
            self.parts.pop(part.uid, None)
            shepherd = self.pool.shepherds.get(part.shepherd)
            if shepherd is not None:
                shepherd.kept.discard(part.uid)
                if not shepherd.kept:
                    self.pool.needed_no_more(shepherd)
        if parts:
            self.journal.forget([part.uid for part in parts])

    def forget(self, uids: Iterable[str]) -> None:
        """The master has the ends of these parts: forget each, at once or as soon as it is over."""
        known = [part for uid in uids if (part := self.parts.get(uid)) is not None and (part.state.over or part.has_ended)]
        for part in known:
            part.forgotten = True
        self._drop([part for part in known if part.state.over])

    # -- orders to shepherds -----------------------------------------------------------------------------------------

    def order(self, part: Part, order: ToPart) -> None:
        """Send an order about a part to its shepherd."""
        shepherd = self.pool.shepherds.get(part.shepherd)
        if shepherd is not None and shepherd.busy == part.uid:
            shepherd.send(order._replace(uids=(part.uid,)) if isinstance(order, AboutMany) else order)
            self.pool.to_flush.add(shepherd)

    def kill(self, part: Part, posts: bool = False, among: int = 1) -> None:
        """Kill a part (``posts``: post-execution follows), and its shepherd if it does not confirm that in time.

        Where it is one ``among`` many, each has as much more time as all of them take on a busy machine.
        """
        shepherd = self.pool.shepherds.get(part.shepherd)
        if part.state.over or shepherd is None or shepherd.busy != part.uid or part.kill_asked:
            return
        self._count += 1
        part.kill_asked = self._count
        self.order(part, orders.Kill((part.uid,), posts))
        seconds = min(ACK_SECONDS + ACK_SECONDS_EACH * max(among, len(self._timers)), MOST_ACK_SECONDS)
        self._arm(seconds, Due.CONFIRMED, part.uid, part.kill_asked)

    def watch_lease(self, part: Part) -> None:
        """Check at the part's deadline that its shepherd has acted."""
        if part.deadline is not None and part.overdue_at() < self._rings_at:
            self._rings_at = part.overdue_at()
            self._alarm.set(self._rings_at)

    def _end_leases(self) -> None:
        """Kill the shepherds that let a lease pass, whatever they may say later; set the alarm for the next one."""
        now = kernel.boottime()
        if now < self._rings_at:
            return
        self._rings_at = math.inf
        for part in list(self.parts.values()):
            shepherd = self.pool.shepherds.get(part.shepherd)
            if part.deadline is None or part.state.over or shepherd is None or shepherd.busy != part.uid:
                continue
            if part.overdue_at() > now:
                self.watch_lease(part)
            elif not shepherd.doomed:
                self.pool.kill(shepherd)

    # -- time --------------------------------------------------------------------------------------------------------

    def _arm(self, seconds: float, what: Due, uid: str, kill: int = 0) -> None:
        self._count += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._count, what, uid, kill))

    def wait_for(self) -> float | None:
        """Seconds until ``on_time`` has something to do."""
        if self._orphans:
            return SWEEP_PAUSE
        timer = self._timers[0][0] - time.monotonic() if self._timers else math.inf
        pause = min(max(0.0, timer), self.pool.removals.wait_for())
        return pause if pause < math.inf else None

    def on_time(self) -> None:
        """Do what is due."""
        if self._orphans:
            self._end_orphans()
        self._end_leases()
        self.pool.removals.on_time()
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            _, _, what, uid, kill = heapq.heappop(self._timers)
            part = self.parts.get(uid)
            shepherd = self.pool.shepherds.get(part.shepherd) if part else None
            if part is None or shepherd is None or shepherd.busy != uid:
                continue
            if what is Due.GONE:
                self.kill(part)
            elif kill == part.kill_asked:
                self.pool.kill(shepherd)

    # -- death -------------------------------------------------------------------------------------------------------

    def reap(self) -> None:
        """Reap every child that has ended: shepherds, and processes inherited from dead ones; see to those that were stopped."""
        died = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                pid = 0
            if not pid:
                break
            if os.WIFSTOPPED(status):
                self.pool.stopped(pid)
            elif (shepherd := self.pool.by_pid.get(pid)) is not None:
                self._died(shepherd, status)
                died = True
            else:
                self.pool.reaped(pid)
        if died:
            self._end_orphans()

    def _died(self, shepherd: ShepherdHandle, status: int) -> None:
        while shepherd.pipe is not None and not shepherd.pipe.closed and self._read_reports(shepherd, shepherd.pipe):
            pass
        part = self.parts.get(shepherd.busy) if shepherd.busy is not None else None
        shepherd.busy = None
        if part is not None:
            shepherd.kept.add(part.uid)  # its end may be in its file without having been reported
            if not part.has_ended:
                self._look_at_memory(shepherd, part)
        if shepherd.groups:
            shepherd.groups.forbid_forks()
            self._left.append(shepherd.groups)
        self.pool.died(shepherd)
        self.requests.shepherd_died(shepherd)
        if part is not None:
            part.reason = part.lost_with(os.waitstatus_to_exitcode(status))
            self._lost.append((part, shepherd.key.uid))

    def _end_orphans(self) -> None:
        """Kill the processes inherited from dead shepherds; settle the parts of users of whom none is left."""
        orphans = partial(proctree.alive_below_this, self.pool.children())
        try:
            users = {proctree.user_of(pid) for pid in orphans()}
        except OSError:
            self._orphans = True  # /proc cannot be read: not that there are none
            return
        self._orphans = bool(users)
        if self._orphans:
            proctree.kill_all(orphans)
        else:
            for groups in self._left:
                groups.discard()
            self._left.clear()
        waits = []
        for part, uid in self._lost:
            try:
                if users.isdisjoint((uid, 0)):  # what runs as root may have been anyone's
                    self._settle_lost(part)
                    continue
            except OSError:
                self._orphans = True  # its end file cannot be opened now: not that it has no end
            waits.append((part, uid))
        self._lost = waits

    def _settle_lost(self, part: Part) -> None:
        """Report the end of a part whose shepherd died: as found in the end file, else as lost."""
        if part.state.over:
            if part.state is PartState.REFUSED:
                self._drop([part])
            return
        known = part.end is not None
        if not known:
            part.end = ends.read_ends(self.journal.end_path(part.shepherd), sure=True).get(part.uid)
        if part.end is None:
            assert part.reason is not None
            part.state = PartState.LOST
            self.journal.lost(part)
            self._report(part.reason)
            return
        if not known:
            self.journal.ended(ends.encode_end(part.uid, part.end))
        part.reason = None
        part.state = PartState.GONE
        self._report(Gone(part.uid) if known or (again := part.current_report()) is None else again)
        if part.forgotten:
            self._drop([part])

    def stop(self) -> None:
        """The starter ends: kill all parts, then all shepherds and the processes that they leave; give up after 10 s."""
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
