"""Programs that a daemon runs (a site's health check, an elim): how one is run, and how their ends are waited for.

Rule: by a file for each (pidfd_open(2)). Python before 3.12 begins a thread for each, and where a host with a limit of processes
has no room for one the error is not that of a program which cannot be run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple


def wait_by_files() -> None:
    """To be called before the daemon's loop runs; an older kernel keeps the threads."""
    if sys.version_info < (3, 12):
        with contextlib.suppress(OSError, AttributeError):
            os.close(os.pidfd_open(os.getpid()))
            asyncio.set_child_watcher(asyncio.PidfdChildWatcher())


MOST_TEXT = 200
"""Characters kept of what a program wrote."""


class Account(NamedTuple):
    """A user as whom a program runs."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


async def run_program(
    words: Sequence[str],
    seconds: float,
    *,
    given: bytes = b"",
    account: Account | None = None,
    env: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """How a program ended within so many seconds, and the end of what it wrote. ``given``: its standard input.

    ``account``: as whom it runs, None: as this process. ``env``: its variables, None: those of this process.
    """
    user, group, groups = (account.uid, account.gid, account.groups) if account is not None else (None, None, None)
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE if given else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
            env=env,
            user=user,
            group=group,
            extra_groups=groups,
        )
    except OSError as error:
        return f"cannot be run: {error.strerror}", ""
    written = b""
    try:
        async with asyncio.timeout(seconds):
            written, _ = await process.communicate(given or None)
    except TimeoutError:
        if process.returncode is None:
            return f"did not end within {seconds:.0f} s", ""
        # it has ended, and left something behind that holds its output
    finally:
        # what it left behind goes too, but for what runs as another user, as a mailer's own may
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    text = " ".join(written.decode(errors="replace").split())[-MOST_TEXT:]
    code = process.returncode or 0
    return (f"exited with {code}" if code >= 0 else f"was ended by signal {-code}"), text
