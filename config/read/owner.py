"""Who may write a program of the site that a daemon runs."""

import os


def only_root_writes(path: str) -> bool:
    """Whether a file or folder belongs to root, and nobody else may write it."""
    try:
        state = os.stat(path)
    except OSError:  # it has just gone
        return False
    return state.st_uid == 0 and not state.st_mode & 0o022
