"""Row numbers in the order of a key that changes as rows do: orders of hosts that follow each placement."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence

Key = tuple[float, ...]


class SortedRows:
    """Rows by ``key_of``, the smallest first, of equal keys the smaller number; a row whose key is None is left out."""

    __slots__ = ("_entries", "_key_of", "_known", "seen")

    def __init__(self, count: int, key_of: Callable[[int], Key | None], seen: int) -> None:
        self._key_of = key_of
        self._known = {at: (key, at) for at in range(count) if (key := key_of(at)) is not None}
        self._entries = sorted(self._known.values())
        self.seen = seen
        """How many of the cycle's changes it has been told of."""

    def catch_up(self, renewed: Sequence[int]) -> None:
        """Ask again for the keys of those that have changed in the cycle since it was told last; ``renewed``: all, in order."""
        self.renew(renewed[self.seen :])
        self.seen = len(renewed)

    def renew(self, numbers: Iterable[int]) -> None:
        """Ask for the keys of these rows again."""
        for at in dict.fromkeys(numbers):
            old = self._known.pop(at, None)
            if old is not None:
                del self._entries[bisect_left(self._entries, old)]
            key = self._key_of(at)
            if key is not None:
                self._known[at] = entry = (key, at)
                insort(self._entries, entry)

    def __iter__(self) -> Iterator[int]:
        return iter([at for _, at in self._entries])


class Packings:
    """Those of one cycle. ``ends``: row to when its jobs with GPUs that ran when the cycle began are over, by run limits;
    ``started``: host to the same of the jobs that the cycle starts.
    """

    __slots__ = ("ends", "orders", "started")

    def __init__(self) -> None:
        self.orders: dict[tuple[object, ...], SortedRows] = {}
        self.ends: dict[int, float] = {}
        self.started: dict[str, float] = {}
