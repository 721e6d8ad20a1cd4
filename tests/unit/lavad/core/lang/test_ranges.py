"""Ranges against Python's sets, and their cost on large arrays."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.ranges import EMPTY, Ranges

SPANS = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 40), st.integers(1, 9)).map(lambda t: range(t[0], t[0] + t[1] + 1, t[2])),
    max_size=5,
)
SETS = SPANS.map(lambda spans: {index for span in spans for index in span})


def check(ranges, expected):
    assert list(ranges) == sorted(expected)
    assert len(ranges) == len(expected)
    assert ranges == Ranges.from_indices(expected)
    assert hash(ranges) == hash(Ranges.from_indices(expected))
    assert all((index in ranges) == (index in expected) for index in range(115))
    stops = [(first, last) for first, last, _ in ranges.parts]
    assert all(a[1] < b[0] for a, b in pairwise(stops))
    if expected:
        assert (ranges.min(), ranges.max()) == (min(expected), max(expected))
        assert Ranges.parse(ranges.text()) == ranges


@given(SPANS.filter(bool))
def test_parse_is_the_union_of_its_items(spans):
    text = ",".join(f"{span[0]}-{span.stop - 1}:{span.step}" for span in spans)
    check(Ranges.parse(text), {index for span in spans for index in span})


@given(SETS, SETS)
def test_operations_are_those_of_sets(left, right):
    a, b = Ranges.from_indices(left), Ranges.from_indices(right)
    check(a, left)
    check(a.minus(b), left - right)
    check(a.union(b), left | right)
    check(a.intersect(b), left & right)
    assert a.is_within(b) == (left <= right)


@given(SETS, SETS)
def test_a_small_set_patches_a_long_one_in_place(left, right):
    """What is far from the change stays as it is: nothing of it may hang on how it was made."""
    far = {1000 + 7 * at + at % 3 for at in range(40)}
    a, b = Ranges.from_indices(left | far | {index + 5000 for index in left}), Ranges.from_indices({at + 5000 for at in right})
    check(a.minus(b), left | far | {at + 5000 for at in left - right})
    check(a.union(b), left | far | {at + 5000 for at in left | right})


@given(SETS, st.integers(-1, 80))
def test_first_splits_in_order(indices, count):
    taken, rest = Ranges.from_indices(indices).first(count)
    ordered = sorted(indices)
    check(taken, set(ordered[: max(count, 0)]))
    check(rest, set(ordered[max(count, 0) :]))


def test_a_million_elements_stay_one_span():
    whole = Ranges.parse("1-1000000:2")
    taken, rest = whole.first(1000)
    assert (len(whole), len(taken), len(rest)) == (500_000, 1000, 499_000)
    assert len(taken.parts) == len(rest.parts) == 1
    assert Ranges.span(1, 1_000_000).minus(Ranges.span(10, 999_000)).text() == "1-9,999001-1000000"
    assert Ranges.span(1, 1_000_000).minus(whole).intersect(whole) == EMPTY
    assert len(Ranges.parse("1-1000000:2,2-1000000:2").parts) == 1


@pytest.mark.parametrize("text", ["", "0", "5-1", "1-", "-3", "a", "1-5:0", "1,,2", "1-5:2:3", "99999999999", "٣"])
def test_malformed_lists_are_refused(text):
    with pytest.raises(ValueError):
        Ranges.parse(text)


def test_huge_interleaved_spans_are_refused_before_they_cost_anything():
    with pytest.raises(ValueError, match="too large"):
        Ranges.parse("1-2000000000:2,2-2000000000:3")


def test_odd_members():
    assert "1" not in Ranges.span(1, 3)
    assert not EMPTY
    assert Ranges.span(5, 1) == EMPTY
