"""LSB_DISPLAY_YEAR: the year behind each time of bjobs -l, bhist and bacct -l."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.worlds.query_cluster import QueryCluster
from tests.support.worlds.query_store import stored

TIME = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d( \d{4}\b)?")


@pytest.mark.parametrize("year", [False, True])
@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        ("bjobs", {"l": True}, ("1",)),
        ("bjobs", {"l": True}, ("2",)),
        ("bhist", {"l": True}, ("1",)),
        ("bhist", {"b": True, "a": True}, ()),
        ("bhist", {"t": True, "T": ".-6,"}, ()),
        ("bacct", {"l": True}, ()),
    ],
)
def test_times_have_the_year(command: str, options: dict[str, Any], words: tuple[str, ...], year: bool, tmp_path: Path) -> None:
    c = QueryCluster(lsb_display_year=year)
    c.submit(1, begin=c.now + 60, deadline=c.now + 90_000)
    c.submit(2)
    c.start(2)
    c.finish(2)
    with stored(c, tmp_path) as store:
        shown, _, status = store.ask(command, *words, **options)
    found = TIME.findall(shown)
    assert status == 0
    assert found
    assert [bool(one) for one in found] == [year] * len(found)
