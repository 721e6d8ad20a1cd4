"""Finished jobs that a command selects; reads of them that hang (a large store, a dozen commands of one user): commits, renewals
and other users go on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.office import take_office
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, Select
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.site.conf import Conf
from lavad.engine import Engine
from lavad.services.lookups import Lookups
from lavad.services.masters_lease import acquire, renew
from lavad.store.asked import Find
from lavad.store.lease import Lease
from lavad.store.read import Reader
from lavad.store.writer import Store
from proto.daemon.workers import Workers
from tests.support.stores.stores import commit

ALICE, BOB = Caller(user="alice", uid=1000, host="h"), Caller(user="bob", uid=1001, host="h")
SOON = 20.0


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


class Slow:
    """A reader that takes for ever for one user's jobs."""

    def __init__(self, reader: Reader, hang: threading.Event) -> None:
        self._reader = reader
        self._hang = hang

    def finished_jobs(self, find: Find) -> Any:
        if find.user == "alice":
            self._hang.wait()
        return self._reader.finished_jobs(find)

    def specs(self, numbers: list[int]) -> Any:
        return self._reader.specs(numbers)


class Renewed(Lease):
    """Counts renewals."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.often = 0

    def renew(self, epoch: int, seconds: float) -> bool:
        held = super().renew(epoch, seconds)
        self.often += 1
        return held


def _host(name: str) -> Any:
    def decide(cluster: Cluster, now: float) -> Decided:
        return Decided(events=[ev.HostUp(at=now, host=name)], answer={})

    return decide


def test_a_dozen_slow_reads_delay_their_own_user_only(store: Store, tmp_path: Path, hang: threading.Event) -> None:
    async def story() -> None:
        cluster = Cluster()
        lease = Renewed(store.engine)
        leasing = Workers("lease")
        held = await acquire(lease, leasing, "here", 20.0)
        assert held is not None
        engine = Engine(cluster, store, lambda: 1000.0, {})
        running = [asyncio.create_task(engine.run())]
        fresh = ev.MasterStarted(at=1.0, epoch=held.epoch, incarnation="i", host="h")
        await engine.ask(lambda cluster, now: take_office(cluster, now, fresh, Conf()))
        running.append(asyncio.create_task(renew(lease, leasing, held, 0.04)))
        reader = cast(Reader, Slow(Reader.open(f"sqlite:///{tmp_path}/lava.db"), hang))
        lookups = Lookups(cluster, reader, Workers("reads", 4, 2), lambda: 1000.0)
        dozen = [asyncio.create_task(lookups.finished(Select(), ALICE)) for _ in range(12)]
        await asyncio.sleep(0)
        before = lease.often
        async with asyncio.timeout(SOON):
            for at in range(10):
                await engine.ask(_host(f"h{at}"))
            assert not (await lookups.finished(Select(), BOB)).jobs
            while lease.often < before + 3:
                await lookups.finished(Select(), BOB)
        assert not any(task.done() for task in dozen)
        hang.set()
        assert len(await asyncio.gather(*dozen)) == 12
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("wanted", "taken", "elements"),
    [
        (Select(ids=["0"]), [1, 2, 3], [1, 2, 3]),
        (Select(ids=["0"], group="/g"), [2], []),
        (Select(ids=["0"], group="/nosuch"), [], []),
        (Select(ids=["0"], app="mpi"), [3], []),
        (Select(ids=["0"], name="a*"), [1, 3], [1, 2, 3]),
        (Select(ids=["0"], name="a1"), [1], []),
        (Select(ids=["0"], name="arr"), [], [1, 2, 3]),
        (Select(ids=["0"], name="arr[2-3]"), [], [2, 3]),
        (Select(ids=["0"], name="a*[1]"), [], [1]),
        (Select(ids=["0"], host="h9"), [], []),
        (Select(group="/g"), [2], []),
        (Select(app="mpi"), [3], []),
        (Select(ids=["0"], user="bob"), [4], []),
        (Select(ids=["0"], user="team"), [4, 5], []),
        (Select(ids=["0"], user="all"), [1, 2, 3], [1, 2, 3]),
    ],
)
def test_filters_select_finished_jobs_as_they_do_live_ones(
    store: Store, tmp_path: Path, wanted: Select, taken: list[int], elements: list[int]
) -> None:
    cluster = Cluster()
    specs = [
        (Spec(user="alice", queue="normal"), "a1"),
        (Spec(user="alice", queue="normal", group="/g"), "b"),
        (Spec(user="alice", queue="normal", app="mpi"), "a2"),
        (Spec(user="bob", queue="normal"), "a3"),
        (Spec(user="carol", queue="normal"), "a4"),
    ]
    events: list[ev.Event] = [ev.Configured(at=900.0, conf=Conf(user_groups=(("team", ("bob", "carol")),)))]
    for number, (spec, name) in enumerate(specs, 1):
        events.append(ev.SpecAdded(at=900.0, spec=number, value=spec))
        events.append(ev.JobSubmitted(at=900.0, key=number, spec=number, name=name))
        events.append(ev.JobFinished(at=990.0, key=number, state=JobState.EXIT))
    events.append(ev.JobSubmitted(at=900.0, key=6, spec=1, name="arr", indices=Ranges.parse("1-3"), spec_text="arr[1-3]"))
    for index in (1, 2, 3):
        events.append(ev.ElementSplit(at=980.0, key=key_of(6, index)))
        events.append(ev.JobFinished(at=990.0, key=key_of(6, index), state=JobState.EXIT))
    commit(store, cluster, events)
    lookups = Lookups(cluster, Reader.open(f"sqlite:///{tmp_path}/lava.db"), Workers("reads"), lambda: 1000.0)
    found = asyncio.run(lookups.finished(wanted, ALICE)).jobs
    assert [job_of(job.key) for job in found if not index_of(job.key)] == taken
    assert [index_of(job.key) for job in found if index_of(job.key)] == elements


@pytest.mark.parametrize(
    ("states", "taken"),
    [(["EXIT"], [(2, 1), (2, 3)]), (["DONE"], [(3, 0)]), (["DONE", "EXIT"], [(3, 0)])],
)
def test_last_job_is_that_in_the_wanted_state(
    store: Store, tmp_path: Path, states: list[str], taken: list[tuple[int, int]]
) -> None:
    """Of an array all elements in it."""
    cluster = Cluster()
    events: list[ev.Event] = [ev.SpecAdded(at=900.0, spec=1, value=Spec(user="alice", queue="normal"))]
    for number, state in ((1, JobState.EXIT), (3, JobState.DONE)):
        events.append(ev.JobSubmitted(at=900.0, key=number, spec=1, name="a"))
        events.append(ev.JobFinished(at=990.0, key=number, state=state))
    events.append(ev.JobSubmitted(at=900.0, key=2, spec=1, name="a", indices=Ranges.parse("1-3"), spec_text="a[1-3]"))
    for index in (1, 2, 3):
        events.append(ev.ElementSplit(at=980.0, key=key_of(2, index)))
        events.append(ev.JobFinished(at=990.0, key=key_of(2, index), state=JobState.DONE if index == 2 else JobState.EXIT))
    commit(store, cluster, events)
    lookups = Lookups(cluster, Reader.open(f"sqlite:///{tmp_path}/lava.db"), Workers("reads"), lambda: 1000.0)
    found = asyncio.run(lookups.finished(Select(name="a"), ALICE, states)).jobs
    assert [(job_of(job.key), index_of(job.key)) for job in found] == taken
