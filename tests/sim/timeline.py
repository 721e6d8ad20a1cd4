"""Virtual time: a heap of (when, what), one random number generator, and the story of what happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random


class Timeline:
    """All that happens in a simulation happens in ``run``, in order of time."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 1_000_000.0
        self.story: deque[str] = deque(maxlen=60)
        """The newest things that happened, for the text of a failure."""
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, delay: float, what: Callable[[], None]) -> None:
        """Let ``what`` happen ``delay`` seconds from now."""
        self._count += 1
        heappush(self._heap, (self.now + delay, self._count, what))

    def tell(self, text: str) -> None:
        """Note a line of the story."""
        self.story.append(f"{self.now - 1_000_000:9.3f} {text}")

    def run(self, until: float, is_over: Callable[[], bool]) -> None:
        """Go on until a time, or until it is over."""
        while self._heap and self._heap[0][0] <= until and not is_over():
            self.now, _, what = heappop(self._heap)
            what()
