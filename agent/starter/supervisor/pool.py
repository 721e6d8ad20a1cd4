"""The pool of shepherds: each part has one, which is kept for the next part of the same user.

Rule: a shepherd gets a part only after it has reported that nothing of its last part is left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from agent.starter.process import ends
from agent.starter.protocol.orders import write_order
from agent.starter.supervisor import shepherd_handle
from agent.starter.supervisor.forker import Forked, Forker, ToFork
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.shepherd_handle import Asked, ShepherdHandle, ShepherdKey
from agent.starter.system import proctree
from agent.starter.system.cgroup import NOWHERE, Groups, Places
from agent.starter.system.watch import Watch
from agent.starter.wire import frames
from agent.starter.wire.pipe import FramePipe

IDLE_SECONDS = 60.0
MAX_IDLE = 64
MAX_END_FILE = 1 << 20
MAX_ASKED = 32
ForkAll = Callable[[Sequence[ToFork]], list[Forked | OSError]]


class Home(NamedTuple):
    """What all shepherds of a starter have in common."""

    host: str
    places: Places = NOWHERE
    """Where cgroups with limits can be made."""
    oom_score: int = 0
    """At least their oom_score_adj."""
    fenced: bool = False
    """The former starter was in a cgroup, which has been cleared: nothing of its parts is left."""
    forker: Forker | None = None
    """Who forks shepherds, None: the starter itself."""


class _Ends(NamedTuple):
    """What is made before a shepherd is forked: both ends of its socket, and its end file."""

    ours: socket.socket
    theirs: socket.socket
    end_file: ends.EndFile

    def close(self) -> None:
        """There is no process for it."""
        self.ours.close()
        self.theirs.close()
        self.end_file.close()


class Pool:
    """All shepherds, by number and by pid. ``on_readable`` is called with a shepherd whose socket is ready."""

    def __init__(self, home: Home, journal: Journal, watch: Watch, on_readable: Callable[[ShepherdHandle], None]) -> None:
        self._home = home
        self._journal = journal
        self._watch = watch
        self._on_readable = on_readable
        self._last = 0
        self._idle: dict[ShepherdKey, list[ShepherdHandle]] = {}
        self.shepherds: dict[int, ShepherdHandle] = {}
        self.by_pid: dict[int, ShepherdHandle] = {}
        self.to_flush: set[ShepherdHandle] = set()
        self._shared: dict[ShepherdKey, ShepherdHandle] = {}

    def children(self) -> set[int]:
        """The children of the starter that are no orphans."""
        forker = self._home.forker
        return {*self.by_pid, forker.pid} if forker else {*self.by_pid}

    def reserve(self, key: ShepherdKey) -> ShepherdHandle:
        """An idle shepherd with this key, or a new one that ``ensure`` is to fork.

        The last one that became idle, of those whose ends are not needed any more where there is one: it has its end file anew.
        """
        if idle := self._idle.get(key):
            at = next((at for at in range(len(idle) - 1, -1, -1) if not idle[at].kept), -1)
            shepherd = idle.pop(at)
            if shepherd.end_file and shepherd.end_bytes and not shepherd.kept:
                shepherd.end_file.rewind()
                shepherd.end_bytes = 0
            return shepherd
        self._last += 1
        return ShepherdHandle(self._last, key)

    def ask(self, key: ShepherdKey, order: Asked) -> None:
        """Give a shepherd a request; those of one turn and one user go to the same one.

        OSError when none can be forked, or the request is too large for a frame.
        """
        try:
            frame = frames.pack(write_order(order))
        except frames.FrameError as e:
            raise OSError(errno.EMSGSIZE, str(e)) from None
        shepherd = self._shared.get(key)
        if shepherd is None or shepherd.doomed or len(shepherd.asked) >= MAX_ASKED:
            shepherd = self.reserve(key)
            self.ensure(shepherd)
            self._shared[key] = shepherd
        shepherd.asked[order.id] = order
        assert shepherd.pipe is not None
        shepherd.pipe.send_frame(frame)
        self.to_flush.add(shepherd)

    def ensure(self, shepherd: ShepherdHandle) -> None:
        """Fork the shepherd unless it was forked before; OSError when that fails."""
        if failed := self.fork([shepherd]):
            raise failed[shepherd]

    def fork(self, shepherds: Iterable[ShepherdHandle]) -> dict[ShepherdHandle, OSError]:
        """Fork those of the shepherds that have no process, and say why where that failed.

        One fork comes right after the other: each memory page that is written to between two of them is copied once more.
        """
        wanted = [shepherd for shepherd in shepherds if not shepherd.pid]
        forker = self._home.forker
        if forker is not None and all(forker.serves(shepherd.key) for shepherd in wanted):
            with contextlib.suppress(EOFError):
                return self._fork(wanted, forker.fork)
        return self._fork(wanted, self._fork_here)

    def _fork(self, wanted: list[ShepherdHandle], by: ForkAll) -> dict[ShepherdHandle, OSError]:
        failed: dict[ShepherdHandle, OSError] = {}
        made: list[tuple[ShepherdHandle, _Ends]] = []
        for shepherd in wanted:
            try:
                made.append((shepherd, self._make_ends(shepherd)))
            except OSError as e:
                failed[shepherd] = e
        try:
            processes = by([ToFork(shepherd.key, one.theirs.fileno(), one.end_file.fd) for shepherd, one in made])
        except EOFError:
            for _, one in made:
                one.close()
            raise
        for (shepherd, one), process in zip(made, processes, strict=True):
            if isinstance(process, OSError):
                one.close()
                failed[shepherd] = process
            else:
                self._forked(shepherd, one, process)
        self._journal.add_shepherds([shepherd.record() for shepherd in wanted if shepherd.pid])
        return failed

    def _fork_here(self, asked: Sequence[ToFork]) -> list[Forked | OSError]:
        found: list[int | OSError] = []
        for key, sock, end_file in asked:
            try:
                pid = os.fork()
            except OSError as e:
                found.append(e)
                continue
            if pid == 0:
                shepherd_handle.run(sock, end_file, key, self._home.host, self._home.oom_score)
            found.append(pid)
        return [Forked(one, proctree.starttime(one)) if isinstance(one, int) else one for one in found]

    def _make_ends(self, shepherd: ShepherdHandle) -> _Ends:
        ours, theirs = socket.socketpair()
        try:
            return _Ends(ours, theirs, ends.make(self._journal.end_path(shepherd.number)))
        except OSError:
            ours.close()
            theirs.close()
            raise

    def _forked(self, shepherd: ShepherdHandle, made: _Ends, process: Forked) -> None:
        ours = made.ours
        made.theirs.close()
        shepherd.pid, shepherd.starttime = process
        shepherd.end_file = made.end_file
        shepherd.groups = Groups(self._home.places, shepherd.number, process.pid)
        shepherd.pipe = FramePipe(ours, self._watch)
        self.shepherds[shepherd.number] = shepherd
        self.by_pid[process.pid] = shepherd
        self._watch.add(ours.fileno(), lambda _: self._on_readable(shepherd))

    def release(self, shepherd: ShepherdHandle) -> None:
        """Nothing of its part is left: make it idle."""
        shepherd.busy = None
        if shepherd.doomed or shepherd.asked:
            return
        if not shepherd.pid:
            return
        if shepherd.end_bytes > MAX_END_FILE:
            self.retire(shepherd)
            return
        shepherd.idle_since = time.monotonic()
        self._idle.setdefault(shepherd.key, []).append(shepherd)

    def _remove_idle(self, shepherd: ShepherdHandle) -> None:
        """Remove a shepherd from the idle ones."""
        idle = self._idle.get(shepherd.key)
        if idle and shepherd in idle:
            idle.remove(shepherd)

    def retire(self, shepherd: ShepherdHandle) -> None:
        """Close the socket of an idle shepherd, upon which it ends by itself."""
        shepherd.doomed = True
        self._remove_idle(shepherd)
        if shepherd.pipe:
            shepherd.pipe.close()

    def kill(self, shepherd: ShepherdHandle) -> None:
        """SIGKILL a shepherd; the starter inherits its processes and ends them."""
        shepherd.doomed = True
        self._remove_idle(shepherd)
        if shepherd.pid in self.by_pid:  # not reaped: its number is still its own
            proctree.send(shepherd.pid, signal.SIGKILL)

    def reaped(self, pid: int) -> None:
        """A child that is no shepherd has ended."""
        if self._home.forker:
            self._home.forker.reaped(pid)

    def died(self, shepherd: ShepherdHandle) -> None:
        """A shepherd has ended and was reaped."""
        self._remove_idle(shepherd)
        self.by_pid.pop(shepherd.pid, None)
        self.to_flush.discard(shepherd)
        if shepherd.pipe:
            shepherd.pipe.close()
        if shepherd.end_file:
            shepherd.end_file.close()
            shepherd.end_file = None
        if not shepherd.kept:
            self.remove(shepherd)

    def remove(self, shepherd: ShepherdHandle) -> None:
        """Forget a dead shepherd and remove its end file; no end in it is needed any more."""
        if self.shepherds.pop(shepherd.number, None):
            self._journal.remove_ends(shepherd.number)

    def retire_idle(self) -> None:
        """Retire shepherds that were idle for IDLE_SECONDS, and those beyond MAX_IDLE."""
        now = time.monotonic()
        many = sum(map(len, self._idle.values()))
        for idle in list(self._idle.values()):
            for shepherd in list(idle):
                if now - shepherd.idle_since > IDLE_SECONDS or many > MAX_IDLE:
                    many -= 1
                    self.retire(shepherd)

    def flush(self) -> None:
        """Send what is queued, in one write per shepherd."""
        to_flush, self.to_flush = self.to_flush, set()
        self._shared.clear()
        for shepherd in to_flush:
            if shepherd.pipe is not None and not shepherd.pipe.flush():
                self.kill(shepherd)
            elif shepherd.pipe is not None and shepherd.pipe.waiting:
                self.to_flush.add(shepherd)
