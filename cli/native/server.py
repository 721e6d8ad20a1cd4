"""The server behind the native commands (front.c): a process of the user's own, with forks of it that do the commands.

Rule: it ends after IDLE seconds without a request, at SIGTERM, once lava's files have changed, and once its socket is gone;
what runs then goes on. ``worker.py`` says how one request is done.
"""

from __future__ import annotations

import gc
import math
import os
import select
import signal
import sys
import time
from _socket import AF_UNIX, SO_RCVTIMEO, SOCK_STREAM, SOL_SOCKET
from _socket import socket as Socket
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import partial
from importlib import import_module
from mmap import mmap
from struct import pack

from cli.native.worker import ACCEPT_SECONDS, BUSY, ENDED, FREE, MOST, SPARE, Shared, Worker
from proto.commands import COMMANDS, NATIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.native.worker import Commands

FOLDER, LOCK = 3, 4
"""Descriptors, as servers.c leaves them."""
IDLE, NEVER = 150.0, 30.0
"""Seconds without a request after which a server ends, and one that has had none at all."""
LOOK, LOOK_IDLE = 1.0, 10.0
"""Seconds after which the server looks at its socket and lava's files, after a change among its workers and without; a worker
looks at the files at each request."""
MOST_SERVERS = 8
"""Of a user and an installation: one for each set of limits, groups, name spaces …"""
BACKLOG = 512
SILENT = ".silent"
"""Behind the socket's name, where a command has waited for this server in vain, so that others do not."""


def main(argv: list[str]) -> int:
    """Serve under the name of a socket in FOLDER, whose lock is held."""
    name = argv[0]
    os.set_inheritable(FOLDER, False)
    os.set_inheritable(LOCK, False)
    signal.signal(signal.SIGTERM, _end)
    try:
        if _sweep(name) < MOST_SERVERS:
            commands = _commands()
            if not _changed_since(_start(), _files()):
                Server(name, commands).run()
    finally:
        _remove(f"{name}.lock")
        try:
            os.rmdir(os.readlink(f"/proc/self/fd/{FOLDER}"))  # of the user's last server
        except OSError:
            pass
    return 0


def _end(*_: object) -> None:
    raise SystemExit


def _sweep(own: str) -> int:
    """Remove what servers left that were killed -> the number of others of this installation that live."""
    living = 0
    ours = own.partition("-")[0] + "-"
    for entry in os.listdir(f"/proc/self/fd/{FOLDER}"):
        if not entry.endswith(".lock") or entry == f"{own}.lock":
            continue
        try:
            lock = os.open(entry, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=FOLDER)
        except OSError:
            continue
        try:
            flock(lock, LOCK_EX | LOCK_NB)
            for path in (entry.removesuffix(".lock"), entry.removesuffix(".lock") + SILENT, entry):
                _remove(path)
        except BlockingIOError:
            living += entry.startswith(ours)
        finally:
            os.close(lock)
    return living


def _remove(path: str) -> None:
    try:
        os.unlink(path, dir_fd=FOLDER)
    except OSError:
        pass


def _commands() -> Commands:
    """The commands, loaded."""
    found: Commands = {}
    for name in NATIVE:
        main = import_module(COMMANDS[name].module).main
        found[name] = partial(main, command=name) if COMMANDS[name].module == "cli.listing" else main
    for later in ("cli.submit.directives", "cli.submit.folder_probe", "cli.client.hints"):
        import_module(later)  # which commands do when they have begun to act
    return found


def _files() -> list[str]:
    """Python, and the files of lava that are loaded."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    loaded = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return [os.path.realpath(sys.executable), *sorted({file for file in loaded if file.startswith(root + os.sep)})]


def _start() -> float:
    """When this process began, in seconds since the epoch; infinity: the kernel does not say."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        ticks = 0
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age if ticks else math.inf


def _changed_since(start: float, files: list[str]) -> bool:
    """Whether one of them was changed since, so that what is loaded may be of two releases; one of a clock ahead was not."""
    try:
        return any(start <= os.stat(file).st_ctime <= time.time() for file in files)
    except OSError:
        return True


class Server:
    """Keeps SPARE workers that wait for a request, and more while they are busy."""

    def __init__(self, name: str, commands: Commands) -> None:
        self._name = name
        self._commands = commands
        self._workers: dict[int, int] = {}
        """pid -> place in what is shared."""
        self._wakes, wake = os.pipe()
        """Workers, and the ends of workers, wake the server."""
        os.set_blocking(wake, False)
        self._link = Socket(AF_UNIX, SOCK_STREAM)
        _remove(name)
        self._link.bind(f"/proc/self/fd/{FOLDER}/{name}")
        self._link.setsockopt(SOL_SOCKET, SO_RCVTIMEO, pack("ll", ACCEPT_SECONDS, 0))
        self._own = self._inode(name)
        # Python itself sets it where the locale is C's, whatever it was: a command's job gets it, too. Where it has not, its
        # callers, who have the same LC_*, have the same.
        coerced = os.environb.get(b"LC_CTYPE")
        self._shared = Shared(mmap(-1, 4096), wake, _files(), os.getpid(), {b"LC_CTYPE": coerced} if coerced else {})
        os.environ.clear()
        gc.collect()
        gc.freeze()
        gc.disable()

    def run(self) -> None:
        """Until there is a reason to end."""
        self._link.listen(BACKLOG)
        try:
            self._serve()
        finally:
            if self._inode(self._name) == self._own:
                _remove(self._name)
            self._shared.flags[ENDED] = BUSY
            for pid in self._workers:
                os.kill(pid, signal.SIGTERM)  # those that wait: the others do not take it

    def _serve(self) -> None:
        signal.set_wakeup_fd(self._shared.wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._wakes, select.POLLIN)
        most, served = NEVER, time.monotonic()
        looked, woken = served, True
        while True:
            self._reap()
            while self._idle() < SPARE and len(self._workers) < MOST and self._forked():
                pass
            if not self._workers:
                return
            # with all at work, commands do it themselves at once
            self._link.listen(BACKLOG if self._idle() or len(self._workers) < MOST else 0)
            woken = bool(poll.poll(1000 * (LOOK if woken else LOOK_IDLE)))
            if woken:
                os.read(self._wakes, 4096)
            now = time.monotonic()
            if now - looked < LOOK:
                continue
            looked = now
            if self._shared.served():
                most, served = IDLE, now
            if now - served > most or not self._has_name() or self._shared.is_old():
                return

    def _has_name(self) -> bool:
        """Whether commands find this server, which takes back the name that a command has taken from it."""
        if self._inode(self._name) == self._own:
            return True
        if self._inode(self._name + SILENT) != self._own:
            return False
        os.rename(self._name + SILENT, self._name, src_dir_fd=FOLDER, dst_dir_fd=FOLDER)
        return True

    def _inode(self, name: str) -> int:
        try:
            return os.stat(name, dir_fd=FOLDER, follow_symlinks=False).st_ino
        except OSError:
            return 0

    def _idle(self) -> int:
        return sum(self._shared.flags[place] != BUSY for place in self._workers.values())

    def _reap(self) -> None:
        while self._workers:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            place = self._workers.pop(pid, None)
            if place is not None:
                self._shared.flags[place] = FREE

    def _forked(self) -> bool:
        """A further worker; False where there can be none now."""
        place = min(set(range(MOST)) - set(self._workers.values()))
        try:
            pid = os.fork()
        except OSError:
            return False
        if pid:
            self._workers[pid] = place
            return True
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.close(LOCK)
            os.close(FOLDER)
            os.close(self._wakes)
            Worker(self._link, self._commands, self._shared, place).run()
        finally:
            os._exit(0)
