"""The pool of shepherds: one for each part that is here, kept for the next part of the same user.

Rule: a shepherd is given a part only when it has told that nothing of the last one is left.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable

from agent.starter.supervisor import shepherd_handle
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.shepherd_handle import Asked, ShepherdHandle, ShepherdKey
from agent.starter.system import proctree
from agent.starter.system.watch import Watch
from agent.starter.wire.pipe import FramePipe

IDLE_SECONDS = 60.0
MAX_IDLE = 64
MAX_END_FILE = 1 << 20
MAX_ASKED = 32


class Pool:
    """All shepherds by number and by pid; ``said`` is called with what one of them sends (None: it closed)."""

    def __init__(self, host: str, journal: Journal, watch: Watch, said: Callable[[ShepherdHandle], None]) -> None:
        self._host = host
        self._journal = journal
        self._watch = watch
        self._said = said
        self._last = 0
        self._idle: dict[ShepherdKey, list[ShepherdHandle]] = {}
        self.shepherds: dict[int, ShepherdHandle] = {}
        self.by_pid: dict[int, ShepherdHandle] = {}
        self.to_flush: set[ShepherdHandle] = set()
        self._shared: dict[ShepherdKey, ShepherdHandle] = {}

    def reserve(self, key: ShepherdKey) -> ShepherdHandle:
        """An idle shepherd of this kind, else one that ``ensure`` is still to fork."""
        idle = self._idle.get(key)
        if idle:
            return idle.pop()
        self._last += 1
        return ShepherdHandle(self._last, key)

    def ask(self, key: ShepherdKey, order: Asked) -> None:
        """Give a shepherd work beside parts; all of one turn for one user goes to one shepherd. OSError: it cannot be forked."""
        one = self._shared.get(key)
        if one is None or one.doomed or len(one.asked) >= MAX_ASKED:
            one = self.reserve(key)
            self.ensure(one)
            self._shared[key] = one
        one.asked[order.id] = order
        one.send(order)
        self.to_flush.add(one)

    def ensure(self, one: ShepherdHandle) -> None:
        """Fork the shepherd if it is not there yet; OSError when the system has no room."""
        if one.pid:
            return
        ours, theirs = socket.socketpair()
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
            end_fd = os.open(self._journal.end_path(one.number), flags, 0o600)
            try:
                pid = os.fork()
                if pid == 0:
                    shepherd_handle.run(theirs, end_fd, one.key, self._host)
            finally:
                os.close(end_fd)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        one.pid = pid
        one.pipe = FramePipe(ours, self._watch)
        self.shepherds[one.number] = one
        self.by_pid[pid] = one
        self._watch.add(ours.fileno(), lambda _: self._said(one))
        self._journal.shepherd(one.number, pid, proctree.starttime(pid))

    def rest(self, one: ShepherdHandle) -> None:
        """Nothing of its part is left: back to the pool, with its end file emptied unless an end in it is still wanted."""
        one.busy = None
        if one.doomed or one.asked:
            return
        if not one.pid:
            return
        if one.end_bytes and not one.kept:
            os.truncate(self._journal.end_path(one.number), 0)
            one.end_bytes = 0
        if one.end_bytes > MAX_END_FILE:
            self.let_go(one)
            return
        one.idle_since = time.monotonic()
        self._idle.setdefault(one.key, []).append(one)

    def take_out(self, one: ShepherdHandle) -> None:
        """No longer idle."""
        idle = self._idle.get(one.key)
        if idle and one in idle:
            idle.remove(one)

    def let_go(self, one: ShepherdHandle) -> None:
        """An idle shepherd ends by itself when its socket closes."""
        one.doomed = True
        self.take_out(one)
        if one.pipe:
            one.pipe.close()

    def kill(self, one: ShepherdHandle) -> None:
        """SIGKILL a shepherd that does not obey; its processes become the starter's, which ends them."""
        one.doomed = True
        self.take_out(one)
        if one.pid:
            proctree.send(one.pid, signal.SIGKILL)

    def died(self, one: ShepherdHandle) -> None:
        """Its process has been reaped."""
        self.take_out(one)
        self.by_pid.pop(one.pid, None)
        self.to_flush.discard(one)
        if one.pipe:
            one.pipe.close()
        if not one.kept:
            self.drop(one)

    def drop(self, one: ShepherdHandle) -> None:
        """Remove the end file of a dead shepherd, when no end in it is wanted any more."""
        if self.shepherds.pop(one.number, None):
            try:
                os.unlink(self._journal.end_path(one.number))
            except FileNotFoundError:
                pass

    def retire_idle(self) -> None:
        """End the shepherds that were idle too long, or are too many."""
        now = time.monotonic()
        many = sum(map(len, self._idle.values()))
        for idle in list(self._idle.values()):
            for one in list(idle):
                if now - one.idle_since > IDLE_SECONDS or many > MAX_IDLE:
                    many -= 1
                    self.let_go(one)

    def flush(self) -> None:
        """Send what was queued, in one write for each shepherd."""
        to_flush, self.to_flush = self.to_flush, set()
        self._shared.clear()
        for one in to_flush:
            if one.pipe is not None and not one.pipe.flush():
                self.kill(one)
            elif one.pipe is not None and one.pipe.waiting:
                self.to_flush.add(one)
