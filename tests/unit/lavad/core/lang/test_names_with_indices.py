"""Job names with index lists and job ids with index lists."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.job_names import ArrayError, ArraySpec, parse_job_id, parse_job_name
from lavad.core.lang.ranges import Ranges


def test_an_array_with_a_limit():
    spec = parse_job_name("name[1-1000:2,7]%10")
    assert isinstance(spec, ArraySpec)
    assert (spec.name, spec.limit, len(spec.indices)) == ("name", 10, 500)
    assert parse_job_name(spec.text()) == spec


@pytest.mark.parametrize("text", ["name", "a b", "50%", "x*", ""])
def test_a_plain_name_stays(text):
    assert parse_job_name(text) == text


@pytest.mark.parametrize(
    "text",
    ["n[", "n]", "n[]", "n[5-1]", "n[0]", "n[1-3]x", "n[1-3]%", "n[1-3]%0", "n[a]", "n[1][2]", "n\n", "x" * 4095],
)
def test_bad_names(text):
    with pytest.raises(ArrayError, match=r"^Bad job name$"):
        parse_job_name(text)


@pytest.mark.parametrize("text", ["a[1-5000]", "a[1001]", "a[1-2000000000:2,2-2000000000:3]", "a[1-99999999999]"])
def test_too_large(text):
    with pytest.raises(ArrayError, match=r"^Job array index too large$"):
        parse_job_name(text)


def test_the_limit_is_the_callers():
    spec = parse_job_name("a[1-1000000]", 1_000_000)
    assert isinstance(spec, ArraySpec)
    assert len(spec.indices) == 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("105", (105, None)),
        ("0", (0, None)),
        ("105[3]", (105, Ranges.parse("3"))),
        ("105[1-3,5]", (105, Ranges.parse("1-3,5"))),
    ],
)
def test_job_ids(text, expected):
    assert parse_job_id(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "-1", "1.5", "105[", "105[]", "105[0]", "0[1]", "105[a]", "9999999999", "²"])
def test_illegal_job_ids(text):
    with pytest.raises(ArrayError, match=r"Illegal job ID$"):
        parse_job_id(text)


@given(st.text(alphabet="a1205[]-:,% \n", max_size=40) | st.text(max_size=40))
def test_any_text_parses_or_is_refused(text):
    for parse in (parse_job_name, parse_job_id):
        with suppress(ArrayError):
            parse(text)
