"""The ``app`` method: the job writes its checkpoints itself, when SIGUSR1 asks its tasks on the first host.

A generation N exists when ``$LSB_CHKPNT_DIR/gen-N`` is there with its MANIFEST, and is whole when its files are those of the
manifest; a job makes it under another name and renames it. After a restart (LSB_RESTART=Y) the job goes on from the newest that
is there. Nothing else is agreed.

Rule: the folder is looked at by a shepherd that is the job's user; the agent opens nothing that a job wrote.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.launch.site import User
from agent.starter.part.generations import GENERATION, MANIFEST
from agent.starter.protocol.orders import FindFolders, FindGenerations

_LOOK = "look "


def newest(names: Iterable[str]) -> int:
    """The number of the newest generation among folders that have a MANIFEST, -1: none."""
    return max((int(match[1]) for name in names if (match := GENERATION.fullmatch(name))), default=-1)


def look(uid: str, user: User, folder: str, above: int | None, protocol: int) -> FindFolders | FindGenerations:
    """The order to the starter (of this protocol) that finds the generations above one; None: all, without a look into them."""
    if above is None or protocol < 2:
        return FindFolders(_LOOK + uid, user.account, folder, "gen-", MANIFEST)
    return FindGenerations(_LOOK + uid, user.account, folder, above)


def uid_of(number: str) -> str:
    """The part that an answer is about."""
    return number.removeprefix(_LOOK)
