"""Programs that a daemon runs (a site's health check, an elim): how their ends are waited for.

Rule: by a file for each (pidfd_open(2)). Python before 3.12 begins a thread for each, and where a host with a limit of processes
has no room for one the error is not that of a program which cannot be run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys


def wait_by_files() -> None:
    """To be called before the daemon's loop runs; an older kernel keeps the threads."""
    if sys.version_info < (3, 12):
        with contextlib.suppress(OSError, AttributeError):
            os.close(os.pidfd_open(os.getpid()))
            asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
