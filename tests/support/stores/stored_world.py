"""A world whose events are committed to a store."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.store.lease import Lease
from lavad.store.writer import Store
from tests.support.stores.stores import commit
from tests.support.worlds.world import World


class StoredWorld(World):
    """Holds the masters' lease of its store."""

    def __init__(self, kept: Store) -> None:
        self.store = kept
        assert Lease(kept.engine).acquire("me", 1000.0) == 1
        super().__init__()

    def apply(self, *events: ev.Event) -> None:
        commit(self.store, self.cluster, events)
