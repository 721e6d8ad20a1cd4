"""Queries read a real store: the same jobs give the same text as from memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from lavad.core.asks import Query
from lavad.core.cluster import Cluster
from lavad.core.events import MasterStarted
from lavad.queries.render import render
from lavad.queries.view import View
from lavad.queryproc import StoreView
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.query_cluster import ALICE, QueryCluster, element
from tests.support.stores import commit

ASKS: list[tuple[str, list[str], dict[str, str | bool | list[str]]]] = [
    ("bjobs", [], {"a": True}), ("bjobs", ["5"], {}), ("bjobs", ["5[2]", "1"], {"l": True}), ("bjobs", [], {"A": True}),
    ("bjobs", [], {"a": True, "o": "jobid jobindex stat command exit_code output_file delimiter=','"}),
    ("bhist", [], {"a": True}), ("bhist", ["1"], {"l": True}), ("bhist", ["5"], {"l": True}), ("bjobs", ["9"], {}),
    ("bjobs", ["1"], {"script": True}), ("bhist", [], {"t": True, "T": "2026/11/20/11:30,2026/11/20/11:50"}),
]  # fmt: skip


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
    url = f"sqlite:///{tmp_path}/lava.db"
    store = Store.open(url)
    cluster = Cluster()
    events = [replace(e, epoch=0) if isinstance(e, MasterStarted) else e for _, e in c.store.events]
    commit(store, cluster, events, texts=list(c.store.kept_texts.items()))
    store.close()
    reader = Reader.open(url)
    view = View(cluster, c.soft, StoreView(reader), master="ol1", version="0.1.0", built="Nov 20 2026")
    query = Query(command=command, words=words, options=options)
    found = list(render(view, query, ALICE, c.now))
    reader.close()
    out, err, status = c.query(query)
    assert "".join(text for kind, text in found if kind == "out") == out
    assert "".join(text for kind, text in found if kind == "err") == err
    assert found[-1] == ("exit", str(status))
