"""LSF's limits, points in time and intervals."""

from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.when import WhenError, parse_interval, parse_limit, parse_point

NOW = datetime(2026, 11, 20, 11, 30, 30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10", (600, None)),
        ("2:00", (7200, None)),
        ("90/ol2", (5400, "ol2")),
        ("1:30/IntelI5", (5400, "IntelI5")),
        ("0:1", (60, None)),
        ("0", (0, None)),
    ],
)
def test_limits(text, expected):
    assert parse_limit(text) == expected


@pytest.mark.parametrize("text", ["abc", "wd", "", "-5", "1:2:3", "10/", "1.5", "999999999:0", "/ol1"])
def test_bad_limits(text):
    with pytest.raises(WhenError):
        parse_limit(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("23:58", datetime(2026, 11, 20, 23, 58)),
        ("11:30", datetime(2026, 11, 21, 11, 30)),
        ("20:11:31", datetime(2026, 11, 20, 11, 31)),
        ("20:11:30", datetime(2026, 12, 20, 11, 30)),
        ("31:0:00", datetime(2026, 12, 31)),
        ("1:15:8:00", datetime(2027, 1, 15, 8)),
        ("2:29:8:00", datetime(2028, 2, 29, 8)),
        ("2030:2:1:8:00", datetime(2030, 2, 1, 8)),
    ],
)
def test_points_are_the_next_that_fits(text, expected):
    assert parse_point(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["99:99", "24:00", "12", "", "2:30:8:00", "13:1:8:00", "2020:1:1:8:00", "32:8:00", "a:b", "0:8:00"]
)
def test_bad_points(text):
    with pytest.raises(WhenError):
        parse_point(text, NOW)


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("2026/11/19/09:30,2026/11/20/10:00", datetime(2026, 11, 19, 9, 30), datetime(2026, 11, 20, 10, 0, 59)),
        (".-1,.", datetime(2026, 11, 19, 11, 30, 30), NOW),
        (".-3/,.", datetime(2026, 8, 20, 11, 30, 30), NOW),
        (".-/2:30,.", datetime(2026, 11, 20, 9, 0, 30), NOW),
        (".-4:", datetime(2026, 11, 20, 7, 30, 30), NOW),
        ("3/", datetime(2026, 3, 1), datetime(2026, 3, 31, 23, 59, 59)),
        ("17", datetime(2026, 11, 17), datetime(2026, 11, 17, 23, 59, 59)),
        ("/17", datetime(2026, 11, 17), datetime(2026, 11, 17, 23, 59, 59)),
        ("11/17,", datetime(2026, 11, 17), None),
        (",11/17", None, datetime(2026, 11, 17, 23, 59, 59)),
        ("9:", datetime(2026, 11, 20, 9), datetime(2026, 11, 20, 9, 59, 59)),
        ("17/9:15,.", datetime(2026, 11, 17, 9, 15), NOW),
        ("/09:15,.", datetime(2026, 11, 20, 9, 15), NOW),
        ("2025/", datetime(2025, 1, 1), datetime(2025, 12, 31, 23, 59, 59)),
        ("2025/2", datetime(2025, 2, 1), datetime(2025, 2, 28, 23, 59, 59)),
    ],
)
def test_intervals(text, begin, end):
    assert parse_interval(text, NOW) == (begin, end)


@pytest.mark.parametrize(
    "text", ["", ",", "a", "13/", "31", "2026/11/31,.", ".-", ".-x,.", "1,2,3", ",.-", "25:00", "1/2/3/4/5", "/"]
)
def test_bad_intervals(text):
    with pytest.raises(WhenError):
        parse_interval(text, NOW)


@given(
    st.text(alphabet="0123456789:/.,- ", max_size=30) | st.text(max_size=20),
    st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)),
)
def test_any_text_parses_or_is_refused(text, now):
    for parse in (parse_limit, lambda word: parse_point(word, now), lambda word: parse_interval(word, now)):
        with suppress(WhenError):
            parse(text)
