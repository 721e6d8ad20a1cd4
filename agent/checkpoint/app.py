"""The ``app`` method: the job writes its checkpoints itself, when SIGUSR1 asks its tasks on the first host.

A generation N exists when ``$LSB_CHKPNT_DIR/gen-N`` is there with its MANIFEST; a job makes it under another name and
renames it. After a restart (LSB_RESTART=Y) the job goes on from the newest that is there. Nothing else is agreed.

Rule: the folder is only looked at, in a thread; what a job wrote is never opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_GENERATION = re.compile(r"gen-([0-9]{1,9})")
MANIFEST = "MANIFEST"


def newest(folder: str) -> int:
    """The newest whole generation in a job's folder, -1 when there is none (or the folder cannot be read)."""
    try:
        names = os.listdir(folder)
    except OSError:
        return -1
    numbers = sorted((int(match[1]) for name in names if (match := _GENERATION.fullmatch(name))), reverse=True)
    for number in numbers:
        if os.path.lexists(os.path.join(folder, f"gen-{number}", MANIFEST)):
            return number
    return -1


def look(folders: Mapping[str, str]) -> dict[str, int]:
    """``newest`` for several jobs by uid."""
    return {uid: newest(folder) for uid, folder in folders.items()}
