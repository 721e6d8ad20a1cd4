"""bjobs --watch: when the listing is made again."""

from __future__ import annotations

import pytest

from cli.live.again import LONGEST, OTHERS, longest


@pytest.mark.parametrize(
    ("options", "words", "seconds"),
    [
        ({}, [], LONGEST),
        ({"q": "night", "w": True}, [], LONGEST),
        ({"u": "all"}, [], OTHERS),
        ({"G": "gold"}, [], OTHERS),
        ({}, ["12"], OTHERS),
    ],
)
def test_jobs_that_may_be_of_others_are_looked_at_at_intervals(
    options: dict[str, str | bool], words: list[str], seconds: float
) -> None:
    assert longest(dict(options), words) == seconds
