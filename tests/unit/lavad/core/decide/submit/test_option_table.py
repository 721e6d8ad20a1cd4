"""The whole option table of bsub against wrong, empty, huge, negative and non-ASCII values: each is taken or refused in one line.

What an option does is told in test_submit; here only that no value of any option is an accident.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.client.context import Fail
from cli.client.options import read_command_options
from cli.submit.submit_options import bsub_table
from config.model.values import Limits
from lavad.core.decide.submit.readers import READERS
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Refused
from proto.options import BY_NAME, FLAG, OPTIONS
from tests.support.examples import examples
from tests.support.worlds.bench import Bench

BSUB = [option for option in OPTIONS if option.only != "bmod"]
REFUSED = {option.name for option in BSUB if option.unsupported}
SENT = sorted(option.name for option in BSUB if option.sent and not option.options_file and option.name != "K")
VALUES = [
    "",
    " ",
    "-1",
    "0",
    "9" * 40,
    "9" * 5000,
    "x" * 70_000,
    "ü",
    "\u2028",
    "a\nb",
    "a\0b",
    "[",
    "((((",
    "1:2:3:4:5:6:7",
    "%",
    "-",
    ":",
    "=",
]


def test_each_row_has_its_reader_and_each_reader_its_row() -> None:
    """But for what lava has not, what means another option, and what the commands carry out alone."""
    sent = [option for option in OPTIONS if option.sent and not (option.unsupported or option.same_as or option.options_file)]
    assert {option.name for option in sent} == READERS.keys() - {"env"}
    assert READERS.keys() <= BY_NAME.keys()


def test_each_field_of_a_row_is_one_of_a_job() -> None:
    for option in OPTIONS:
        for field in option.fields.split():
            name = field.removeprefix("limits.")
            owners = [Limits] if field != name else [Spec, JobText]
            assert sum(name in owner.__struct_fields__ for owner in owners) == 1, (option.name, field)


def test_what_is_reset_has_fields_or_a_way_of_its_own() -> None:
    """-Jn, -qn, -wn, -tin change what is not in Spec nor JobText, -hln nothing, and -rn is an option itself."""
    without = {option.name for option in OPTIONS if option.has_reset and not option.fields}
    assert without == {"J", "q", "w", "ti", "hl", "r"}


def refusal(bench: Bench, option: str, value: Any) -> str:
    """Why it is refused, "" if it is not; nothing is queued by a refusal."""
    before = bench.cluster.next_job
    text = ""
    try:
        bench.bsub(**{option: value})
    except Refused as refused:
        text = refused.text if refused.exit_code == 255 else "another exit code"
    assert (bench.cluster.next_job == before) is bool(text)
    return text


@pytest.mark.parametrize("option", SENT)
def test_any_value_of_any_option(bench: Bench, option: str) -> None:
    for value in [True, *VALUES]:
        text = refusal(bench, option, value)
        assert "\n" not in text.strip("\n") or "\n" in str(value), text[:200]
        assert len(text) < 70_200


@pytest.mark.parametrize("option", SENT)
def test_an_option_works_or_is_refused_by_its_name(bench: Bench, option: str) -> None:
    if option not in READERS:
        assert refusal(bench, option, "1") == f"option -{option} is not supported by lava"
    elif option in REFUSED:
        with pytest.raises(Fail, match=f"option -{option} is not supported by lava"):
            read_command_options(bsub_table(), [f"-{option}", "1", "true"])


@pytest.mark.parametrize("option", [option.name for option in BSUB if option.takes != FLAG and not option.unsupported])
def test_a_missing_value(option: str) -> None:
    for words in ([f"-{option}"], [f"-{option}", "-H", "true"]):
        with pytest.raises(Fail, match=f"option requires an argument -- {option}$"):
            read_command_options(bsub_table(), words)


@settings(max_examples=examples(300))
@given(option=st.sampled_from(sorted(READERS)), value=st.text(max_size=40) | st.lists(st.text(max_size=12), max_size=3))
def test_text_that_nobody_thought_of(option: str, value: Any) -> None:
    with contextlib.suppress(Refused):
        Bench().bsub(**{option: value})
