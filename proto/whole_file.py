"""Files that are replaced in one move: who reads one sees the former or the new content, never a part of it."""

from __future__ import annotations

import contextlib
import os
import re

_UNFINISHED = re.compile(r"(.+)\.[0-9a-f]{16}\.new")


def replace_file(path: str, content: str | bytes, mode: int = 0o644, *, synced: bool = False) -> None:
    """Write a file of that mode, whatever the umask; OSError, and the former file stays.

    ``synced``: the content is on disk on return. At no moment can anybody read it whom ``mode`` does not let. Several may write
    the same file at a time: the last one's content stays.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    # a name that nobody knows: others may write in the folder, /tmp say, and put a link or a file of theirs there
    new = f"{path}.{os.urandom(8).hex()}.new"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            os.fchmod(fd, mode)
            if synced:
                file.flush()
                os.fsync(fd)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


def remove_unfinished(folder: str, name: str = "") -> None:
    """Remove what a process that was killed in ``replace_file`` left: of this file, or of any ("").

    For who alone writes there, before it does.
    """
    with contextlib.suppress(OSError):
        for found in filter(None, map(_UNFINISHED.fullmatch, os.listdir(folder))):
            if name in ("", found[1]):
                os.unlink(os.path.join(folder, found[0]))


def write_pid(path: str) -> None:
    """Write this process's id, for who stops daemons; OSError."""
    remove_unfinished(*os.path.split(path))
    replace_file(path, f"{os.getpid()}\n")
