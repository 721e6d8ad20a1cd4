"""A file in the folder of a job's checkpoints while the job is submitted: as bsub does, for hosts to look whether they see it.

Rule: where none can be written, none is, and nothing is said: the job's first host tries the folder before the job starts.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from lava_client.options import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextlib.contextmanager
def probed(frame: Mapping[str, Any], conf: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """What a submission says of the folder of its checkpoints, while the file is there; {} where it has none."""
    folder = folder_of(frame["options"].get("k"), frame["cwd"], conf)
    near = _nearest(folder)
    if not near:
        yield {"checkpoint_folder": folder} if folder else {}
        return
    found = {"checkpoint_folder": folder, "checkpoint_mount": _mount_of(near)}
    path = os.path.join(near, f".lava.{os.urandom(8).hex()}.tmp")
    try:
        os.close(os.open(path, _FLAGS, 0o600))
    except OSError:
        yield found
        return
    try:
        yield {**found, "checkpoint_probe": path}
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def folder_of(given: object, cwd: str, conf: Mapping[str, str]) -> str:
    """The folder of ``-k`` that all hosts must see, without links: that of the copies where there are any. "": there is none."""
    folder, *words = str(given[-1] if isinstance(given, list) and given else given or "").split() or [""]
    for word in words:
        if word.startswith("stage="):
            folder = word[len("stage=") :] or folder
        elif word == "stage":
            folder = conf.get("LAVA_CHKPNT_STAGE_DIR", "")
    found = os.path.realpath(os.path.join(cwd, folder)) if folder else ""
    return found if is_text(found) else ""


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
