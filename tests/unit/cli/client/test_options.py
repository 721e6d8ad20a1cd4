"""getopt's way of reading options, which all commands have but those of bsub's family."""

from __future__ import annotations

from typing import Any

import pytest

from cli.client.context import Fail
from cli.client.options import Table, read_letters

TABLE = Table("bjobs", "a l noheader", "J u o", "[job_ID ...]", refused="l", repeated="u")


def read(*words: str) -> tuple[dict[str, Any], list[str]]:
    return read_letters(TABLE, list(words))


@pytest.mark.parametrize(
    ("words", "options", "rest"),
    [
        (["5", "-a", "6"], {"a": True}, ["5", "6"]),
        (["-noheader", "-aJ", "x"], {"noheader": True, "a": True, "J": "x"}, []),
        (["-Jx", "5"], {"J": "x"}, ["5"]),
        (["-J", "5", "6"], {"J": "5"}, ["6"]),
        (["-J", "a", "-J", "b"], {"J": "b"}, []),
        (["-u", "a", "-ub"], {"u": ["a", "b"]}, []),
        (["-a", "--", "-J", "5"], {"a": True}, ["-J", "5"]),
        (["-", ""], {}, ["-", ""]),
        (["-o", "stat", "5"], {"o": "stat"}, ["5"]),
        (["-o", "-a", "5", "stat id"], {"o": "stat id", "a": True}, ["5"]),
        (["-h"], {"h": True}, []),
    ],
)
def test_options_and_words(words: list[str], options: dict[str, Any], rest: list[str]) -> None:
    """``-o`` may be followed by other options, and its value by them, as some programs write it."""
    assert read(*words) == (options, rest)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-J"], "option requires an argument -- 'J'"),
        (["-J", "-a"], "option requires an argument -- 'J'"),
        (["-o"], "option requires an argument -- 'o'"),
        (["-o", "-a", "5"], "option requires an argument -- 'o'"),
        (["-ax"], "invalid option -- 'x'"),
        (["-aJx"], "invalid option -- 'aJx'"),
        (["-al"], "option -l is not supported by lava"),
    ],
)
def test_what_is_refused(words: list[str], why: str) -> None:
    with pytest.raises(Fail) as refusal:
        read(*words)
    assert refusal.value.text.splitlines()[0] == f"bjobs: {why}"
    assert refusal.value.status == 255


def test_the_usage_is_folded_and_leaves_out_what_lava_has_not() -> None:
    table = Table("bjobs", "a l", " ".join(f"option{number}" for number in range(5)), "[job_ID ...]", refused="l")
    assert table.usage() == (
        "Usage: bjobs [-a] [-option0 value] [-option1 value] [-option2 value]\n"
        "             [-option3 value] [-option4 value] [-h] [-V] [job_ID ...]"
    )
