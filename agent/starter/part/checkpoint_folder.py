"""The folder of a job's checkpoints on one of its hosts: it is made, and tried, before the job starts.

Rule: as the job's user, in its shepherd; a job whose checkpoints could not be written, or not be found again, does not start, nor
one that would go on from what another user has put there.
"""

from __future__ import annotations

import contextlib
import os

from agent.starter.protocol.part import CheckpointFolder
from agent.starter.system import mounts
from agent.starter.system.foreign_folder import why_foreign
from agent.starter.system.stdio import Refused, code_of

ALL = "all"
"""In LAVA_SHARED_DIRS: every folder is seen by all hosts."""
_SIZE = 4096
"""Bytes of the file that tries the folder: a block, so that a full disk or a quota says so."""


def prepare(wanted: CheckpointFolder, host: str) -> None:
    """Make the folder, or the link to that of the job that goes on, and write a file in it; Refused: which folder, and why.

    The same for the folder of copies, below one that is there; then that is the one which other machines must see.
    """
    path = wanted.path
    try:
        if wanted.stage and wanted.of:
            # made on another host
            os.makedirs(os.path.join(os.path.dirname(path), wanted.of), exist_ok=True)
        _make(path, wanted.of)
        if wanted.part:
            path = os.path.join(path, wanted.part)
            _make(path, "")
        _try(path, host)
        if wanted.stage:
            path = wanted.stage
            _make_own(os.path.dirname(path))
            _make(path, wanted.of)
            _try(path, host)
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or str(e)
        raise Refused(code_of(e, "checkpoint"), f"checkpoint folder {path}: {why}") from None
    if wanted.moves and not _is_shared(path, wanted.shared):
        why = f"is on a file system of {host} alone: a restart elsewhere would not find its checkpoints"
        raise Refused("checkpoint", f"-k: {os.path.dirname(path)} {why}")


def _make(path: str, of: str) -> None:
    if of:
        with contextlib.suppress(FileExistsError):  # an earlier attempt's, or of another host of the job
            os.symlink(of, path)
    if not of:
        os.makedirs(path, exist_ok=True)
    os.listdir(path)
    if why := why_foreign(path):
        raise ValueError(why)


def _make_own(folder: str) -> None:
    """The user's own folder for copies, which no other user has made."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if os.lstat(folder).st_uid != os.geteuid():
            raise ValueError(f"{folder} is another user's") from None


def _try(folder: str, host: str) -> None:
    name = os.path.join(folder, f".lava.{host}.{os.getpid()}.tmp")
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if os.write(fd, bytes(_SIZE)) < _SIZE:
            os.write(fd, bytes(_SIZE))  # says why the first one was cut short
        os.fsync(fd)
    finally:
        os.close(fd)
        os.unlink(name)


def _is_shared(folder: str, declared: tuple[str, ...]) -> bool:
    real = os.path.realpath(folder)
    if ALL in declared or any(mounts.is_below(path, one) for one in declared for path in (folder, real)):
        return True
    return mounts.others_may_see(real)
