"""The cluster of ``query_cluster`` as a real store has it: for queries that the database answers, as bacct's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import MasterStarted
from lavad.core.lang.asks import Caller, Query
from lavad.queries.frame.view import View
from lavad.queries.render import render
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.stores.stores import commit
from tests.support.worlds.query_cluster import ALICE, QueryCluster


class Stored:
    """Asks queries of a view whose reader is the store."""

    def __init__(self, view: View, now: float) -> None:
        self.view = view
        self.now = now

    def query(self, query: Query, caller: Caller = ALICE) -> tuple[str, str, int]:
        """stdout, stderr and exit status."""
        found = list(render(self.view, query, caller, self.now))
        out, err = ("".join(text for kind, text in found if kind == which) for which in ("out", "err"))
        return out, err, int(found[-1][1])

    def ask(self, command: str, *words: str, caller: Caller = ALICE, **options: Any) -> tuple[str, str, int]:
        """As ``QueryCluster.ask``."""
        return self.query(Query(command=command, options=options, words=list(words)), caller)


@contextmanager
def stored(c: QueryCluster, folder: Path, url: str = "") -> Iterator[Stored]:
    """All that has happened to ``c`` so far, committed to an empty store at ``url``, else to one below ``folder``."""
    url = url or f"sqlite:///{folder}/lava.db"
    store = Store.open(url)
    cluster = Cluster()
    events = [replace(e, epoch=0) if isinstance(e, MasterStarted) else e for _, e in c.store.events]
    commit(store, cluster, events, texts=list(c.store.kept_texts.items()))
    store.close()
    reader = Reader.open(url)
    try:
        yield Stored(View(cluster, c.soft, lambda: reader, master="ol1"), c.now)
    finally:
        reader.close()
