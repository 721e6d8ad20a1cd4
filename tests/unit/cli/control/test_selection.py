"""Words that are job ids, and what is told of each job that a command has changed."""

from __future__ import annotations

from typing import Any

import pytest

from cli.client.context import Context, Fail
from cli.control.selection import Wording, check_id, report


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


@pytest.mark.parametrize(
    ("answer", "select", "said", "status"),
    [
        ({"results": [{"id": "5", "ok": True}]}, {}, ("done 5\n", ""), 0),
        ({"results": [{"id": "5", "ok": True}, {"id": "6", "why": "no"}]}, {}, ("done 5\n", "Job <6>: no\n"), 255),
        ({"results": [{"id": "5", "why": "harmless"}]}, {}, ("", "Job <5>: harmless\n"), 0),
        ({"results": [{"id": "5", "why": "q: No such queue"}]}, {}, ("", "q: No such queue\n"), 255),
        ({}, {}, ("", "No matching job found\n"), 255),
        ({"none": "No matching job found, here"}, {"user": "all"}, ("", "No matching job found, here\n"), 255),
        ({}, {"name": "a"}, ("", "Job <a> is not found\n"), 255),
        ({}, {"name": "a", "ids": ["0"]}, ("", "Job <a> is not found\n"), 255),
        ({}, {"name": "a", "ids": ["7"]}, ("", "No matching job found\n"), 255),
    ],
)
def test_what_is_told_of_each_job(
    capfd: pytest.CaptureFixture[str], answer: Any, select: Any, said: tuple[str, str], status: int
) -> None:
    wording = Wording(alone=["q"], harmless=("harmless",))
    assert report(Context([]), answer, select, lambda job: f"done {job}", wording) == status
    assert capfd.readouterr() == said
