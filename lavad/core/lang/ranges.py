"""Sets of array indices kept as spans, so that a million elements cost a few bytes.

Rule: a set has exactly one form (built greedily from the left; a stepped span has at least three elements), so equal sets compare
and hash equal. No operation on contiguous spans visits their elements.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import compress, pairwise
from math import gcd

import msgspec

Span = tuple[int, int, int]

MAX_INDEX = 2_147_483_646
MAX_MIXED_HULL = 1_000_000
"""Indices between the first and the last of stepped ranges that overlap: their union visits each (0.2 s for a million)."""
_ITEM = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", re.ASCII)


class _Builder:
    """Builds the canonical form from ascending spans, a whole span at a time."""

    def __init__(self) -> None:
        self.parts: list[Span] = []
        self.start = self.last = self.step = self.count = 0

    def add(self, start: int, last: int, step: int) -> None:
        while start <= last:
            if not self.count:
                self._take(start, last, step)
                return
            gap = start - self.last
            if self.count == 1:
                self.step, self.last, self.count = gap, start, 2
                start += step
            elif gap == self.step and (step == gap or start == last):
                self.count += (last - start) // step + 1
                self.last = last
                return
            elif gap == self.step:
                self.last, self.count = start, self.count + 1
                start += step
            else:
                self._close()

    def _take(self, start: int, last: int, step: int) -> None:
        self.start, self.last, self.step = start, last, step
        self.count = (last - start) // step + 1

    def _close(self) -> None:
        """End the open run; of a stepped pair, the second element is added again, as it may begin a longer run."""
        if self.count == 2 and self.step > 1:
            self.parts.append((self.start, self.start, 1))
            self.start, self.step, self.count = self.last, 1, 1
            return
        self.parts.append((self.start, self.last, self.step if self.count > 1 else 1))
        self.count = 0

    def begins(self, start: int, last: int) -> bool:
        """Whether the open run consists of this span alone, as if nothing had been added before."""
        return self.start == start and self.last == last and self.count > 0

    def finish(self) -> Ranges:
        while self.count:
            self._close()
        return Ranges(tuple(self.parts))


class Ranges(msgspec.Struct, frozen=True):
    """A set of positive integers: ascending spans (first, last, step), whose hulls do not overlap."""

    parts: tuple[Span, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Ranges:
        """`1-1000:2,7`; raises ValueError."""
        spans = [_parse_item(item.strip()) for item in text.split(",")]
        ordered = sorted(spans, key=lambda span: span.start)
        if _mixed_hull(ordered) > MAX_MIXED_HULL:
            raise ValueError("overlapping stepped ranges are too large")
        return _union(ordered)

    @classmethod
    def span(cls, first: int, last: int, step: int = 1) -> Ranges:
        if first == last:  # as at each start of an element
            return cls(((first, first, 1),))
        return _union([range(first, last + 1, step)]) if first <= last else EMPTY

    @classmethod
    def from_indices(cls, indices: Iterable[int]) -> Ranges:
        ascending = sorted(set(indices))
        if ascending and ascending[-1] - ascending[0] + 1 == len(ascending):
            return cls.span(ascending[0], ascending[-1])  # as of elements that start together
        builder = _Builder()
        for index in ascending:
            builder.add(index, index, 1)
        return builder.finish()

    def __len__(self) -> int:
        parts = self.parts
        if len(parts) == 1:  # nearly always so, and called at each start of an element
            first, last, step = parts[0]
            return (last - first) // step + 1
        return sum((last - first) // step + 1 for first, last, step in parts)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, int):
            return False
        if len(self.parts) == 1:  # as in __len__
            return index in _range(self.parts[0])
        at = bisect_left(self.parts, index, key=lambda part: part[1])
        return at < len(self.parts) and index in _range(self.parts[at])

    def __iter__(self) -> Iterator[int]:
        for part in self.parts:
            yield from _range(part)

    def min(self) -> int:
        return self.parts[0][0]

    def max(self) -> int:
        return self.parts[-1][1]

    def below(self, index: int) -> int:
        """The largest that is smaller; 0: there is none."""
        at = bisect_left(self.parts, index, key=lambda part: part[0]) - 1
        if at < 0:
            return 0
        first, last, step = self.parts[at]
        return min(last, first + (index - 1 - first) // step * step)

    def first(self, count: int) -> tuple[Ranges, Ranges]:
        """(the `count` smallest indices, the rest)."""
        left = max(count, 0)
        for at, part in enumerate(self.parts):
            span = _range(part)
            if left < len(span):
                return self._cut(at, span[:left], span[left:])
            left -= len(span)
        return self, EMPTY

    def _cut(self, at: int, head: range, tail: range) -> tuple[Ranges, Ranges]:
        if not head:
            return Ranges(self.parts[:at]), Ranges(self.parts[at:])
        taken = Ranges(self.parts[:at] + _short(head))
        if tail.step == 1 < len(tail) or len(tail) > 2:
            return taken, Ranges(((tail[0], tail[-1], tail.step), *self.parts[at + 1 :]))
        return taken, _build([tail, *map(_range, self.parts[at + 1 :])])

    def minus(self, other: Ranges) -> Ranges:
        if not self.parts or not other.parts:
            return self
        first, last, step = self.parts[0]
        if other.parts == ((first, first, 1),) and step == 1 and last - first > 1:
            return Ranges(((first + 1, last, 1), *self.parts[1:]))  # the next element starts: the usual case
        begin, end = self._between(other.parts[0][0], other.parts[-1][1])
        if begin == end:
            return self
        pieces = (piece for part in self.parts[begin:end] for piece in _subtract(_range(part), other._near(part)))
        return self._patched(begin, end, pieces)

    def is_within(self, other: Ranges) -> bool:
        """Whether this is a subset of the other set; stops at the first index that is missing there."""
        return next((False for part in self.parts for _ in _subtract(_range(part), other._near(part))), True)

    def _between(self, low: int, high: int) -> tuple[int, int]:
        """(first, one past the last) of the parts whose hulls touch low..high."""
        return bisect_left(self.parts, low, key=lambda part: part[1]), bisect_right(self.parts, high, key=lambda part: part[0])

    def _patched(self, begin: int, end: int, pieces: Iterable[range]) -> Ranges:
        """The set with parts begin..end replaced by ``pieces``, without visiting parts that do not change.

        The end of a run depends on the two elements after it, so the two parts before begin are built again; after the first
        part that comes out unchanged, all following parts are unchanged too.
        """
        first = max(0, begin - 2)
        builder = _Builder()
        for part in self.parts[first:begin]:
            builder.add(*part)
        for piece in pieces:
            builder.add(piece[0], piece[-1], piece.step)
        for at in range(end, len(self.parts)):
            start, last, step = self.parts[at]
            builder.add(start, last, step)
            if builder.begins(start, last):
                return Ranges(self.parts[:first] + tuple(builder.parts) + self.parts[at:])
        return Ranges(self.parts[:first] + builder.finish().parts)

    def intersect(self, other: Ranges) -> Ranges:
        if len(other.parts) < len(self.parts):
            return other.intersect(self)
        return _build(common for part in self.parts for near in other._near(part) if (common := _common(_range(part), near)))

    def union(self, other: Ranges) -> Ranges:
        if not other.parts or not self.parts:
            return self if self.parts else other
        large, small = (self, other) if len(other.parts) < len(self.parts) else (other, self)
        begin, end = large._between(small.parts[0][0], small.parts[-1][1])
        spans = sorted(map(_range, large.parts[begin:end] + small.parts), key=lambda span: span.start)
        return large._patched(begin, end, map(_range, _union(spans).parts))

    def _near(self, part: Span) -> Iterator[range]:
        """The spans of this set whose hull touches the hull of `part`."""
        for at in range(bisect_left(self.parts, part[0], key=lambda own: own[1]), len(self.parts)):
            if self.parts[at][0] > part[1]:
                return
            yield _range(self.parts[at])

    def text(self) -> str:
        return ",".join(_part_text(*part) for part in self.parts)


EMPTY = Ranges()


def _range(part: Span) -> range:
    return range(part[0], part[1] + 1, part[2])


def _part_text(first: int, last: int, step: int) -> str:
    if first == last:
        return str(first)
    return f"{first}-{last}" if step == 1 else f"{first}-{last}:{step}"


def _parse_item(item: str) -> range:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise ValueError("bad index list")
    first = int(match[1])
    last = int(match[2] or first)
    step = int(match[3] or 1)
    if not 1 <= first <= last <= MAX_INDEX or not 1 <= step <= MAX_INDEX:
        raise ValueError("bad index list")
    return range(first, last + 1, step)


def _build(spans: Iterable[range]) -> Ranges:
    builder = _Builder()
    for span in spans:
        builder.add(span[0], span[-1], span.step)
    return builder.finish()


def _short(span: range) -> tuple[Span, ...]:
    if len(span) == 2 and span.step > 1:
        return ((span[0], span[0], 1), (span[1], span[1], 1))
    return ((span[0], span[-1], span.step if len(span) > 1 else 1),)


def _clip(span: range, low: int, high: int) -> range:
    """The part of `span` within low..high."""
    start = max(0, -((span.start - low) // span.step))
    stop = max(start, (high - span.start) // span.step + 1)
    return span[start:stop]


def _common(left: range, right: range) -> range:
    """The intersection of two spans, which is a span again."""
    shared = gcd(left.step, right.step)
    if (right.start - left.start) % shared:
        return range(0)
    step = left.step // shared * right.step
    inverse = pow(left.step // shared, -1, right.step // shared) if right.step > shared else 0
    first = left.start + (right.start - left.start) // shared * inverse % (right.step // shared) * left.step
    low, high = max(left.start, right.start), min(left[-1], right[-1])
    if first < low:
        first += -((first - low) // step) * step
    return range(first, high + 1, step)


def _subtract(span: range, others: Iterator[range]) -> Iterator[range]:
    for other in others:
        gone = _common(span, other)
        if not gone:
            continue
        before = _clip(span, span.start, gone[0] - 1)
        if before:
            yield before
        if gone.step == span.step:
            span = _clip(span, gone[-1] + 1, span[-1])
        else:
            yield from _between(span, gone)
            span = _clip(span, gone[-1] + 1, span[-1])
        if not span:
            return
    yield span


def _between(span: range, gone: range) -> Iterator[range]:
    for low, high in pairwise(gone):
        piece = _clip(span, low + 1, high - 1)
        if piece:
            yield piece


def mixed_hull(text: str) -> int:
    """How many indices the parsing of an index list visits one by one: 0 unless stepped ranges in it overlap."""
    if ":" not in text or "," not in text:
        return 0
    return _mixed_hull(sorted((_parse_item(item.strip()) for item in text.split(",")), key=lambda span: span.start))


def _mixed_hull(ordered: list[range]) -> int:
    return sum(max(span[-1] for span in group) - group[0].start + 1 for group in _overlapping(ordered) if _is_mixed(group))


def _is_mixed(group: list[range]) -> bool:
    """Whether stepped spans interleave with others, so that their union visits each index."""
    return len(group) > 1 and any(span.step > 1 for span in group if len(span) > 1)


def _union(ordered: list[range]) -> Ranges:
    """The union of spans sorted by their start; where stepped spans interleave, by way of a bitmap."""
    builder = _Builder()
    for group in _overlapping(ordered):
        top = max(span[-1] for span in group)
        if not _is_mixed(group):
            builder.add(group[0][0], top, group[0].step if len(group) == 1 else 1)
            continue
        base = group[0].start
        bits = bytearray(top - base + 1)
        for span in group:
            bits[span.start - base : span[-1] - base + 1 : span.step] = b"\1" * len(span)
        for index in compress(range(base, top + 1), bits):
            builder.add(index, index, 1)
    return builder.finish()


def _overlapping(ordered: list[range]) -> Iterator[list[range]]:
    group: list[range] = []
    top = 0
    for span in ordered:
        if group and span.start > top:
            yield group
            group = []
        group.append(span)
        top = max(top, span[-1])
    if group:
        yield group
