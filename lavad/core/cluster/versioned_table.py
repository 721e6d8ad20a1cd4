"""A table of records by key that remembers what a batch changed, and the queue of a class's pending jobs.

Rule: ``put`` and ``drop`` are the only ways to change a table.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Generic, TypeVar

from lavad.core.job.job import Array, Job

K = TypeVar("K")
V = TypeVar("V")


class Table(Generic[K, V]):
    """Rows by key, with the values that changed rows had when the batch began."""

    __slots__ = ("changed", "moved", "rows")

    def __init__(
        self, moved: Callable[[V | None, V | None], None] | None = None, rows: MutableMapping[K, V] | None = None
    ) -> None:
        self.rows: MutableMapping[K, V] = {} if rows is None else rows
        self.changed: dict[K, V | None] = {}
        self.moved = moved

    def put(self, key: K, value: V) -> None:
        """Add or replace a row."""
        old = self.rows.get(key)
        self.changed.setdefault(key, old)
        self.rows[key] = value
        if self.moved is not None:
            self.moved(old, value)

    def drop(self, key: K) -> None:
        """Remove a row that is there."""
        old = self.rows.pop(key)
        self.changed.setdefault(key, old)
        if self.moved is not None:
            self.moved(old, None)

    def undo(self) -> None:
        """Bring back the rows as they were when the batch began."""
        for key, old in list(self.changed.items()):
            if old is not None:
                self.put(key, old)
            elif key in self.rows:
                self.drop(key)
        self.changed.clear()


def submission_order(row: Job | Array, key: int) -> tuple[float, int]:
    """Sort key of a pending row: by submission, then by job and index; requeues do not change it."""
    return row.submitted, (key & 0xFFFFFFFF) << 32 | key >> 32


IN_ORDER = 1
"""The value of keys that were added in order: one object, unlike a number of each."""


class Pending:
    """Keys of a class's pending jobs (an array stands for all its untouched elements), in dispatch order while ``ordered``."""

    __slots__ = ("keys", "ordered", "touched")

    def __init__(self) -> None:
        self.keys: dict[int, int] = {}
        """The newest are last. The value tells a key from the same one that left and came back: ``touched`` when it was added,
        once they are not ``ordered``, and the same of all before."""
        self.ordered = True
        self.touched = 0
        """Counts the changes, so that a scheduler sees which classes to look at again."""

    def add(self, key: int, in_order: bool) -> None:
        """Add at the end; ``in_order``: that is its place in dispatch order."""
        self.touched += 1
        self.ordered = self.ordered and in_order
        self.keys[key] = IN_ORDER if self.ordered else self.touched

    def copied(self) -> Pending:
        """The same keys in another object, which whoever remembers something of this one takes for a new class."""
        other = Pending()
        other.keys, other.ordered, other.touched = dict(self.keys), self.ordered, self.touched
        return other

    def discard(self, key: int) -> None:
        """Remove if there."""
        if key in self.keys:
            del self.keys[key]
            self.touched += 1
