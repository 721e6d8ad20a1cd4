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

MOST = 16
"""Files at most, as the master has so many looked for."""
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextlib.contextmanager
def written(frame: Frame) -> Iterator[Frame]:
    """The ask of a submission, with the name of such a file in it while that is there."""
    with written_all([frame]) as [tried]:
        yield tried


@contextlib.contextmanager
def written_all(frames: list[Frame]) -> Iterator[list[Frame]]:
    """The asks of many submissions, with one such file for each folder: at most MOST, on as many file systems as can be."""
    folders = {str(frame["checkpoint_folder"]): "" for frame in frames if frame.get("checkpoint_folder")}
    mounts = {folder: _mount_of(near) for folder in folders if (near := _nearest(folder))}
    first = {mount: folder for folder, mount in reversed(mounts.items())}
    try:
        for folder in list(dict.fromkeys((*first.values(), *mounts)))[:MOST]:
            folders[folder] = _write(_nearest(folder))
        yield [_with_file(frame, folders, mounts) for frame in frames] if mounts else frames
    finally:
        for path in filter(None, folders.values()):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _with_file(frame: Frame, files: dict[str, str], mounts: dict[str, str]) -> Frame:
    folder = str(frame.get("checkpoint_folder") or "")
    file, mount = files.get(folder), mounts.get(folder)
    found: Frame = {"checkpoint_probe": file} if file else {}
    return {**frame, **found, "checkpoint_mount": mount} if mount else frame


def _write(folder: str) -> str:
    """An empty file there; "": there can be none."""
    path = os.path.join(folder, f".lava.{os.urandom(8).hex()}.tmp")
    try:
        os.close(os.open(path, _FLAGS, 0o600))
    except OSError:
        return ""
    return path


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
