"""Job groups: paths like /risk/daily. A group stays until it is deleted, whether bgadd or a job made it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

MAX_PATH = 512
MAX_DEPTH = 64


class JobGroup(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A job group."""

    name: str
    owner: str
    limit: int | None = None
    """Maximum of started jobs in it and in the groups below it; None: no limit."""
    added: float = 0.0
    implicit: bool = False
    """Made by a job: with JOB_GROUP_CLEAN it is deleted with its last job."""


def read_path(text: str) -> str:
    """The normal form of a path; "": the text is no path."""
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


def limited_by(path: str, groups: Mapping[str, JobGroup]) -> JobGroup | None:
    """The nearest group with a limit, from this one up: a group without one has that of the group above it, as in LSF."""
    rows = (groups.get(name) for name in lineage(path))
    return next((row for row in rows if row is not None and row.limit is not None), None)
