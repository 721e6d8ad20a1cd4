"""How far lsb.events and lsb.acct are written: a file beside them, which is saved only after both are on disk."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path

NAME = ".lava.position"


def folder_of(shared: str, cluster: str) -> Path:
    """Where the files of a cluster are, below LSB_SHAREDIR."""
    return Path(shared) / cluster / "logdir"


def read(folder: Path) -> dict[str, int]:
    """``seq``: the number of the newest event written; the name of each file: its size then; ``writer``: who has written.

    Empty where there is none. OSError where it is there and cannot be read: the files would be begun anew.
    """
    found: object = None
    try:
        found = json.loads((folder / NAME).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError:
        pass
    if not isinstance(found, dict) or not all(isinstance(number, int) for number in found.values()):
        raise OSError(errno.EBADMSG, f"its {NAME} is damaged; once that is removed, lsb.events and lsb.acct are begun anew")
    return found


def save(folder: Path, seq: int, files: Iterable[Path], restored: int = 0, writer: int = 0) -> None:
    """Everything that was written to the files is on disk on return, and so is the position.

    ``restored``: the number of the event by which the store was last restored from a backup; ``writer``: a number of the
    process that writes the files.
    """
    sizes = {}
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            sizes[path.name] = os.fstat(file.fileno()).st_size
    part = folder / (NAME + ".new")
    with part.open("w") as file:
        json.dump({"seq": seq, "restored": restored, "writer": writer, **sizes}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / NAME)
