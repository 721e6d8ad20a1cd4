"""Time windows, checked minute by minute against a plain reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.text.units import week_spans
from lavad.core.lang.windows import DAY, WEEK, WindowError, is_open, next_change, parse_windows

TIMES = st.tuples(st.integers(0, 23), st.integers(0, 59))


def at(day, hour, minute=0):
    return day, hour * 3600 + minute * 60


@pytest.mark.parametrize(
    ("text", "open_at", "closed_at"),
    [
        ("8:30-18:30", [at(0, 8, 30), at(6, 18, 29)], [at(0, 8, 29), at(3, 18, 30)]),
        ("20:00-8:30", [at(0, 0), at(6, 23, 59), at(2, 8, 29)], [at(2, 8, 30), at(2, 19, 59)]),
        (
            "5:18:30-1:8:30",
            [at(5, 18, 30), at(6, 12), at(0, 0), at(1, 8, 29)],
            [at(1, 8, 30), at(5, 18, 29), at(3, 12)],
        ),
        ("2:00-2:05", [at(4, 2, 4)], [at(4, 2, 5)]),
        ("20-8", [at(1, 21)], [at(1, 9)]),
        ("6:0:00-7:0:00", [at(6, 12)], [at(0, 0), at(5, 23, 59)]),
        ("22:00-24:00", [at(6, 23, 59)], [at(0, 0)]),
        ("8:00-8:00", [at(0, 0), at(3, 8)], []),
        ("", [at(0, 0)], []),
        ("20:00-8:30 5:18:00-1:8:30", [at(6, 12), at(2, 21)], [at(2, 12)]),
        ("mon:8:00-Fri:18:00", [at(1, 8), at(3, 0), at(5, 17, 59)], [at(1, 7, 59), at(5, 18), at(0, 12)]),
        ("sat:20:00-sun:6:00", [at(6, 23), at(0, 5)], [at(0, 6), at(6, 19)]),
    ],
)
def test_open_and_closed(text, open_at, closed_at):
    windows = parse_windows(text)
    assert all(is_open(windows, local) for local in open_at)
    assert not any(is_open(windows, local) for local in closed_at)


DAYS = st.sampled_from(["0", "3", "6", "7", "sun", "mon", "Tue", "WED", "thu", "fri", "sat"])


@given(st.tuples(DAYS, DAYS) | st.just(("", "")), TIMES, TIMES)
def test_what_the_files_may_say_opens_when_they_say(days, begin, end):
    """Files are checked by ``config.text.units``: what it lets pass means the same here."""
    first, last = (f"{day}:{hour}:{minute:02}".lstrip(":") for day, (hour, minute) in zip(days, (begin, end), strict=True))
    text = f"{first}-{last}"
    if begin == end and days[0] == days[1]:
        return
    try:
        spans = week_spans((text,))
    except ValueError:
        assert begin == end, "one day by its name and by its number"
        return
    minutes = {minute for opens, closes in spans for minute in range(opens, closes)}
    windows = parse_windows(text)
    for minute in {edge + more for span in spans for edge in span for more in (-1, 0, 1)}:
        assert is_open(windows, divmod(minute % (7 * 1440) * 60, DAY)) == (minute % (7 * 1440) in minutes)


@given(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=3), st.integers(0, WEEK - 1))
def test_next_change_is_the_first_flip(pairs, second):
    windows = parse_windows(" ".join(f"{a}:{b:02}-{c}:{d:02}" for (a, b), (c, d) in pairs))
    local = divmod(second, DAY)
    wait = next_change(windows, local)
    now = is_open(windows, local)
    if wait is None:
        assert all(is_open(windows, divmod(minute * 60, DAY)) for minute in range(0, 7 * 1440, 7))
        return
    assert 0 < wait <= WEEK
    assert is_open(windows, divmod((second + wait) % WEEK, DAY)) is not now
    before = [second + step for step in range(0, wait, 53)] + [second + wait - 1]
    assert all(is_open(windows, divmod(moment % WEEK, DAY)) is now for moment in before)


@pytest.mark.parametrize("text", ["8", "8-", "25:00-1:00", "8:60-9:00", "8:0:00-9:0:00", "5:18:00-8:30", "a-b", "8:00-24:30"])
def test_bad_windows_name_themselves(text):
    with pytest.raises(WindowError) as error:
        parse_windows(text)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text(alphabet="0123456789:- ", max_size=40) | st.text(max_size=30))
def test_any_text_parses_or_is_refused(text):
    try:
        windows = parse_windows(text)
    except WindowError:
        return
    next_change(windows, (0, 0))
