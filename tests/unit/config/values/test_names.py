"""LSF_HOST_ADDR_RANGE and LSF_DYNAMIC_HOST_TIMEOUT."""

from __future__ import annotations

import pytest

from config.values import values as v
from config.values.names import is_within, parse_addresses
from config.values.values import host_hours


@pytest.mark.parametrize(
    ("address", "words", "wanted"),
    [
        ("10.1.2.3", ("*.*.*.*",), True),
        ("10.1.2.3", ("10.1",), True),
        ("10.2.2.3", ("10.1",), False),
        ("100.105.30.41", ("100.*.30-54",), True),
        ("100.105.55.41", ("100.*.30-54",), False),
        ("124.5.1.30", ("1.1.1.1", "124-*.1-*.1.*-34"), True),
        ("124.5.1.35", ("124-*.1-*.1.*-34",), False),
        ("::ffff:10.0.0.1", ("10.0.0.1",), True),
        ("fe80::1", ("*.*.*.*",), False),
        ("", ("*",), False),
    ],
)
def test_within(address: str, words: tuple[str, ...], wanted: bool) -> None:
    assert is_within(address, words) is wanted


@pytest.mark.parametrize("word", ["", "256", "1-", "5-4", "1.2.3.4.5", "a.b", "10.1/16", "²", "1..2"])
def test_no_range(word: str) -> None:
    with pytest.raises(ValueError, match=r"range|four"):
        parse_addresses(word)


@pytest.mark.parametrize(("value", "seconds"), [("60", 216000), ("60m", 3600), ("10M", 600), ("0", 0)])
def test_hours_or_minutes(value: str, seconds: int) -> None:
    assert host_hours(value, v.Scope()) == seconds
    with pytest.raises(ValueError, match="is not hours"):
        host_hours("x" + value, v.Scope())
