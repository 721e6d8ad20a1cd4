"""The folders of daemons, and the one in which those of one machine meet: a socket there has its owner, or root, on both sides.

Only the owner of a folder of mode 0700 and root can put a socket into it or connect to one. Both sides look at the folder that
they have opened, and go on through that descriptor: no link or rename on the way to it can lead them to another.
"""

from __future__ import annotations

import os
import stat

SCHEME = "unix:"
FOLDER = "master"
"""Below the run folder."""


class NotPrivate(Exception):
    """Why a folder is no proof of who is on the other side, in one line."""


def why_not_kept(path: str) -> str:
    """Who else could give a daemon's folder another name and put one of theirs in its place, in one line; "": nobody.

    Whoever owns a folder above it could, and whoever may write to one that is not sticky. Trusted are root, this account, the
    group of one that is not root, and the owner of ``/``, who is root where a user namespace does not know root.
    """
    trusted = {0, os.geteuid(), os.stat("/").st_uid}
    for above in dict.fromkeys([*_above(os.path.realpath(path)), *_above(os.path.abspath(path))]):
        found = os.stat(above)
        mode = stat.S_IMODE(found.st_mode)
        writers = 0o002 if os.geteuid() and found.st_gid == os.getegid() else 0o022
        if found.st_uid not in trusted or (mode & writers and not mode & stat.S_ISVTX):
            told = f"{above} belongs to user {found.st_uid} and has mode {mode:04o}"
            return f"{path}: {told}: others than this account could put another folder in its place"
    return ""


def _above(path: str) -> list[str]:
    """The folders that a path goes through, which are there."""
    found = []
    while (above := os.path.dirname(path)) != path:
        path = above
        if os.path.isdir(path):
            found.append(path)
    return found


def address(run_dir: str, name: str) -> str:
    """Where the lavad of this name listens for the agents of its machine."""
    return f"{SCHEME}{os.path.join(run_dir, FOLDER, name)}.sock"


def is_local(target: str) -> bool:
    """Whether an address is a socket of this machine."""
    return target.startswith(SCHEME)


def make(target: str) -> tuple[int, str]:
    """For the side that listens: (descriptor of the folder, the address through it); the folder is made where it is missing.

    Close the descriptor once nobody listens. Raises NotPrivate where the folder is another user's, OSError.
    """
    folder, name = _split(target)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    return _open(folder, name, (os.geteuid(),))


def reach(target: str) -> tuple[int, str]:
    """For the side that connects: as ``make``. Raises NotPrivate where others than root and this account may listen, OSError."""
    folder, name = _split(target)
    return _open(folder, name, (0, os.geteuid()))


def _split(target: str) -> tuple[str, str]:
    return os.path.split(target.removeprefix(SCHEME))


def _open(folder: str, name: str, owners: tuple[int, ...]) -> tuple[int, str]:
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    why = ""
    if found.st_uid not in owners:
        why = f"belongs to user {found.st_uid}"
    elif stat.S_IMODE(found.st_mode) & 0o077:
        why = f"has mode {stat.S_IMODE(found.st_mode):04o}, not 0700"
    if why:
        os.close(descriptor)
        raise NotPrivate(f"{folder} {why}: whoever listens there could be anybody")
    return descriptor, f"{SCHEME}/proc/self/fd/{descriptor}/{name}"
