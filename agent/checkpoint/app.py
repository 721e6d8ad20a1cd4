"""The ``app`` method: the job writes its checkpoints itself, when SIGUSR1 asks its tasks on the first host.

A generation N exists when ``$LSB_CHKPNT_DIR/gen-N`` is there with its MANIFEST; a job makes it under another name and
renames it. After a restart (LSB_RESTART=Y) the job goes on from the newest that is there. Nothing else is agreed.

Rule: the folder is only looked at, by a shepherd that is the job's user; what a job wrote is never opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agent.launch.site import User

_GENERATION = re.compile(r"gen-([0-9]{1,9})")
MANIFEST = "MANIFEST"


_LOOK = "look "


def newest(names: Iterable[str]) -> int:
    """The newest of the folders that have a MANIFEST, -1 when there is none."""
    return max((int(match[1]) for name in names if (match := _GENERATION.fullmatch(str(name)))), default=-1)


def look(uid: str, user: User, folder: str) -> dict[str, Any]:
    """The order to the starter that finds these folders."""
    who = {"name": user.name, "uid": user.uid, "gid": user.gid, "groups": list(user.groups)}
    return {"do": "folders", "id": _LOOK + uid, "user": who, "path": folder, "prefix": "gen-", "having": MANIFEST}


def uid_of(number: str) -> str:
    """The part that an answer is about."""
    return number.removeprefix(_LOOK)
