"""What a shepherd does for its user beside running parts: it reads files, looks for folders, and writes what is left of a job.

What is written is the report of a job and output that was kept, into the files that the user named.

Rule: the first thing that goes wrong is the answer, in one line; nothing here waits for a pipe's other end.
"""

from __future__ import annotations

import os
import stat

from agent.starter.part import generations
from agent.starter.protocol.answers import Data, Folders, Generations
from agent.starter.protocol.orders import Append, Deliver, FindFolders, FindGenerations, Read
from agent.starter.protocol.reports import Wrote
from agent.starter.system.stdio import make_folder_of

MOST_READ = 16 << 20
_CHUNK = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


def read(order: Read) -> Data:
    """A piece of a plain file."""
    try:
        fd = os.open(order.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(0, "not a plain file")
            data = os.pread(fd, max(0, min(order.limit, MOST_READ)), max(0, order.offset))
        finally:
            os.close(fd)
    except (OSError, ValueError) as e:
        return Data(order.id, error=f"{order.path}: {_why(e)}")
    return Data(order.id, data, found.st_size)


def find_folders(order: FindFolders) -> Folders:
    """The folders with such a name that have such an entry."""
    try:
        names = [name for name in os.listdir(order.path) if name.startswith(order.prefix)]
        having = [name for name in names if os.path.lexists(os.path.join(order.path, name, order.having))]
    except (OSError, ValueError) as e:
        return Folders(order.id, error=_why(e))
    return Folders(order.id, tuple(having))


def find_generations(order: FindGenerations) -> Generations:
    """The checkpoint generations above the one that is known, oldest first, each checked."""
    whole, damaged = [], []
    try:
        new = [number for number in generations.numbers(order.path) if number > order.above]
    except (OSError, ValueError) as e:
        return Generations(order.id, error=_why(e))
    for number in reversed(new):
        size, why = generations.check(os.path.join(order.path, f"gen-{number}"))
        if why:
            damaged.append((number, why))
        else:
            whole.append((number, size))
    return Generations(order.id, tuple(whole), tuple(damaged))


def write(order: Append | Deliver) -> Wrote:
    """Carry it out."""
    try:
        os.umask(order.umask)
        if isinstance(order, Append):
            _append(order)
        else:
            _deliver(order)
    except (OSError, ValueError) as e:
        return Wrote(f"{getattr(e, 'filename', None) or order.path}: {_why(e)}", order.id)
    return Wrote("", order.id)


def _why(e: Exception) -> str:
    return getattr(e, "strerror", None) or str(e)


def _append(order: Append) -> None:
    fd = _open(order.path, order.truncate, order.mkdir)
    try:
        _put(fd, order.text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(fd)


def _deliver(order: Deliver) -> None:
    """Header, kept output, what stands behind it; then kept errors. What is delivered is removed, and only that.

    Errors that go to the same file stand behind the output, also where they are to replace what a file has.
    """
    fd = _open(order.path, order.truncate, order.mkdir)
    try:
        _put(fd, order.header.encode("utf-8", "surrogateescape"))
        _copy(order.from_, fd)
        _put(fd, order.text.encode("utf-8", "surrogateescape"))
        written = os.fstat(fd)
    finally:
        os.close(fd)
    os.unlink(order.from_)
    if order.from_error:
        fd = _open(order.error, order.error_truncate and not _is_file(order.error, written), order.mkdir)
        try:
            _copy(order.from_error, fd)
        finally:
            os.close(fd)
        os.unlink(order.from_error)


def _is_file(path: str, one: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), one)
    except FileNotFoundError:
        return False


def _open(path: str, truncate: bool, mkdir: bool) -> int:
    if mkdir:
        make_folder_of(path)
    # A pipe without a reader must not hold up the shepherd.
    fd = os.open(path, _FLAGS | (os.O_TRUNC if truncate else 0), 0o666)
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "a pipe", path)
    os.set_blocking(fd, True)
    return fd


def _copy(path: str, to: int) -> None:
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        while data := os.read(source, _CHUNK):
            _put(to, data)
    finally:
        os.close(source)


def _put(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
