"""Processes that hold a GPU after the job that had it is over, and which of them may be ended.

Rule: a process of a part that lives is never touched, nor one of root or of another user. Of the job's user those go that are the
job's by their environment; on a GPU that no other part has, all of them: whoever has a GPU to itself finds nobody on it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from agent.monitor.gpu.records import GpuProcess
from agent.monitor.procscan import read_file, read_proc

_ROOT = 0
_MPS = b"nvidia-cuda-mps"
"""The servers of MPS, which have a GPU for the programs of several jobs."""
_ENVIRON = 1 << 20
_DEEPEST = 1000


class Holder(NamedTuple):
    """A process on a GPU. ``start``, in ticks since boot, names it with its pid; ``attempt``: LAVA_ATTEMPT of its environment."""

    uuid: str
    pid: int
    start: int
    uid: int
    attempt: str = ""
    lives: bool = False
    """It descends from a part that lives."""


class Ended(NamedTuple):
    """A part that is over: its attempt, its user, its GPUs, and those of them that no part that lives has."""

    attempt: str
    user: str
    uid: int
    gpus: Collection[str]
    alone: Collection[str]


def find(processes: Iterable[GpuProcess], gpus: Collection[str], roots: Collection[int]) -> list[Holder]:
    """Who is on these GPUs. ``roots``: the shepherds and tasks of parts that live."""
    return [holder for one in processes if one.uuid in gpus and (holder := _look(one, roots)) is not None]


def _look(process: GpuProcess, roots: Collection[int]) -> Holder | None:
    proc = read_proc(process.pid)
    try:
        uid = os.stat(f"/proc/{process.pid}").st_uid
    except OSError:
        return None
    if proc is None or proc.state == "Z" or read_file(f"/proc/{process.pid}/comm").startswith(_MPS):
        return None
    found = _attempt(read_file(f"/proc/{process.pid}/environ", _ENVIRON))
    return Holder(process.uuid, process.pid, proc.start, uid, found, any(pid in roots for pid in _ancestors(process.pid)))


def _ancestors(pid: int) -> Iterator[int]:
    """The process itself and those above it; a scan is no snapshot, so that it must not go round for ever."""
    for _ in range(_DEEPEST):
        yield pid
        proc = read_proc(pid)
        if proc is None or proc.ppid <= 1:
            return
        pid = proc.ppid


def _attempt(environ: bytes) -> str:
    mark = b"LAVA_ATTEMPT="
    return next((word[len(mark) :].decode("ascii", "replace") for word in environ.split(b"\0") if word.startswith(mark)), "")


def to_end(holders: Iterable[Holder], ended: Ended, live: Collection[str]) -> list[Holder]:
    """Those that go with a part that is over. ``live``: the attempts of parts that live."""
    return [
        one
        for one in _of(holders, ended, live)
        if one.uid == ended.uid and (one.attempt == ended.attempt or (one.uuid in ended.alone and one.uid != _ROOT))
    ]


def left(holders: Iterable[Holder], ended: Ended, live: Collection[str]) -> list[Holder]:
    """Those for which a GPU cannot be given again: whoever has it to itself would find them there. Root's are the system's."""
    return [
        one
        for one in _of(holders, ended, live)
        if (one.uid == ended.uid and one.attempt == ended.attempt) or (one.uuid in ended.alone and one.uid != _ROOT)
    ]


def _of(holders: Iterable[Holder], ended: Ended, live: Collection[str]) -> Iterator[Holder]:
    return (one for one in holders if one.uuid in ended.gpus and not one.lives and one.attempt not in live)


def sentence(holders: Collection[Holder], ended: Ended) -> str:
    """``process 4711 of user ann still holds it``."""
    first = min(holders, key=lambda one: one.pid)
    user = ended.user if first.uid == ended.uid else str(first.uid)
    more = f" and {len(holders) - 1} more hold it" if len(holders) > 1 else " still holds it"
    return f"process {first.pid} of user {user}{more}"
