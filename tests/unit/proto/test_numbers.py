"""Numbers as users write them."""

from __future__ import annotations

import pytest

from proto.numbers import MOST, find_number, find_seconds


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("7", 7), ("0" * 5000 + "7", 7), (str(MOST), MOST), ("000", 0)],
)
def test_plain_digits_are_a_number(text: str, number: int) -> None:
    assert find_number(text) == number


@pytest.mark.parametrize("text", ["", " 1", "-1", "+1", "1_0", "1.0", "²", "٣", str(MOST + 1), "9" * 5000, "1\n"])
def test_anything_else_is_none(text: str) -> None:
    assert find_number(text) is None


def test_bounds_are_part_of_it() -> None:
    assert [find_number(text, 1, 64) for text in ("0", "1", "64", "65")] == [None, 1, 64, None]


@pytest.mark.parametrize(("text", "seconds"), [("2", 2.0), (".5", 0.5), ("1.", 1.0), ("1.25", 1.25)])
def test_seconds_may_have_a_fraction(text: str, seconds: float) -> None:
    assert find_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", ".", "0", "0.0", "²", "1.²", "1e3", "-1", "nan", "9" * 5000, "1.5.2"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert find_seconds(text) == 0.0
