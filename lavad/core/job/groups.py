"""Job groups: paths like /risk/daily. A group stays until it is deleted, whether bgadd or a job made it."""

from __future__ import annotations

import msgspec

MAX_PATH = 512
MAX_DEPTH = 64


class JobGroup(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A group."""

    name: str
    owner: str
    limit: int | None = None
    """How many jobs in it and in the groups below it may have started at a time; None: no limit."""
    added: float = 0.0
    implicit: bool = False
    """A job made it: with JOB_GROUP_CLEAN it goes with its last job."""


def read_path(text: str) -> str:
    """The path in its one form; "" where the text is none."""
    parts = [part for part in text.strip().split("/") if part]
    bad = not parts or len(text) > MAX_PATH or len(parts) > MAX_DEPTH or "//" in text.strip().rstrip("/")
    if bad or any(not part.isprintable() or part in (".", "..") for part in parts):
        return ""
    return "/" + "/".join(parts)


def lineage(path: str) -> tuple[str, ...]:
    """The group itself and those above it."""
    found = []
    while path:
        found.append(path)
        path = path.rpartition("/")[0]
    return tuple(found)
