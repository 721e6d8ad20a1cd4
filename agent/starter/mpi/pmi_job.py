"""What the dialogues of PMI-1 and PMI-2 have in common: the key-value space, the ranks of this host, their barrier, the limits.

The key-value space has a copy on every host, made equal at each barrier, so that a get never needs another host.
Rule: pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

MAX_MESSAGE = 64 * 1024
MAX_NAME = 256
MAX_KEY = 64
MAX_VALUE = 1024
MAPPING = "PMI_process_mapping"


class Kvs:
    """The key-value space of an MPI job, on this host."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._values: dict[str, str] = {}
        self._new: dict[str, str] = {}

    def put(self, key: str, value: str) -> str:
        """Store a value; "" or the reason why not (PMI's ``msg``)."""
        if why := not_storable(key, value):
            return why
        self._values[key] = value
        self._new[key] = value
        return ""

    def get(self, key: str) -> str | None:
        """The value put on this host, or on another one before the last barrier; None: there is none."""
        return self._values.get(key)

    def at(self, index: int) -> tuple[str, str] | None:
        """The pair with this index in the order of arrival, None when there are not so many."""
        if not 0 <= index < len(self._values):
            return None
        return list(self._values.items())[index]

    def set(self, key: str, value: str) -> None:
        """Store a value that every host sets itself, so that it is not exchanged."""
        self._values[key] = value

    def take_new(self) -> dict[str, str]:
        """What was put on this host since the last call."""
        new, self._new = self._new, {}
        return new

    def merge(self, values: Mapping[str, str]) -> None:
        """Store what all hosts put."""
        self._values.update(values)


def not_storable(key: str, value: str) -> str:
    """Why a rank may not put this, "" when it may."""
    if not key or len(key) > MAX_KEY:
        return "bad_key"
    return "value_too_long" if len(value) > MAX_VALUE else ""


class Send(NamedTuple):
    """Bytes for a rank."""

    rank: int
    data: bytes


class Barrier(NamedTuple):
    """All ranks of this host are in the barrier."""

    puts: dict[str, str]
    """The keys and values that they put since the last one."""
    version: int = 1
    """The version of PMI that they speak."""


class Abort(NamedTuple):
    """A rank wants the whole job to end with this exit code."""

    rank: int
    code: int
    text: str


class Broken(NamedTuple):
    """A rank does not speak PMI, or another version than the others."""

    rank: int
    text: str


Action = Send | Barrier | Abort | Broken


class Rank:
    """What is known of a rank of this host."""

    __slots__ = ("finalized", "in_barrier", "initialized", "rest", "spawning", "thread", "version", "waits")

    def __init__(self) -> None:
        self.initialized = False
        self.finalized = False
        self.in_barrier = False
        self.rest = b""
        """What it sent of a message that is not complete."""
        self.version = 0
        """The version of PMI on its connection, 0 before the line that says it."""
        self.spawning = False
        """PMI-1: it is within a request of several lines."""
        self.thread = ""
        """PMI-2: the thread that is in the barrier, in its own words."""
        self.waits = 0
        """PMI-2: for so many attributes of the host it waits."""


class Job:
    """The MPI job as this host knows it. ``mapping``: PMI_process_mapping."""

    def __init__(self, kvsname: str, size: int, mapping: str, ranks: Iterable[int]) -> None:
        self.size = size
        self.kvs = Kvs(kvsname[:MAX_NAME])
        if mapping:
            self.kvs.set(MAPPING, mapping)
        self.ranks = {rank: Rank() for rank in ranks}
        self.version = 0
        """The version of PMI that its ranks speak, 0 before the first has said it."""
        self.failed = ""
        """Why the job ends, "" while it runs."""
        self._in_barrier = 0

    def enter(self, one: Rank) -> list[Action]:
        """A rank enters the barrier."""
        if one.in_barrier:
            return []
        one.in_barrier = True
        self._in_barrier += 1
        return [Barrier(self.kvs.take_new(), self.version or 1)] if self._in_barrier == len(self.ranks) else []

    def leave(self) -> list[tuple[int, Rank]]:
        """The barrier is over: who was in it."""
        left = [(rank, one) for rank, one in self.ranks.items() if one.in_barrier]
        for _, one in left:
            one.in_barrier = False
        self._in_barrier = 0
        return left


def number(text: str | None, default: int) -> int:
    """An integer that a rank sent."""
    try:
        return int(text or "")
    except ValueError:
        return default
