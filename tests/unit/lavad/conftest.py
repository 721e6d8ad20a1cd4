"""Whatever these tests let decide, the cluster is compared before and after: decisions change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lavad.store.writer import Store
from tests.support.worlds.office import Office
from tests.support.worlds.pure import watch_decisions

watch_decisions()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A SQLite store with nothing in it."""
    opened = Store.open(f"sqlite:///{tmp_path}/lava.db")
    yield opened
    opened.close()


@pytest.fixture
def office(store: Store) -> Office:
    """An engine over such a store."""
    return Office(store)
