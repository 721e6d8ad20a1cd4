"""Fixtures for tests of the store on both databases: import what the test needs (``store_url``, ``store``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event
from lavad.core.events.apply import apply
from lavad.store import schema
from lavad.store.batch import Batch, batch_of
from lavad.store.writer import Store
from tests.support.stores.postgres import new_database


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database with nothing in it."""
    return f"sqlite:///{tmp_path}/lava.db" if request.param == "sqlite" else new_database()


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    opened = Store.open(store_url)
    yield opened
    opened.close()


def commit(store: Store, cluster: Cluster, events: Sequence[Event], **more: object) -> Batch:
    """Apply and commit, as the engine does; a failed commit undoes."""
    for event in events:
        apply(cluster, event)
    batch = batch_of(cluster, events)
    for name, value in more.items():
        setattr(batch, name, value)
    try:
        store.commit(batch)
    except BaseException:
        cluster.undo_changes()
        raise
    cluster.forget_changes()
    return batch


def rows_of(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        tables = schema.metadata.sorted_tables
        rows = {
            table.name: [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key.columns))]
            for table in tables
        }
    engine.dispose()
    return rows


def empty(url: str) -> None:
    """Remove all rows; the lease is free again."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for table in schema.metadata.sorted_tables:
            if table is not schema.lease:
                connection.execute(table.delete())
        connection.execute(schema.lease.update().values(epoch=0, holder="", expires=0.0))
    engine.dispose()
