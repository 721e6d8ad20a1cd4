"""What conditions read of finished jobs, from both databases."""

from __future__ import annotations

from typing import Any

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.depend import Ended
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.store.connect import Found, Query
from lavad.store.ended import ended_of, id_named, named_alike
from lavad.store.writer import Store
from tests.support.stores.stores import commit, store, store_url  # noqa: F401

HIGH = 2_000_000_000
"""A job id whose key needs all bits of the column."""


def test_names_of_finished_jobs_bring_their_ids(store: Store) -> None:  # noqa: F811
    events: list[Any] = [ev.SpecAdded(at=900.0, spec=1, value=Spec(user="alice", queue="normal"))]
    for job, name in ((1, "first"), (2, "second"), (3, "SECOND"), (HIGH, "seco_d")):
        events += [ev.JobSubmitted(at=900.0, key=job, spec=1, name=name), ev.JobFinished(at=990.0, key=job, state=JobState.DONE)]
    events.append(ev.JobSubmitted(at=900.0, key=4, spec=1, name="arr", indices=Ranges.parse("1-2"), spec_text="arr[1-2]"))
    for index in (1, 2):
        key = key_of(4, index)
        events += [ev.ElementSplit(at=980.0, key=key), ev.JobFinished(at=990.0, key=key, state=JobState.DONE)]
    commit(store, Cluster(), events)

    def ask(query: Query) -> Found:
        with store.engine.connect() as connection:
            return connection.execute(query).all()

    assert id_named(ask, "second", "alice", 0.0) == (2,)
    assert named_alike(ask, "seco", "alice", 0.0, 10)[0] == (2, HIGH)
    assert id_named(ask, "arr", None, 0.0) == (4,)
    assert id_named(ask, "seco_d", None, 0.0) == (HIGH,)
    assert id_named(ask, "first", "bob", 0.0) == id_named(ask, "first", "alice", 991.0) == ()
    array = Ended(done=Ranges.span(1, 2), indices=Ranges.span(1, 2))
    assert ended_of(ask, [1, 4, 5]) == {1: Ended(done=Ranges.span(1, 1)), 4: array, 5: None}
