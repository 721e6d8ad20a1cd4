"""One process that does commands for their callers, one after the other, as the callers would have done them.

Rules: words, environment, folder, umask and standard files are the caller's; everything else is what the server has inherited
from its first caller, and identity.c finds this server only where that is the same. A request is only done when it has come
whole, and the process ends with its caller. Where it ends before it has done anything for the caller (``Context.acts``), or the
command needs a process of the caller's session (``Context.need_own_process``), the caller does it. After a request that left
anything behind no other is taken.
"""

from __future__ import annotations

import os
import select
import signal
import time
from _socket import MSG_CMSG_CLOEXEC, MSG_CTRUNC, SCM_RIGHTS, SO_PEERCRED, SOL_SOCKET
from _socket import socket as Socket
from fcntl import F_GETFL, F_SETFL, F_SETOWN, fcntl
from resource import RUSAGE_SELF, getrusage
from struct import error as NotPacked
from struct import pack, unpack

from cli.client.context import Context, OwnProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from mmap import mmap

    Commands = dict[str, Callable[[list[str]], int]]

SPARE = 2
"""Workers that wait for a request."""
MOST = 64
"""Workers of a server; further requests wait, or their commands do them by themselves."""
REQUESTS = 200
"""That one worker does."""
ACCEPT_SECONDS = 20
"""After which a worker that waits looks whether it is still needed."""
LARGEST_REQUEST = 1 << 17
LARGEST_MEMORY = 1 << 16
"""KB; a worker that has had more ends."""
READY, DONE, PLAIN = b"R", b"D", b"P"
HEAD = 16
FREE, WAITS, BUSY = 0, 1, 2
SERVED, ENDED = MOST, MOST + 1
"""Places of the flags of the server itself: BUSY where a request came, or where it ends."""


class Shared:
    """What server and workers have in common: a flag for each worker, which it sets itself, and whether requests came."""

    def __init__(self, flags: mmap, wake: int, files: list[str], server: int, coerced: dict[bytes, bytes]) -> None:
        self.flags = flags
        self.wake = wake
        self.files = files
        self.server = server
        self.coerced = coerced
        """Variables that Python has set as it started, whatever they were."""
        self._changes = self._changed()

    def is_old(self) -> bool:
        """Whether a file of lava has changed since the server was started."""
        return self._changed() != self._changes

    def _changed(self) -> list[int]:
        try:
            return [os.stat(file).st_mtime_ns for file in self.files]
        except OSError:
            return []

    def served(self) -> bool:
        """Whether a request has come since this was asked last."""
        came = self.flags[SERVED] == BUSY
        self.flags[SERVED] = FREE
        return came


class Worker:
    """``place``: its flag's in what is shared."""

    def __init__(self, link: Socket, commands: Commands, shared: Shared, place: int) -> None:
        self._link = link
        self._commands = commands
        self._shared = shared
        self._place = place
        self._nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._lowest = self._lowest_free()
        self._entries: list[bytes] = []
        """The environment of the last request, which commands do not change."""

    def run(self) -> None:
        """Until the server has ended, there are enough others, or something is left of a request."""
        flags = self._shared.flags
        for _ in range(REQUESTS):
            flags[self._place] = WAITS
            if flags[ENDED]:  # by a signal that came while it was ignored
                return
            link = self._accepted()
            # From here on the end of the server, which ends those that wait, is no concern of this process.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            flags[self._place] = flags[SERVED] = BUSY
            if WAITS not in flags[:MOST]:
                os.write(self._shared.wake, b"\n")
            _, uid, _ = unpack("3i", link.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))
            if uid != os.geteuid() or self._shared.is_old():
                return
            link.send(READY)
            if not self._done(link):
                return
            link.close()
            if self._lowest_free() != self._lowest or getrusage(RUSAGE_SELF).ru_maxrss > LARGEST_MEMORY:
                return
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _accepted(self) -> Socket:
        while True:
            try:
                return Socket(fileno=self._link._accept()[0])  # type: ignore[attr-defined]
            except BlockingIOError:
                if os.getppid() != self._shared.server or self._shared.flags[:MOST].count(WAITS) > SPARE:
                    raise SystemExit from None

    def _lowest_free(self) -> int:
        descriptor = os.dup(self._nothing)
        os.close(descriptor)
        return descriptor

    def _done(self, link: Socket) -> bool:
        """Take the caller's place, run the command, answer; whether another request may follow."""
        try:
            name, words, at = self._take_place(link)
            command = self._commands[name]
        except (OSError, LookupError, ValueError, OverflowError, NotPacked):
            link.send(PLAIN)
            return False
        # The caller sends nothing more: what comes is its end, and SIGIO ends this process at once, whatever it waits for.
        flags = fcntl(link, F_GETFL)
        fcntl(link, F_SETOWN, os.getpid())
        fcntl(link, F_SETFL, flags | os.O_ASYNC)
        ended = select.poll()
        ended.register(link, select.POLLRDHUP)
        if ended.poll(0):
            return False
        Context.caller = link
        try:
            status = command(words)
        except OwnProcess as asked:
            fcntl(link, F_SETFL, flags)
            _give_back(link, at, asked.taken)
            return False
        fcntl(link, F_SETFL, flags)
        self._leave()
        link.send(DONE + bytes((status & 255,)))
        return True

    def _take_place(self, link: Socket) -> tuple[str, list[str], int]:
        """Become what the request says -> (command, words, the position in standard input, -1 where it has none)."""
        head, rights, flags, _ = link.recvmsg(HEAD, 64, MSG_CMSG_CLOEXEC)
        if flags & MSG_CTRUNC:
            raise OSError("this process, or the system, can open no more files")
        ((_, _, files),) = rights
        size, umask, words, _ = unpack("4I", head)
        if not HEAD <= size <= LARGEST_REQUEST:
            raise ValueError(f"a request of {size} bytes")
        data = b""
        while len(data) < size - HEAD:
            data += link.recv(size - HEAD - len(data)) or _gone()
        texts = data.split(b"\0")
        *standard, folder = unpack("4i", files)
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.fchdir(folder)
        os.close(folder)
        os.umask(umask)
        if (entries := texts[1 + words : -1]) != self._entries:
            os.environb.clear()
            os.environb.update(_environment(entries, self._shared.coerced))
            self._entries = entries
        time.tzset()
        try:
            at = os.lseek(0, 0, os.SEEK_CUR)
        except OSError:
            at = -1
        return os.fsdecode(texts[0]), [os.fsdecode(word) for word in texts[1 : 1 + words]], at

    def _leave(self) -> None:
        """Let go of what is the caller's: a pipe has to end, a folder to be removable."""
        for number in (0, 1, 2):
            os.dup2(self._nothing, number)
        os.chdir("/")


def _environment(entries: list[bytes], coerced: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """In the order of the caller's; of a variable that stands there twice the first counts, as for Python."""
    wanted: dict[bytes, bytes] = {}
    for entry in entries:
        variable, _, value = entry.partition(b"=")
        wanted.setdefault(variable, value)
    return {**wanted, **coerced}


def _gone() -> bytes:
    raise SystemExit


def _give_back(link: Socket, at: int, taken: bytes) -> None:
    """Let the caller do it as if nothing had been read of its standard input."""
    if at >= 0:
        os.lseek(0, at, os.SEEK_SET)
    if at >= 0 or not taken:
        link.send(PLAIN)
        return
    end, pipe = os.pipe()
    link.sendmsg([PLAIN], [(SOL_SOCKET, SCM_RIGHTS, pack("i", end))])
    os.close(end)
    data = memoryview(taken)
    while data:
        data = data[os.write(pipe, data) :]
