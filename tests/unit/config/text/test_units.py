"""Times, sizes, windows."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.text.units import Moment, Window, duration_s, seconds, size_kb, window, windows


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10", 600), ("1:30", 5400), ("0:90", 5400), ("2h", 7200), ("90m", 5400), ("30s", 30), ("1d", 86400), ("0.5", 30)],
)
def test_durations(text, expected):
    assert duration_s(text) == expected


@pytest.mark.parametrize("text", ["", "x", "1:", ":1", "1:2:3", "-1", "1e3", "10w", "٣"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="not a time"):
        duration_s(text)


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("600", 600), ("10m", 600), ("1H", 3600)])
def test_seconds(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("4", "K", 4),
        ("4", "M", 4096),
        ("4", "G", 4 << 20),
        ("4G", "K", 4 << 20),
        ("500MB", "K", 512_000),
        ("0.5g", "K", 1 << 19),
        ("7KB", "M", 7),
        ("1T", "K", 1 << 30),
    ],
)
def test_sizes(text, unit, expected):
    assert size_kb(text, unit) == expected


@pytest.mark.parametrize("text", ["", "x", "4X", "-4", "4 4", "9" * 50, "99999999999999999999T", "4GBB"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError):
        size_kb(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20:00-8:30", Window(Moment(None, 1200), Moment(None, 510))),
        ("5:19:00-1:8:30", Window(Moment(5, 1140), Moment(1, 510))),
        ("8-17", Window(Moment(None, 480), Moment(None, 1020))),
        ("7:00:00-1:00:00", Window(Moment(0, 0), Moment(1, 0))),
        ("fri:18:00-mon:8:00", Window(Moment(5, 1080), Moment(1, 480))),
        ("0:00-24:00", Window(Moment(None, 0), Moment(None, 1440))),
    ],
)
def test_windows(text, expected):
    assert window(text) == expected


NO_WINDOWS = ["", "8", "8-", "-8", "25:00-3", "8:60-9", "1:8:00-9:00", "8-8", "8:1:1-9:1:1", "x-y", "24:30-3"]


@pytest.mark.parametrize("text", NO_WINDOWS)
def test_what_is_no_window(text):
    with pytest.raises(ValueError, match=r"window|not a time"):
        window(text)


def test_a_list_of_windows_stays_as_it_is_written():
    assert windows(" 8:00-9:00   20-22 ") == ("8:00-9:00", "20-22")


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_a_value_error(text):
    for parse in (duration_s, seconds, size_kb, window, windows):
        with contextlib.suppress(ValueError):
            parse(text)


def test_how_much_is_logged():
    from config.lsfconf import level_of

    assert [level_of(mask) for mask in ("LOG_ERR", "log_warning", "LOG_DEBUG3", "", "x")] == [40, 30, 10, 20, 20]
