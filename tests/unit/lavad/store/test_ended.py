"""What conditions read of finished jobs: as it was, in few queries, whose number and size have a bound."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.depend import Ended
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.store import ended
from lavad.store.connect import Found, Query
from lavad.store.ended import ended_of, id_named, named_alike
from lavad.store.writer import Store
from tests.support.stores.stores import commit

PLAIN = 1_200
ARRAY = PLAIN + 1
ONE = Ranges.span(1, 1)


class Asking:
    """Runs queries and keeps how many rows each has brought."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows: list[int] = []

    def __call__(self, query: Query) -> Found:
        with self._store.engine.connect() as connection:
            found = connection.execute(query).all()
        self.rows.append(len(found))
        return found


@pytest.fixture
def ask(store: Store) -> Asking:
    """A store with plain jobs, of which each third has failed with 3, and an array of which 1 and 2 are done and 5 has failed."""
    events: list[Any] = [ev.SpecAdded(at=900.0, spec=1, value=Spec(user="alice", queue="normal"))]
    for job in range(1, PLAIN + 1):
        events.append(ev.JobSubmitted(at=900.0, key=job, spec=1, name=f"a{job}"))
        failed = job % 3 == 0
        state = JobState.EXIT if failed else JobState.DONE
        events.append(ev.JobFinished(at=990.0, key=job, state=state))
    events.append(ev.JobSubmitted(at=900.0, key=ARRAY, spec=1, name="arr", indices=Ranges.parse("1-9"), spec_text="arr[1-9]"))
    for index in (1, 2, 5):
        events.append(ev.ElementSplit(at=980.0, key=key_of(ARRAY, index)))
        state = JobState.EXIT if index == 5 else JobState.DONE
        events.append(ev.JobFinished(at=990.0, key=key_of(ARRAY, index), state=state))
    commit(store, Cluster(), events)
    return Asking(store)


def test_many_jobs_are_read_in_few_queries(ask: Asking) -> None:
    found = ended_of(ask, range(1, ARRAY + 2))
    assert len(ask.rows) <= 2 * 3 + 1
    assert (found[1], found[3], found[ARRAY + 1]) == (Ended(done=ONE), Ended(exited=((0, ONE),)), None)
    array = Ended(done=Ranges.span(1, 2), exited=((0, Ranges.span(5, 5)),), indices=Ranges.span(1, 9))
    assert (found[ARRAY], len(found)) == (array, ARRAY + 1)


def test_elements_are_read_in_pages(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ended_of(ask, [ARRAY])
    ask.rows.clear()
    monkeypatch.setattr(ended, "_PAGE", 2)
    assert ended_of(ask, [ARRAY]) == whole
    assert ask.rows == [1, 2, 1]


def test_names_bring_an_id_of_each_job_and_not_more_than_asked_for(ask: Asking) -> None:
    assert named_alike(ask, "arr", "alice", 0.0, 10)[0] == (ARRAY,)
    assert named_alike(ask, "a", "alice", 0.0, 3)[0] == (PLAIN - 2, PLAIN - 1, PLAIN, ARRAY)
    assert id_named(ask, "a7", "alice", 0.0) == (7,)
    assert id_named(ask, "a7", "bob", 0.0) == id_named(ask, "a7", "alice", 991.0) == ()
    assert ask.rows == [1, 0, 1, 3, 0, 1, 0, 0]


@pytest.mark.parametrize("page", [7, 100, PLAIN, 5_000])
def test_jobs_of_a_name_come_by_how_they_ended(ask: Asking, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    """As each of them is read alone, however many are read at once."""
    monkeypatch.setattr(ended, "_PAGE", page)
    jobs, alike = named_alike(ask, "a", "alice", 0.0, 10_000)
    assert jobs == Ranges.span(1, ARRAY)
    assert {job: one for those, one in alike for job in those} == ended_of(ask, range(1, PLAIN + 1))
    assert len(alike) == 2
