"""The folder of a job's checkpoints on its first host: it is made, and tried, before the job starts.

Rule: as the job's user, in its shepherd; a job whose checkpoints could not be written, or not be found again, does not start.
"""

from __future__ import annotations

import os

from agent.starter.protocol.part import CheckpointFolder
from agent.starter.system import mounts
from agent.starter.system.stdio import Refused, code_of

ALL = "all"
"""In LAVA_SHARED_DIRS: every folder is seen by all hosts."""
_SIZE = 4096
"""Bytes of the file that tries the folder: a block, so that a full disk or a quota says so."""


def prepare(wanted: CheckpointFolder, host: str) -> None:
    """Make the folder, or the link to that of the job that goes on, and write a file in it; Refused: which folder, and why."""
    path = wanted.path
    try:
        _make(wanted)
        _try(path)
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or str(e)
        raise Refused(code_of(e, "checkpoint"), f"checkpoint folder {path}: {why}") from None
    if wanted.moves and not _is_shared(wanted):
        why = f"is on a file system of {host} alone: a restart elsewhere would not find its checkpoints"
        raise Refused("checkpoint", f"-k: {os.path.dirname(path)} {why}")


def _make(wanted: CheckpointFolder) -> None:
    if wanted.of and not os.path.lexists(wanted.path):
        os.symlink(wanted.of, wanted.path)
    if not wanted.of:
        os.makedirs(wanted.path, exist_ok=True)
    os.listdir(wanted.path)


def _try(folder: str) -> None:
    name = os.path.join(folder, f".lava.{os.getpid()}.tmp")
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if os.write(fd, bytes(_SIZE)) < _SIZE:
            os.write(fd, bytes(_SIZE))  # says why the first one was cut short
        os.fsync(fd)
    finally:
        os.close(fd)
        os.unlink(name)


def _is_shared(wanted: CheckpointFolder) -> bool:
    real = os.path.realpath(wanted.path)
    if ALL in wanted.shared or any(mounts.is_below(path, one) for one in wanted.shared for path in (wanted.path, real)):
        return True
    mount = mounts.mount_of(mounts.read(), real)
    return mount is None or mount.shared
