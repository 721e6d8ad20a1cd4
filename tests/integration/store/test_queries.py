"""Queries read a real store: the same jobs give the same text as from memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad.core.lang.asks import Query
from tests.support.worlds.query_cluster import QueryCluster, element
from tests.support.worlds.query_store import stored

ASKS: list[tuple[str, list[str], dict[str, str | bool | list[str]]]] = [
    ("bjobs", [], {"a": True}),
    ("bjobs", ["5"], {}),
    ("bjobs", ["5[2]", "1"], {"l": True}),
    ("bjobs", [], {"A": True}),
    ("bjobs", [], {"a": True, "o": "jobid jobindex stat command exit_code output_file delimiter=','"}),
    ("bhist", [], {"a": True}),
    ("bhist", ["1"], {"l": True}),
    ("bhist", ["5"], {"l": True}),
    ("bjobs", ["9"], {}),
    ("bjobs", ["1"], {"script": True}),
    ("bhist", [], {"t": True, "T": "2026/11/20/11:30,2026/11/20/11:50"}),
]


def grown() -> QueryCluster:
    c = QueryCluster()
    c.submit(1, name="one", command="sleep 1", text={"output": "o.%J", "script": "#!/bin/sh\nsleep 1\n"})
    c.start(1)
    c.finish(1, status=256)
    c.submit(5, name="arr", indices="1-3")
    for index in (2, 3):
        c.start(element(5, index))
    c.finish(element(5, 2))
    c.submit(6, name="waits", held=True)
    return c


@pytest.mark.parametrize(("command", "words", "options"), ASKS)
def test_the_store_gives_the_same_text(
    tmp_path: Path, command: str, words: list[str], options: dict[str, str | bool | list[str]]
) -> None:
    c = grown()
    query = Query(command=command, words=words, options=options)
    with stored(c, tmp_path) as store:
        assert store.query(query) == c.query(query)
