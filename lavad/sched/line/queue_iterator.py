"""Which class comes next: the line merged with the streams of fair share and absolute priority, as starts move these.

Rule: within a cycle a place only moves back, so the first place of the heap is right once it has been worked out again;
where nothing moves, the iterator is the sorted line itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heappushpop
from typing import Generic, TypeVar

from lavad.sched.line.aps import amounts_of, value_of
from lavad.sched.line.line import keys_in_order, order_at
from lavad.sched.order.ranking import Stream
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import Order, SchedulerCache

V = TypeVar("V")
_Place = tuple[Order, int]


def order_now(state: CycleState, number: int, key: int) -> Order:
    """The place in line of a job of a class at this moment of the cycle."""
    cache = state.cache
    order = order_at(state.cluster, cache, number, key)
    return _moved(state, number, key, order) if cache.classes[number].stream is not None else order


def _moved(state: CycleState, number: int, key: int, order: Order) -> Order:
    ranking = state.cache.ranking
    spec = state.cluster.specs.rows[number]
    aps = ranking.aps.get(spec.queue)
    if aps is not None:
        return (order[0], (aps[0], -aps_value(state, number, key)), *order[2:])
    return (order[0], state.shares.key(spec), *order[2:])


def aps_value(state: CycleState, number: int, key: int) -> float:
    """The absolute priority of a waiting job; 0 where its queue has none."""
    return absolute_priority(state, number, state.cluster.get(key).submitted) or 0.0


def absolute_priority(state: CycleState, number: int, submitted: float) -> float | None:
    """The absolute priority of a job of a class; None where its queue has none."""
    ranking = state.cache.ranking
    need = state.cache.need(state.cluster, number)
    if need is None or need.spec.queue not in ranking.aps:
        return None
    share = state.shares.priority(need.spec)
    amounts = amounts_of(need, state.cluster.conf.params, submitted, state.now, share)
    return value_of(ranking.aps[need.spec.queue][1], amounts, state.now - submitted)


class _OpenClass(Generic[V]):
    """A class that has more jobs to place. ``key``: its next job; ``kept``: what the cycle keeps of the class."""

    __slots__ = ("kept", "key")

    def __init__(self, key: int, kept: V) -> None:
        self.key = key
        self.kept = kept


class _StreamTail:
    """A stream from its ``at``-th class on."""

    __slots__ = ("at", "line")

    def __init__(self, line: list[_Place]) -> None:
        self.line = line
        self.at = 0


class QueueIterator(Generic[V]):
    """The classes in turn; ``V`` is what a cycle keeps of a class between its turns."""

    def __init__(self, state: CycleState) -> None:
        self._state = state
        cache = state.cache
        self._line = cache.line
        self._at = 0
        self._heap: list[tuple[Order, int, _OpenClass[V] | _StreamTail]] = []
        if state.free or cache.retry_blocked or state.retry_blocked or cache.ranking.preempts:
            self._heap += _streams(state, cache)
            heapify(self._heap)
            self._skips = False
        else:
            # nothing can start: any order will do, and what was blocked by hosts is
            if cache.streams:
                self._line = [place for line in (cache.line, *cache.streams.values()) for place in line]
            self._skips = True
        self._taken: _StreamTail | None = None

    def pop(self) -> tuple[int, V | None] | None:
        """The next class, and what was kept of it; None: there are no more."""
        if self._skips:
            self._skip()
        line, heap = self._line, self._heap
        entry = self._pop_moving()
        if entry is not None:
            if self._at == len(line) or entry[:2] < line[self._at]:
                return self._take(entry)
            heappush(heap, entry)
        if self._at == len(line):
            return None
        number = line[self._at][1]
        self._at += 1
        return number, None

    def _skip(self) -> None:
        """Pass over classes that hosts block, while nothing makes room for any."""
        if self._state.retry_blocked:
            return
        line, cache = self._line, self._state.cache
        classes, since = cache.classes, cache.changed.everything
        for at in range(self._at, len(line)):
            entry = classes[line[at][1]]
            # not by ``is_passed_over``, which counts the looks: they are few, and classes may be 50,000
            if entry.blocked < 0 or (cache.looks > 0 and (entry.blocked < since or entry.stale)):
                self._at = at
                return
        self._at = len(line)

    def _take(self, entry: tuple[Order, int, _OpenClass[V] | _StreamTail]) -> tuple[int, V | None]:
        _, number, what = entry
        if isinstance(what, _OpenClass):
            return number, what.kept
        what.at += 1
        self._taken = what
        return number, None

    def _pop_moving(self) -> tuple[Order, int, _OpenClass[V] | _StreamTail] | None:
        """The first of the heap, after its place has been worked out again."""
        heap = self._heap
        taken, self._taken = self._taken, None
        if taken is not None and taken.at < len(taken.line):
            entry = heappushpop(heap, self._entry(taken))
        elif heap:
            entry = heappop(heap)
        else:
            return None
        while True:
            now = self._now(entry)
            if now <= entry[0]:
                return entry
            entry = heappushpop(heap, (now, entry[1], entry[2]))

    def _entry(self, tail: _StreamTail) -> tuple[Order, int, _StreamTail]:
        order, number = tail.line[tail.at]
        if not order[1]:
            order = (order[0], self._state.shares.key(self._state.cluster.specs.rows[number]), *order[2:])
        return order, number, tail

    def _now(self, entry: tuple[Order, int, _OpenClass[V] | _StreamTail]) -> Order:
        order, number, what = entry
        stream = self._state.cache.classes[number].stream
        if stream is None:
            return order
        if isinstance(what, _OpenClass):
            return order_now(self._state, number, what.key)
        if stream[1:] == ("", ""):
            return order  # absolute priorities were worked out when the iterator was made
        return (order[0], self._state.shares.key(self._state.cluster.specs.rows[number]), *order[2:])

    def bound(self) -> Order | None:
        """The place of the class that comes next; None: there is none."""
        if self._taken is not None:
            if self._taken.at < len(self._taken.line):
                heappush(self._heap, self._entry(self._taken))
            self._taken = None
        first = self._heap[0][0] if self._heap else None
        plain = self._line[self._at][0] if self._at < len(self._line) else None
        return plain if first is None else first if plain is None else min(first, plain)

    def push(self, order: Order, number: int, key: int, kept: V) -> None:
        """A class gets another turn later; its next job, ``key``, has this place now."""
        heappush(self._heap, (order, number, _OpenClass(key, kept)))


def _streams(state: CycleState, cache: SchedulerCache) -> Iterator[tuple[Order, int, _StreamTail]]:
    for stream, line in cache.streams.items():
        if stream[1:] == ("", ""):
            line = sorted(_by_aps(state, stream))
            order, number = line[0]
        else:
            order, number = line[0]
            order = (order[0], state.shares.key(state.cluster.specs.rows[number]), *order[2:])
        yield order, number, _StreamTail(line)


def _by_aps(state: CycleState, stream: Stream) -> Iterator[_Place]:
    for _, number in state.cache.streams[stream]:
        key = next(iter(keys_in_order(state.cluster, number, state.cache.classes[number])))
        yield order_now(state, number, key), number
