"""A table of records by key that remembers what a batch changed, and the queue of a class's pending jobs.

Rule: ``put`` and ``drop`` are the only ways to change a table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, MutableMapping
from itertools import chain
from typing import Generic, TypeVar

from lavad.core.cluster.key_set import KeySet
from lavad.core.job.job import Array, Job

K = TypeVar("K")
V = TypeVar("V")


class Table(Generic[K, V]):
    """Rows by key, with the values that changed rows had when the batch began."""

    __slots__ = ("changed", "moved", "moves", "rows")

    def __init__(
        self, moved: Callable[[V | None, V | None], None] | None = None, rows: MutableMapping[K, V] | None = None
    ) -> None:
        self.rows: MutableMapping[K, V] = {} if rows is None else rows
        self.changed: dict[K, V | None] = {}
        self.moved = moved
        self.moves = 0
        """Counts the changes: what was read of the table still holds while it is the same."""

    def put(self, key: K, value: V) -> None:
        """Add or replace a row."""
        old = self.put_unindexed(key, value)
        if self.moved is not None:
            self.moved(old, value)

    def put_unindexed(self, key: K, value: V) -> V | None:
        """As ``put``, where the caller indexes the row together with others; returns the previous row."""
        old = self.rows.get(key)
        self.moves += 1
        self.changed.setdefault(key, old)
        self.rows[key] = value
        return old

    def drop(self, key: K) -> None:
        """Remove a row that is there."""
        old = self.rows[key]
        self.drop_unindexed(key, old)
        if self.moved is not None:
            self.moved(old, None)

    def drop_unindexed(self, key: K, old: V) -> None:
        """As ``drop`` of this row, where the caller removes it from the indexes together with others."""
        del self.rows[key]
        self.moves += 1
        self.changed.setdefault(key, old)

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
"""The value of keys that were added in order."""
_ELEMENTS = 1 << 32
"""The keys of elements are higher."""


class Pending(Collection[int]):
    """Keys of a class's pending jobs (an array stands for all its untouched elements), in dispatch order while ``ordered``."""

    __slots__ = ("_first", "_later", "_newest", "ordered", "touched")

    def __init__(self) -> None:
        self._first = KeySet()
        """Separate jobs and arrays in dispatch order, which is that of their ids: all there is as a rule."""
        self._later: dict[int, int] = {}
        """Those that came after the first that was not. The value tells a key from the same one that left and came back:
        ``touched`` when it was added, once they are not ``ordered``, and the same of all before."""
        self._newest = 0
        """The key that was added to ``_first`` last."""
        self.ordered = True
        self.touched = 0
        """Counts the changes, so that a scheduler sees which classes to look at again."""

    def __len__(self) -> int:
        return len(self._first) + len(self._later)

    def __contains__(self, key: object) -> bool:
        return key in self._later or key in self._first

    def __iter__(self) -> Iterator[int]:
        """The newest are last."""
        return chain(self._first, self._later)

    def newest(self) -> int:
        """The key that was added last of those that are there."""
        if self._later:
            return next(reversed(self._later))
        return self._newest if self._newest in self._first else self._first.last()

    def only(self) -> int | None:
        """The key that is there, where there is one alone, added in order; None: there are others, or it was not."""
        return None if self._later or len(self._first) != 1 else self._first.last()

    def came(self, key: int) -> int:
        """A number that no other coming of the same key has, once they are not ``ordered``; 0: it is not there."""
        return self._later.get(key) or (IN_ORDER if key in self._first else 0)

    def came_after(self, number: int) -> Iterator[tuple[int, int]]:
        """The keys whose ``came`` is higher, with it."""
        for key, came in reversed(self._later.items()):
            if came <= number:
                return
            yield key, came
        if number < IN_ORDER:
            yield from ((key, IN_ORDER) for key in self._first)

    def add(self, key: int, in_order: bool) -> None:
        """Add at the end; ``in_order``: that is its place in dispatch order."""
        self.touched += 1
        self.ordered = self.ordered and in_order
        if self.ordered and not self._later and self._newest < key < _ELEMENTS:
            self._first.add(key)
            self._newest = key
        else:
            self._later[key] = IN_ORDER if self.ordered else self.touched

    def copied(self) -> Pending:
        """The same keys in another object, which whoever remembers something of this one takes for a new class."""
        other = Pending()
        other._first, other._later, other._newest = self._first.copied(), dict(self._later), self._newest
        other.ordered, other.touched = self.ordered, self.touched
        return other

    def discard(self, key: int) -> None:
        """Remove if there."""
        if self._first.discard(key) or self._later.pop(key, 0):
            self.touched += 1
