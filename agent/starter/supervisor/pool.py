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
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from agent.starter.process import ends
from agent.starter.protocol.orders import write_order
from agent.starter.supervisor import shepherd_handle
from agent.starter.supervisor.forker import Forked, Forker, ToFork
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.shepherd_handle import Asked, ShepherdHandle, ShepherdKey
from agent.starter.system import proctree
from agent.starter.system.cgroup import NOWHERE, Groups, Places, Removals
from agent.starter.system.watch import Watch
from agent.starter.wire import frames
from agent.starter.wire.pipe import FramePipe

IDLE_SECONDS = 60.0
MAX_IDLE = 64
MAX_LIGHT = 1024
"""Idle shepherds without Python in memory: they take a tenth of a megabyte each, and as many parts may come again."""
LIGHT = 2 << 20
"""Bytes of its own in memory that none with Python has."""
MAX_END_FILE = 1 << 20
MAX_ASKED = 32
MOST_STOPS = 100
"""How often a shepherd is continued in one part."""
PAGE = os.sysconf("SC_PAGE_SIZE")
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
    forkers: tuple[Forker, ...] = ()
    """Who forks shepherds, the first that does such ones; the starter itself where none does."""


class _Ends(NamedTuple):
    """What is made before a shepherd is forked: both ends of its socket, its end file, its group."""

    ours: socket.socket
    theirs: socket.socket
    end_file: ends.EndFile
    groups: Groups

    def close(self) -> None:
        """There is no process for it."""
        self.ours.close()
        self.theirs.close()
        self.end_file.close()
        self.groups.discard()


class _Idle:
    """The idle shepherds of one key, the newest last: those whose ends are still needed, and those that are free."""

    __slots__ = ("free", "kept")

    def __init__(self) -> None:
        self.free: dict[ShepherdHandle, None] = {}
        self.kept: dict[ShepherdHandle, None] = {}

    def __iter__(self) -> Iterator[ShepherdHandle]:
        return chain(self.kept, self.free)

    def add(self, shepherd: ShepherdHandle) -> None:
        (self.kept if shepherd.kept else self.free)[shepherd] = None

    def remove(self, shepherd: ShepherdHandle) -> bool:
        """Whether it was here."""
        return self.kept.pop(shepherd, shepherd) is None or self.free.pop(shepherd, shepherd) is None

    def take(self) -> ShepherdHandle | None:
        """One that is free where there is one."""
        found = self.free or self.kept
        return found.popitem()[0] if found else None


class Pool:
    """All shepherds, by number and by pid. ``on_readable`` is called with a shepherd whose socket is ready."""

    def __init__(self, home: Home, journal: Journal, watch: Watch, on_readable: Callable[[ShepherdHandle], None]) -> None:
        self._home = home
        self._journal = journal
        self._watch = watch
        self._on_readable = on_readable
        self._last = 0
        self.removals = Removals()
        self._idle: defaultdict[ShepherdKey, _Idle] = defaultdict(_Idle)
        self.shepherds: dict[int, ShepherdHandle] = {}
        self.by_pid: dict[int, ShepherdHandle] = {}
        self.to_flush: set[ShepherdHandle] = set()
        self._shared: dict[ShepherdKey, ShepherdHandle] = {}

    def children(self) -> set[int]:
        """The children of the starter that are no orphans."""
        return {*self.by_pid, *(forker.pid for forker in self._home.forkers)}

    def reserve(self, key: ShepherdKey) -> ShepherdHandle:
        """An idle shepherd with this key, or a new one that ``ensure`` is to fork.

        The last one that became idle, of those whose ends are not needed any more where there is one: it gets a new end file.
        """
        if (shepherd := self._idle[key].take()) is not None:
            shepherd.stops = 0
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
        failed: dict[ShepherdHandle, OSError] = {}
        for forker in self._home.forkers:
            if served := [one for one in wanted if not one.pid and one not in failed and forker.serves(one.key)]:
                with contextlib.suppress(EOFError):
                    failed |= self._fork(served, forker.fork)
        return failed | self._fork([one for one in wanted if not one.pid and one not in failed], self._fork_here)

    def _fork(self, wanted: list[ShepherdHandle], by: ForkAll) -> dict[ShepherdHandle, OSError]:
        failed: dict[ShepherdHandle, OSError] = {}
        made: list[tuple[ShepherdHandle, _Ends]] = []
        for shepherd in wanted:
            try:
                made.append((shepherd, self._make_ends(shepherd)))
            except OSError as e:
                failed[shepherd] = e
        try:
            asked = [ToFork(shepherd.key, one.theirs.fileno(), one.end_file.fd, one.groups.home) for shepherd, one in made]
            processes = by(asked)
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
        for key, sock, end_file, _ in asked:
            try:
                pid = os.fork()
            except OSError as e:
                found.append(e)
                continue
            if pid == 0:
                shepherd_handle.run(sock, end_file, key, self._home.host, self._home.oom_score)
            found.append(pid)
        return [Forked(one, proctree.starttime(one), False) if isinstance(one, int) else one for one in found]

    def _make_ends(self, shepherd: ShepherdHandle) -> _Ends:
        ours, theirs = socket.socketpair()
        try:
            end_file = self._journal.make_ends(shepherd.number)
        except OSError:
            ours.close()
            theirs.close()
            raise
        return _Ends(ours, theirs, end_file, Groups(self._home.places, shepherd.number, self.removals))

    def _forked(self, shepherd: ShepherdHandle, made: _Ends, process: Forked) -> None:
        ours = made.ours
        made.theirs.close()
        shepherd.pid, shepherd.starttime, moved = process
        shepherd.end_file = made.end_file
        shepherd.groups = made.groups
        shepherd.groups.take(process.pid, moved)
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
        self._idle[shepherd.key].add(shepherd)

    def needed_no_more(self, shepherd: ShepherdHandle) -> None:
        """No end in its end file is needed: if it is dead, it is removed."""
        if shepherd.pid not in self.by_pid:
            self.remove(shepherd)
        elif self._idle[shepherd.key].remove(shepherd):
            self._idle[shepherd.key].add(shepherd)

    def _remove_idle(self, shepherd: ShepherdHandle) -> None:
        """Remove a shepherd from the idle ones."""
        self._idle[shepherd.key].remove(shepherd)

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

    def stopped(self, pid: int) -> None:
        """A child was stopped: a shepherd, to which its job can do that, goes on; one that is stopped all the time is killed."""
        if (shepherd := self.by_pid.get(pid)) is None:
            return
        shepherd.stops += 1
        if shepherd.stops > MOST_STOPS:
            self.kill(shepherd)
        else:
            proctree.send(pid, signal.SIGCONT)

    def reaped(self, pid: int) -> None:
        """A child that is no shepherd has ended."""
        for forker in self._home.forkers:
            forker.reaped(pid)

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
        """Retire shepherds that were idle for IDLE_SECONDS, and those beyond MAX_IDLE, of light ones beyond MAX_LIGHT."""
        now = time.monotonic()
        every = [shepherd for idle in self._idle.values() for shepherd in idle]
        light = set(filter(_is_light, every)) if len(every) > MAX_IDLE else set[ShepherdHandle]()
        many = {True: len(light) - MAX_LIGHT, False: len(every) - len(light) - MAX_IDLE}
        for shepherd in every:
            if now - shepherd.idle_since > IDLE_SECONDS or many[shepherd in light] > 0:
                many[shepherd in light] -= 1
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


def _is_light(shepherd: ShepherdHandle) -> bool:
    """By its own memory: how much of the C library is resident differs from system to system."""
    try:
        with open(f"/proc/{shepherd.pid}/statm", "rb") as f:
            resident, shared = map(int, f.read().split()[1:3])
    except (OSError, ValueError):
        return False
    return (resident - shared) * PAGE < LIGHT
