"""Who gets the CPUs of a busy host first: the daemons before the jobs, what works beside jobs last, and jobs with a niceness of
their own by that.

Jobs with more threads than there are cores keep no command and no start of a job waiting.

Rule: other jobs run as if this were not there. The niceness is that of the session's autogroup (sched(7)), and each job has a
session, and so an autogroup, of its own; the niceness of processes, which children inherit, stays as it is.
"""

from __future__ import annotations

import errno
import os
import time

NICENESS = -10
"""Some nine times the share of a session of niceness 0 (sched(7)), while both want a core."""
LEAST = 19
"""The niceness of what works beside jobs."""
TRIES, PAUSE = 20, 0.1
"""The kernel lets all users but root together change one autogroup in a tenth of a second."""
_AUTOGROUP = "/proc/self/autogroup"


def precede_jobs() -> bool:
    """Give this daemon's session precedence over those of jobs; whether it has it.

    It does not without the right to it (root, or RLIMIT_NICE), on a kernel without autogroups, and where the session is that of
    a terminal, whose other processes this is not to be for. Where systemd gives control groups shares of the CPU, those decide.
    """
    if os.getsid(0) != os.getpid():
        return False
    try:
        _write(NICENESS)
    except OSError:
        return False
    return True


def give_way() -> bool:
    """Let this process come after all jobs, whose sessions its niceness alone says nothing to; whether its session does.

    It leads a session of its own from now on, so that nobody else's is meant.
    """
    os.setpriority(os.PRIO_PROCESS, 0, LEAST)
    if os.getsid(0) != os.getpid():
        if os.getpgrp() == os.getpid():
            return False
        os.setsid()
    for _ in range(TRIES):
        try:
            _write(LEAST)
            return True
        except OSError as e:
            if e.errno != errno.EAGAIN:
                return False
        time.sleep(PAUSE)
    return False


def make_nice(pid: int, started: int, niceness: int) -> bool:
    """Let the session that a process leads come after others as its niceness says; whether it does.

    ``started``: the process's start time in clock ticks since boot, as its number may be another's by now. Without root it does
    not where another session on the host was changed just before.
    """
    try:
        process = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fields = _read("stat", process).rpartition(b")")[2].split()
        if (int(fields[3]), int(fields[19])) != (pid, started):
            return False
        _write(niceness, "autogroup", process)
        return True
    except (OSError, IndexError):
        return False
    finally:
        os.close(process)


def _read(name: str, folder: int) -> bytes:
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def _write(niceness: int, name: str = _AUTOGROUP, folder: int | None = None) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, b"%d" % niceness)
    finally:
        os.close(fd)
