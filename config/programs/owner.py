"""Who may write a program of the site that a daemon runs."""

import os
import stat

_MOST_LINKS = 40


def why_not_as_root(path: str) -> str:
    """Why root does not run a program or obey a file of the site, in one line; "": it does."""
    return "" if only_root_writes(path) else f"{path} is not run as root, as others than root may write it"


def only_root_writes(path: str) -> bool:
    """Whether a file or folder belongs to root, and nobody else may write it or put another in its place.

    So all folders and links on the way to it are root's; others may write only into one where they cannot move what is root's,
    as in /tmp.
    """
    # not as os.path.abspath has it: ".." behind a link is above what it leads to
    at, left, links = "/", os.path.join(os.getcwd(), path).split("/"), 0
    try:
        while left:
            name = left.pop(0)
            if name in ("", "."):
                continue
            if not _is_roots(os.stat(at), stat.S_ISVTX):
                return False
            step = os.path.dirname(at) if name == ".." else os.path.join(at, name)
            state = os.lstat(step)
            if not stat.S_ISLNK(state.st_mode):
                at = step
            elif state.st_uid or links == _MOST_LINKS:
                return False
            else:
                target = os.readlink(step)
                at, left, links = "/" if target.startswith("/") else at, target.split("/") + left, links + 1
        return _is_roots(os.stat(at))
    except OSError:  # it has just gone
        return False


def _is_roots(state: os.stat_result, but_for: int = 0) -> bool:
    """``but_for``: a bit of the mode with which others may write."""
    return state.st_uid == 0 and (not state.st_mode & 0o022 or bool(state.st_mode & but_for))
