"""Patterns with stars mean what a regular expression would mean by them, and ids name no more than one request may."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.ids import key_of
from lavad.core.lang.job_names import MAX_KEYS, ArrayError, Wildcard, keys_named, parse_job_ids

TEXTS = st.text("ab*", max_size=8)


@given(TEXTS, st.text("ab", max_size=12))
def test_a_star_stands_for_anything(text: str, name: str) -> None:
    expected = re.fullmatch(re.escape(text).replace(r"\*", ".*"), name, re.DOTALL) is not None
    assert Wildcard(text).fits(name) is expected


def test_many_stars_end() -> None:
    """A search with backtracking would not return from this one."""
    assert not Wildcard("*a" * 40 + "*b").fits("a" * 4000)
    assert Wildcard("*a" * 40 + "*b").fits("a" * 4000 + "b")


def test_ids_name_jobs_and_elements() -> None:
    assert keys_named(["5", "6[2-3]", "0"]) == [5, key_of(6, 2), key_of(6, 3)]


@pytest.mark.parametrize("ids", [["1[1-2147483646]"], ["1[1-600000]", "2[1-600000]"], ["7[1-1000000]", "8"]])
def test_more_keys_than_a_request_may_name_are_refused_before_they_are_listed(ids: list[str]) -> None:
    with pytest.raises(ArrayError, match=f"More than {MAX_KEYS} jobs and elements"):
        keys_named(ids)


@pytest.mark.parametrize("indices", ["1-1000000000,5-6,10-20:2", "1-2000000000:2,2-2000000000:3"])
def test_overlapping_steps_that_would_be_visited_one_by_one_are_refused(indices: str) -> None:
    with pytest.raises(ArrayError, match="too large"):
        list(parse_job_ids([f"1[{indices}]"]))


def test_the_index_lists_of_one_request_are_bounded_together() -> None:
    one = "7[1-600000:2,2-600000:3]"
    ((_, job, indices),) = parse_job_ids([one])
    assert (job, indices is not None and len(indices)) == (7, 400_000)
    with pytest.raises(ArrayError, match="index lists of these job IDs are too large"):
        list(parse_job_ids([one, one]))
    assert len(list(parse_job_ids(["7[1-9:2,2-9:3]"] * 1000))) == 1000
