"""A set of job keys in little memory: of keys that follow each other a bit each."""

from __future__ import annotations

from collections.abc import Collection, Iterator

WIDTH = 9
"""Bits of a key that say which bit of its block it is."""
_SIZE = 1 << WIDTH
_IN_BLOCK = _SIZE - 1
_FULL = (1 << _SIZE) - 1
_FEW = 16
"""Bits of a block up to which they are looked for one by one."""


class KeySet(Collection[int]):
    """Keys in ascending order: separate jobs and arrays by id, behind them elements by index."""

    __slots__ = ("_blocks", "_size")

    def __init__(self) -> None:
        self._blocks: dict[int, int] = {}
        """Key without its last bits to which of the keys that begin so are there."""
        self._size = 0

    def add(self, key: int) -> None:
        """Add if it is not there."""
        at, bit = key >> WIDTH, 1 << (key & _IN_BLOCK)
        block = self._blocks.get(at, 0)
        if not block & bit:
            self._blocks[at] = block | bit
            self._size += 1

    def discard(self, key: int) -> bool:
        """Remove if it is there; whether it was."""
        at, bit = key >> WIDTH, 1 << (key & _IN_BLOCK)
        block = self._blocks.get(at, 0)
        if not block & bit:
            return False
        if block == bit:
            del self._blocks[at]
        else:
            self._blocks[at] = block ^ bit
        self._size -= 1
        return True

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and self._blocks.get(key >> WIDTH, 0) >> (key & _IN_BLOCK) & 1 == 1

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return iter((self.last(),)) if self._size == 1 else self._all()

    def _all(self) -> Iterator[int]:
        for at in sorted(self._blocks):
            yield from _keys(at << WIDTH, self._blocks[at])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeySet) and self._blocks == other._blocks

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"KeySet({[*self]})"

    def last(self) -> int:
        """The highest key; raises ValueError where there is none."""
        at = max(self._blocks)
        return (at << WIDTH) + self._blocks[at].bit_length() - 1

    def copied(self) -> KeySet:
        """The same keys in another set."""
        other = KeySet()
        other._blocks, other._size = dict(self._blocks), self._size
        return other


def _keys(base: int, block: int) -> Iterator[int]:
    if block == _FULL:
        yield from range(base, base + _SIZE)
    elif block.bit_count() > _FEW:
        yield from [base + at for at, bit in enumerate(bin(block)[:1:-1]) if bit == "1"]
    else:
        while block:
            low = block & -block
            yield base + low.bit_length() - 1
            block ^= low
