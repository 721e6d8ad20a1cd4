"""Words that are job ids, and those that no command sends."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.control.selection import check_id


@pytest.mark.parametrize("word", ["12", "0", "12[3]", "12[1-5:2,8]", "2147483647"])
def test_what_is_a_job_id(word: str) -> None:
    assert check_id(word) == word


@pytest.mark.parametrize(
    "word", ["", "x", "-1", "1.5", "²", "12]", "12[", "12[3", "12[]", "12[a]", "12[3]x", "[3]", "2147483648"]
)
def test_what_is_none(word: str) -> None:
    with pytest.raises(Fail) as refusal:
        check_id(word)
    assert (refusal.value.text, refusal.value.status) == (f"{word}: Illegal job ID.", 255)
