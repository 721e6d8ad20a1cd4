"""The rows are the fold of the events: after any history a load and a replay give the live cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.events.apply import apply
from lavad.store.writer import Store
from tests.support.examples import examples
from tests.support.stores.folded import FoldedStore
from tests.support.stores.postgres import new_database
from tests.support.stores.stores import empty
from tests.support.worlds.history import Author, steps

_SETTINGS = settings(max_examples=examples(25), suppress_health_check=list(HealthCheck), database=None)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def one_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("fold")
    url = f"sqlite:///{folder}/lava.db" if request.param == "sqlite" else new_database()
    Store.open(url).close()
    return url


@given(history=steps)
@_SETTINGS
def test_load_and_replay_give_the_live_cluster(one_url: str, history: list[tuple[str, int, int, bool]]) -> None:
    empty(one_url)
    run = FoldedStore(one_url)
    try:
        author = Author(run.live)
        for event in author.opening():
            run.apply(event)
        run.commit()
        for verb, a, b, ends_batch in history:
            for event in author.write(verb, a, b):
                run.apply(event)
            if ends_batch and run.batch:
                run.commit()
        if run.batch:
            run.commit()
    finally:
        run.close()


@given(history=steps)
@_SETTINGS
def test_an_undone_batch_leaves_no_trace(history: list[tuple[str, int, int, bool]]) -> None:
    """What ``undo_changes`` brings back is what was there, indexes included."""
    cluster = Cluster()
    author = Author(cluster)
    for event in author.opening():
        apply(cluster, event)
    cluster.forget_changes()
    before = None
    for verb, a, b, ends_batch in history:
        before = before or _tables(cluster)
        for event in author.write(verb, a, b):
            apply(cluster, event)
        if ends_batch and b % 2:
            cluster.undo_changes()
            assert _tables(cluster) == before
            check_invariants(cluster)
        elif ends_batch:
            cluster.forget_changes()
        if ends_batch:
            before = None


def _tables(cluster: Cluster) -> dict[str, object]:
    return {
        "jobs": dict(cluster.jobs.rows),
        "arrays": dict(cluster.arrays.rows),
        "hosts": dict(cluster.hosts.rows),
        "queues": dict(cluster.queues.rows),
    }
