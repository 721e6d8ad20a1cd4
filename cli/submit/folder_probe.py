"""A file in the folder of a job's checkpoints while the job is submitted, for hosts to look for: do they see this folder?

Rule: standard library only; where none can be written, none is, and nothing is said: the first host tries the folder again.
"""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.client.frames import Frame

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextlib.contextmanager
def written(frame: Frame) -> Iterator[Frame]:
    """The ask of a submission, with the name of such a file in it while that is there."""
    folder = _nearest(str(frame.get("checkpoint_folder") or ""))
    path = os.path.join(folder, f".lava.{os.urandom(8).hex()}.tmp")
    try:
        if not folder:
            raise FileNotFoundError
        os.close(os.open(path, _FLAGS, 0o600))
    except OSError:
        yield frame
        return
    try:
        yield {**frame, "checkpoint_probe": path, "checkpoint_mount": _mount_of(folder)}
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _nearest(folder: str) -> str:
    """The folder, or what is there of the way to it."""
    while folder and not os.path.isdir(folder):
        if os.path.lexists(folder) or folder == "/":
            return ""
        folder = os.path.dirname(folder)
    return folder


def _mount_of(folder: str) -> str:
    while not os.path.ismount(folder) and folder != "/":
        folder = os.path.dirname(folder)
    return folder
