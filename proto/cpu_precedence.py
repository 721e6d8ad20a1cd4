"""The turn on a busy host of daemons, which goes before that of jobs, and of what works beside jobs, which comes last.

Jobs with more threads than there are cores keep no command and no start of a job waiting.

Rule: jobs run as if this were not there. The niceness is that of the session's autogroup (sched(7)), and each job has a session,
and so an autogroup, of its own; the niceness of processes, which children inherit, stays as it is.
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
    """Let this daemon's session go before those of jobs; whether it does.

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


def _write(niceness: int) -> None:
    fd = os.open(_AUTOGROUP, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"%d" % niceness)
    finally:
        os.close(fd)
