"""Whether CRIU works on this host: a process is dumped and restored, as a job of a user without privileges would be.

``criu check`` does not tell: it asks for what only root may do, and knows nothing of the host's rules for namespaces.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.criu import method, namespaces
from agent.starter.system import proctree

WITHIN = 20.0
"""Seconds for each step."""
WITHIN_ALL = 45
"""Seconds for all of them."""
_NOBODY = 65534
_PROGRAM = ["sleep", "600"]


def run(criu: str) -> None:
    """CheckpointError, OSError: why it does not work. Root becomes nobody, for good. Nothing that it started is left."""
    if os.geteuid() == 0:
        namespaces.become(_NOBODY)
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(WITHIN_ALL)
    folder = tempfile.mkdtemp(prefix="lava-criu.")
    try:
        fields = {"folder": folder, "method": "criu", "criu": criu, "timeout": WITHIN}
        method.restart(Asked(fields))
        with _job(Asked(fields)) as group:
            method.write(Asked({**fields, "group": group, "kill": True}))
        with _job(Asked({**fields, "again": True})):
            pass
    finally:
        signal.alarm(0)
        proctree.kill_all(lambda: proctree.below([os.getpid()]))
        shutil.rmtree(folder, ignore_errors=True)


def _too_late(number: int, frame: object) -> NoReturn:
    raise CheckpointError(f"it took longer than {WITHIN_ALL} seconds")


@contextmanager
def _job(asked: Asked) -> Iterator[int]:
    """The program as a job, until the block ends: its process group."""
    group = os.fork()
    if group == 0:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            method.run(asked, _PROGRAM)
        finally:
            os._exit(1)
    try:
        method.processes_soon(group)
        yield group
    finally:
        proctree.kill_all(lambda: {group, *proctree.below([group])})
        os.waitpid(group, 0)
