"""What plans were decided on: stored with their events, read in order, and forgotten when old."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.replay.history import Numbered, of_store
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.stores.stores import commit, store, store_url  # noqa: F401


def host_up(at: float) -> ev.Event:
    return ev.QueueSwitched(at=at, queue="normal", open=True, active=True, by="root")


def cycle(version: int, at: float, anew: bool = False) -> RecordedCycle:
    return RecordedCycle(version=version, first=version + 1, count=1, at=at, seed="s", anew=anew, data=bytes([version]))


def test_cycles_stand_behind_their_version_and_leave_when_old(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    cycles = [cycle(at, float(at), anew=at in (1, 3)) for at in range(1, 6)]
    commit(store, cluster, [host_up(0.0)])
    for one in cycles:
        commit(store, cluster, [host_up(one.at)], cycles=[one])
    reader = Reader.open(store_url)
    assert reader.cycles_after(-1, 2) == cycles[:2]
    assert reader.cycles_after(2, 9) == cycles[2:]
    shown = [item.seq if isinstance(item, Numbered) else (item.version,) for item in of_store(reader)]
    assert shown == [1, (1,), 2, (2,), 3, (3,), 4, (4,), 5, (5,), 6]
    assert store.purge_cycles(2.5) == 0
    assert store.purge_cycles(5.5) == 2
    assert store.purge_cycles(5.5) == 0
    assert reader.cycles_after(-1, 9) == cycles[2:]
    reader.close()
