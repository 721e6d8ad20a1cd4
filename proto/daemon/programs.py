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
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from proto.names import Entry, find_user


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


def account_of(name: str, find: Callable[[str], Entry | None] = find_user) -> Account:
    """That of an administrator, as whom a daemon of root's runs what is the site's. Raises LookupError, NoAnswer, OSError."""
    entry = find(name)
    if entry is None:
        raise LookupError(f"administrator {name} is not known on this host")
    return Account(name, entry.uid, entry.gid, tuple(os.getgrouplist(name, entry.gid)), entry.home)


_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def site_environment(lsf: Mapping[str, str], own: Account | None) -> dict[str, str]:
    """The variables of such a program: ``lsf``: lsf.conf; ``own``: as whom it runs, None: as this process."""
    kept = {name: value for name in ("LSF_SERVERDIR", "LSF_BINDIR") if (value := lsf.get(name))}
    kept |= {name: value for name in ("LSF_ENVDIR", "TZ", "LANG") if (value := os.environ.get(name))}
    return {"PATH": _PATH, **({"HOME": own.home, "USER": own.name, "LOGNAME": own.name} if own is not None else {}), **kept}


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
