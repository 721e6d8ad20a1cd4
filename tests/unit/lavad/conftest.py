"""Whatever these tests let decide, the cluster is compared before and after: decisions change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from lavad import engine as engine_module
from lavad.store.writer import Store
from tests.support.worlds.office import EngineClock, Office
from tests.support.worlds.pure import watch_decisions

watch_decisions()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits together is decided in one turn, however busy the machine is."""
    monkeypatch.setattr(engine_module, "time", SimpleNamespace(perf_counter=EngineClock().read))


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
