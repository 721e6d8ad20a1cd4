"""The processes around a job of method ``criu``: the one that the shepherd waits for, and the first of the job's namespaces.

    the shepherd's task ─► first process (pid 1: /proc, reaps) ─► the job's own (pid FIRST, session leader, reaps its orphans)

Rule: whatever signal the job's process groups get, these two stay until the job's own process has ended, and end as it did.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable
from typing import NoReturn

from agent.launch.checkpointing.asked import CheckpointError
from agent.launch.checkpointing.criu import command, namespaces
from agent.starter.process import tasks
from agent.starter.system import kernel

FIRST = 1001
"""The pid of the job's own process: smaller ones are free for CRIU at a restore. The kernel's own count begins again at 300."""
FAILED = int(signal.SIGABRT)
"""The wait status of a job that could not be restored: that of a crash, so that an older generation is tried."""
READY = "lava-criu"
"""The short name of the first process from when on the job's own process may be dumped."""
_KEPT_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK


def live(begin: Callable[[], int], network: bool) -> NoReturn:
    """Make the namespaces, have ``begin`` start or restore the job there (its pid), and end as the job does.

    ``network``: the job has one of its own.
    """
    command.ignore_signals()
    folder = os.getcwd()
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    namespaces.make(network)
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _be_first(begin, network, folder, write_end)
    os.close(write_end)
    status = os.waitpid(pid, 0)[1]
    told = os.read(read_end, 16)
    _end_as(int(told) if told else status)


def start(argv: list[str]) -> int:
    """The job's own process, new: its pid. It executes its program when this returns."""
    namespaces.set_next_pid(FIRST)
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            keep = os.dup2(write_end, 3, inheritable=False)
            os.setsid()
            kernel.become_subreaper()
            command.default_signals()
            os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
            tasks.become(argv)
        except OSError as e:
            os.write(2, tasks.as_a_shell_says(argv[0], e)[1])
            os._exit(126)
    os.close(write_end)
    os.read(read_end, 1)
    os.close(read_end)
    return pid


def _be_first(begin: Callable[[], int], network: bool, folder: str, told: int) -> NoReturn:
    status = FAILED
    try:
        namespaces.settle(network)
        os.chdir(folder)
        _reopen()
        pid = begin()
        kernel.set_name(READY)
        while True:
            ended, found = os.wait()
            if ended == pid:
                status = found
                break
    except (CheckpointError, OSError, ValueError) as e:
        sys.stderr.write(f"checkpoints: {getattr(e, 'strerror', None) or e}\n")
        sys.stderr.flush()
    finally:
        os.write(told, str(status).encode())
        os._exit(0)


def _reopen() -> None:
    """Standard files by their paths in these mounts: CRIU knows no others."""
    opened: dict[str, int] = {}
    for fd in (0, 1, 2):
        path = os.readlink(f"/proc/self/fd/{fd}")
        if path in opened:
            os.dup2(opened[path], fd)
            continue
        try:
            there, here = os.stat(path), os.fstat(fd)
            if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
                continue
            new = os.open(path, fcntl.fcntl(fd, fcntl.F_GETFL) & _KEPT_FLAGS | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            continue
        if stat.S_ISREG(here.st_mode):
            os.lseek(new, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(new, fd)
        os.close(new)
        opened[path] = fd


def _end_as(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
