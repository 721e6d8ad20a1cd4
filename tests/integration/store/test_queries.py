"""Queries read a real store: the same jobs give the same text as from memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lavad.core.lang.asks import Query
from lavad.queries.records import jobs
from tests.support.stores.stores import store_url  # noqa: F401
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


def mixed() -> QueryCluster:
    """Jobs and arrays by number: ended, live, and an array of which some elements have ended."""
    c = QueryCluster()
    for job in range(1, 21):
        if job % 5:
            c.submit(job, name=f"job{job}", queue="night" if job % 2 else "normal")
            if job % 3:
                c.start(job)
                c.finish(job, status=256 if job % 4 else 0)
        else:
            c.submit(job, name=f"array{job}", indices="1-6")
            for index in range(1, 7 if job == 5 else 4):
                c.start(element(job, index))
                c.finish(element(job, index))
    return c


@pytest.mark.parametrize("batch", [2, 500])
def test_pages_of_jobs_follow_each_other_on_either_store(
    tmp_path: Path,
    store_url: str,  # noqa: F811
    batch: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "STORED", batch)
    c = mixed()
    filters: list[dict[str, Any]] = [{}, {"state": "finished"}, {"state": "live"}, {"state": "EXIT", "queue": "night"}]
    filters += [{"array": "10"}, {"search": "job1"}]
    with stored(c, tmp_path, store_url) as store:
        for filtered in filters:
            for sort in ("id", "-id"):
                options: dict[str, Any] = {**filtered, "sort": sort}
                whole = json.loads(c.ask("api", "jobs", **options, limit="1000")[0])
                assert whole["next"] is None
                rows: list[object] = []
                cursor = ""
                while True:
                    out, err, _ = store.ask("api", "jobs", **options, limit="3", cursor=cursor)
                    assert err == ""
                    page = json.loads(out)
                    rows += page["jobs"]
                    assert len(page["jobs"]) == 3 or page["next"] is None
                    if page["next"] is None:
                        break
                    cursor = page["next"]
                assert rows == whole["jobs"], options
                assert len(rows) >= 2, options
