"""Events of many elements in one row: whoever reads finds each of them, by its number, time and job."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.database.check import check
from lavad.store import read
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.stores.stores import commit, rows_of, store, store_url  # noqa: F401

ELEMENTS = 150
"""More than one row has."""
PARTS = (Placed(host="h1", slots=0),)


def array_that_runs(store: Store) -> list[ev.Event]:  # noqa: F811
    """Two arrays and a job, of which all start and half end; the events in their order."""
    cluster = Cluster()
    first: list[ev.Event] = [ev.SpecAdded(at=1.0, spec=1, value=Spec(user="ann", queue="normal"))]
    for job in (1, 2):
        name, indices = f"a[1-{ELEMENTS}]", Ranges.span(1, ELEMENTS)
        first.append(ev.JobSubmitted(at=2.0, key=job, spec=1, name="a", indices=indices, spec_text=name))
    first.append(ev.JobSubmitted(at=2.0, key=3, spec=1, name="alone"))
    keys = [*(key_of(job, index) for job in (1, 2) for index in range(1, ELEMENTS + 1)), 3]
    starts: list[ev.Event] = [ev.JobDispatched(at=3.0, key=key, attempt=1, uid=f"u{key}", parts=PARTS) for key in keys]
    ends: list[ev.Event] = [
        ev.JobFinished(at=4.0 + (key_of(1, 50) < key), key=key, state=JobState.DONE) for key in keys[: ELEMENTS - 1]
    ]
    commit(store, cluster, first)
    commit(store, cluster, [*starts, *ends])
    return [*first, *starts, *ends]


def test_each_event_is_found_by_its_number(store: Store, store_url: str) -> None:  # noqa: F811
    events = list(enumerate(array_that_runs(store), 1))
    assert len(rows_of(store_url)["events"]) < 20
    reader = Reader.open(store_url)
    assert reader.version() == len(events)
    for seq in (0, 4, 5, 100, 200, len(events) - 1, len(events)):
        assert reader.events_after(seq, 1000) == events[seq:]
        found = reader.events_after(seq, 10)
        assert found == events[seq : seq + len(found)]
        assert len(found) >= min(10, len(events) - seq)
    assert [reader.event_time(seq) for seq in (1, 100, 320, len(events), len(events) + 1)] == [1.0, 3.0, 4.0, 5.0, 0.0]
    reader.close()


def test_each_event_is_found_by_its_job_and_time(store: Store, store_url: str) -> None:  # noqa: F811
    events = list(enumerate(array_that_runs(store), 1))
    reader = Reader.open(store_url)
    for job in (1, 2, 3):
        mine = [(seq, event) for seq, event in events if isinstance(event, ev.JobEvent) and event.key & 0xFFFFFFFF == job]
        assert reader.events_of(job) == mine
        assert reader.events_of_many([job]) == {job: mine}
    reader.close()


def test_those_of_a_time_come_page_by_page(store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    events = list(enumerate(array_that_runs(store), 1))
    reader = Reader.open(store_url)
    for page_size, at_least in ((2000, 1), (40, 3)):
        monkeypatch.setattr(read, "_PAGE", page_size)
        for begin, end in ((4.0, 5.0), (0.0, 99.0), (2.0, 4.0), (6.0, 9.0)):
            pages = [page for page in reader.events_between(begin, end) if page]
            wanted = [(seq, event) for seq, event in events if begin <= event.at < end]
            assert [row for page in pages for row in page] == wanted
            assert not wanted or len(pages) >= at_least or len(wanted) < 150
    reader.close()


def test_a_check_finds_all_of_them_or_says_which_are_missing(store: Store, store_url: str) -> None:  # noqa: F811
    array_that_runs(store)
    assert check(store_url).problems == []
    with store.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM events WHERE seq = (SELECT min(seq) FROM events WHERE seq > 10)"))
    assert check(store_url).problems == ["events: from number 5 on 64 are missing"]
