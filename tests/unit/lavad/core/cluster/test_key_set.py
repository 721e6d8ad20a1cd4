"""Keys in bits are the same keys, in ascending order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.cluster.key_set import KeySet

_KEYS = st.one_of(st.integers(0, 1100), st.integers(0, 1 << 70))


@given(st.lists(st.tuples(st.booleans(), _KEYS)))
def test_it_has_what_was_added_and_not_removed_in_ascending_order(steps: list[tuple[bool, int]]) -> None:
    kept, known = KeySet(), set[int]()
    for adds, key in steps:
        if adds:
            kept.add(key)
            known.add(key)
        else:
            assert kept.discard(key) == (key in known)
            known.discard(key)
        assert (key in kept) == (key in known)
    assert [*kept] == sorted(known)
    assert len(kept) == len(known)
    if known:
        assert kept.last() == max(known)


def test_a_full_block_a_crowded_and_a_sparse_one_are_listed_alike() -> None:
    kept = KeySet()
    for key in [*range(1, 2000), 1 << 40]:
        kept.add(key)
    for key in [*range(600, 1000, 3), *range(1025, 1530)]:
        assert kept.discard(key)
    assert [*kept] == sorted({*range(1, 2000), 1 << 40} - {*range(600, 1000, 3), *range(1025, 1530)})


def test_equal_sets_are_equal_and_a_copy_is_another() -> None:
    one, other = KeySet(), KeySet()
    one.add(3)
    one.add(900)
    one.discard(900)
    assert one != other
    other.add(3)
    assert one == other
    copy = one.copied()
    copy.add(4)
    assert ([*one], [*copy], len(copy)) == ([3], [3, 4], 2)
    with pytest.raises(ValueError, match="empty"):
        KeySet().last()
