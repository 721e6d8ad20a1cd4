"""What of one user the master has under way at a time, from all hosts together.

Rule: nobody's asks fill the memory. What is beyond the limit is answered ``later``, and the command tries again by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from proto.daemon.callers import MOST_LARGE

LARGE, CHANGE, QUERY = "large", "change", "query"
MOST = {LARGE: MOST_LARGE, CHANGE: 500, QUERY: 100}
"""Frames over 64 KB, asks that wait for their decision, and queries of one user."""


class UnderWay:
    """Counts by user name, as agents vouch for names."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def let_in(self, user: str, *kinds: str) -> Iterator[bool]:
        """Counts one of each kind while the context lasts; False, and counts nothing, where the user has too many."""
        if any(self._counts[user, kind] >= MOST[kind] for kind in kinds):
            yield False
            return
        for kind in kinds:
            self._counts[user, kind] += 1
        try:
            yield True
        finally:
            for kind in kinds:
                self._counts[user, kind] -= 1
                if not self._counts[user, kind]:
                    del self._counts[user, kind]
