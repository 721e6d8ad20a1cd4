"""Which process belongs to which part and to which rank of it.

Rule: pure. Descent decides: from a task's process to its rank, from the shepherd to the part (it is a subreaper, so
what double-forks and calls setsid comes back to it). What was once seen in a part stays in it, whatever becomes of its
parents.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from agent.monitor.procscan import Proc

REST = -1
"""The rank of what belongs to a part and to no rank of it."""

Id = tuple[int, int]
"""Pid and start time."""


class PartRoots(NamedTuple):
    """Where the processes of one part begin."""

    key: int
    attempt: int
    tasks: tuple[tuple[int, int, int], ...]
    """(rank, pid, start time in ticks); a start time of 0 is taken as not known."""
    shepherd: int
    """0: none, or gone."""
    memory_limit: int = 0
    """KB; memory is measured more finely when it comes near. 0: none."""
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs that it holds."""
    since: float = 0.0
    """When it started, in seconds since the epoch."""


class Owner(NamedTuple):
    """A part, and a rank of it or REST."""

    uid: str
    rank: int


_FOREIGN = Owner("", REST)
_UNKNOWN = Owner("", REST - 1)


class Owners(NamedTuple):
    """``members``: pid -> rank for each part, shepherds left out. ``foreign``: of no part, nor will a child be."""

    members: dict[str, dict[int, int]]
    foreign: set[int]


def assign(
    procs: Mapping[int, Proc],
    parts: Mapping[str, PartRoots],
    known: Mapping[Id, Owner],
    skipped: Container[int] = (),
) -> Owners:
    """Find the owner of every process. ``known``: what the last look found; ``skipped``: foreign then, not read now."""
    known = {process: one for process, one in known.items() if one.uid in parts}
    owner: dict[int, Owner] = {}
    for uid, roots in parts.items():
        if roots.shepherd > 1 and roots.shepherd in procs:
            owner[roots.shepherd] = Owner(uid, REST)
    shepherds = set(owner)
    for uid, roots in parts.items():
        for rank, pid, start in roots.tasks:
            proc = procs.get(pid)
            if proc is not None and start in (0, proc.start):
                owner[pid] = Owner(uid, rank)
    for pid in procs:
        if pid not in owner:
            _climb(pid, procs, owner, known, skipped)
    members: dict[str, dict[int, int]] = {uid: {} for uid in parts}
    foreign: set[int] = set()
    for pid, found in owner.items():
        if found is _FOREIGN:
            foreign.add(pid)
        elif found is not _UNKNOWN and pid not in shepherds:
            rank = found.rank if found.rank != REST else _rank_by_group(procs[pid], parts[found.uid])
            members[found.uid][pid] = rank
    return Owners(members, foreign)


def _climb(
    pid: int, procs: Mapping[int, Proc], owner: dict[int, Owner], known: Mapping[Id, Owner], skipped: Container[int]
) -> None:
    """Set the owner of ``pid`` and of what is above it, up to the first process whose owner is known."""
    path: list[Proc] = []
    while (found := owner.get(pid)) is None:
        proc = procs.get(pid)
        if proc is None:
            found = _FOREIGN if pid == 0 or pid in skipped else _UNKNOWN
            break
        seen = known.get((pid, proc.start))
        if seen is not None and seen.rank != REST:
            found = owner[pid] = seen
            break
        path.append(proc)
        owner[pid] = _UNKNOWN  # a scan is no snapshot: reused pids might close a circle
        pid = proc.ppid
    for proc in reversed(path):
        if found.uid == "":
            found = known.get((proc.pid, proc.start), found)
        owner[proc.pid] = found


def _rank_by_group(proc: Proc, roots: PartRoots) -> int:
    """For what came back to the shepherd before it was ever seen: the only rank, or the one whose group it kept."""
    if len(roots.tasks) == 1:
        return roots.tasks[0][0]
    for rank, pid, _ in roots.tasks:
        if pid in (proc.pgrp, proc.session):
            return rank
    return REST
