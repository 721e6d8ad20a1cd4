"""Where calls and their results lie: a folder that the hosts share, or else lava itself carries them."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import shutil
import socket
import tempfile
import time
from typing import TYPE_CHECKING

from lava_client import worker

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST_THROUGH_LAVA = 6 << 20
"""Bytes that a job's standard input may have (``bsub -is``)."""
KEPT = 7 * 86400.0
"""Seconds for which the folder of a process that was killed is kept."""
SHOWN = 2_000
"""Bytes of the log of a lost call that its exception shows."""


def default_base() -> str:
    """LAVA_CLIENT_DIR, else a folder below the user's state folder: home folders are shared at most sites."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.environ.get("LAVA_CLIENT_DIR") or os.path.join(state, "lava_client")


class Folder:
    """A private folder of one executor; what is over is removed at once, the folder with ``remove``."""

    def __init__(self, base: str | None) -> None:
        base = os.path.abspath(base or default_base())
        os.makedirs(base, exist_ok=True)
        _sweep(base)
        self.path = tempfile.mkdtemp(prefix=f"{socket.gethostname()}-{os.getpid()}-", dir=base)
        self._batches = 0

    def write(self, setting: bytes, calls: Sequence[bytes]) -> str:
        """A new batch; its path."""
        self._batches += 1
        path = os.path.join(self.path, str(self._batches))
        with open(path, "wb") as file:
            worker.write_batch(file, setting, calls)
        return path

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


def _sweep(base: str) -> None:
    """Remove what processes of this host have left that were killed long ago."""
    for entry in os.scandir(base):
        host, _, process = entry.name.rpartition("-")[0].rpartition("-")
        if host != socket.gethostname() or not process.isdecimal() or os.path.exists(f"/proc/{process}"):
            continue
        with contextlib.suppress(OSError):
            known = entry.stat(follow_symlinks=False)
            if known.st_uid == os.getuid() and time.time() - known.st_mtime > KEPT:
                shutil.rmtree(entry.path, ignore_errors=True)


def read(batch: str, number: int, ranks: int) -> list[bytes] | None:
    """The results of a call, one a rank; None while there is none. Of ranks that failed that of the first is enough."""
    if not ranks:
        data = _content(worker.result_name(batch, number))
        return None if data is None else [data]
    found = [_content(worker.result_name(batch, number, str(rank))) for rank in range(ranks)]
    here = [data for data in found if data is not None]
    failed = [data for data in here if data[:1] != worker.RESULT]
    return failed[:1] or (here if len(here) == ranks else None)


def _content(path: str) -> bytes | None:
    # over NFS a file of another host is seen once its folder has been read again
    for again in (False, True):
        with contextlib.suppress(OSError):
            if again:
                os.listdir(os.path.dirname(path))
            with open(path, "rb") as file:
                return file.read()
    return None


def has_begun(batch: str, number: int) -> bool:
    """Whether a host that sees the batch has begun the call."""
    path = worker.log_name(batch, number)
    with contextlib.suppress(OSError):
        os.listdir(os.path.dirname(path))
    return os.path.exists(path)


def last_lines(batch: str, number: int, lines: int) -> str:
    """The last lines of what a call has printed so far."""
    size = SHOWN
    while True:
        data, is_all = _end(batch, number, size)
        if is_all or data.count(b"\n") > lines:
            return "".join(data.decode(errors="replace").splitlines(keepends=True)[-lines:])
        size *= 8


def end_of_log(batch: str, number: int) -> str:
    """The end of what a call has printed, for a message."""
    return _end(batch, number, SHOWN)[0].decode(errors="replace").strip()


def _end(batch: str, number: int, size: int) -> tuple[bytes, bool]:
    """The last bytes of a log, which may be of any size, and whether they are all of it."""
    with contextlib.suppress(OSError), open(worker.log_name(batch, number), "rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - size)
        file.seek(begin)
        return file.read(size), not begin
    return b"", True


def forget(batch: str, number: int, ranks: int) -> None:
    """Remove what a call has left."""
    names = [worker.result_name(batch, number, str(rank)) for rank in range(ranks)] or [worker.result_name(batch, number)]
    for name in (*names, worker.log_name(batch, number)):
        with contextlib.suppress(OSError):
            os.unlink(name)


def as_input(setting: bytes, calls: Sequence[bytes]) -> str | None:
    """A batch as ``bsub -is`` carries a file, in base64; None where it is too large."""
    file = io.BytesIO()
    worker.write_batch(file, setting, calls)
    data = file.getvalue()
    return base64.b64encode(data).decode("ascii") if len(data) <= LARGEST_THROUGH_LAVA else None


def from_output(text: str) -> bytes | None:
    """The result at the end of a job's output; None where there is none, or not all of it."""
    _, mark, rest = text.rpartition(worker.MARK.partition("{}")[0])
    size, _, body = rest.partition(worker.MARK.partition("{}")[2] + "\n")
    if not mark or not size.isdecimal():
        return None
    data = body[: int(size)]
    return base64.b64decode(data) if len(data) == int(size) else None
