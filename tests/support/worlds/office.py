"""An engine in office over a real store that can be told to fail, and decisions for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.cluster.snapshot import Snapshot, restore
from lavad.core.decide.base.decided import Decided
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Refused
from lavad.engine import Engine
from lavad.store.batch import Batch
from lavad.store.errors import StoreRefused
from lavad.store.lease import Lease
from lavad.store.load import load
from lavad.store.rows import StoredText
from lavad.store.writer import Store, newest_answers
from tests.support.worlds.snapshot import difference, snapshot

SPEC = Spec(user="ann", queue="normal")


class Watched:
    """A store that counts batches and fails when it is told to: before it writes, or after (nobody knows)."""

    def __init__(self, store: Store) -> None:
        self.real = store
        self.batches: list[Batch] = []
        self.failure: Exception | None = None
        self.full: StoreRefused | None = None
        """What every commit fails with until this is None again."""
        self.gate: asyncio.Event | None = None

    def commit(self, batch: Batch) -> Sequence[StoredText]:
        if self.full is not None:
            raise self.full
        failure, self.failure = self.failure, None
        if isinstance(failure, StoreRefused):
            raise failure
        texts = self.real.commit(batch)
        self.batches.append(batch)
        if failure is not None:
            raise failure
        return texts

    def find_answer(self, uuid: str) -> bytes | None:
        return self.real.find_answer(uuid)


def bsub(cluster: Cluster, now: float) -> Decided:
    """A job."""
    events: list[ev.Event] = []
    number = cluster.spec_numbers.get(SPEC)
    if number is None:
        number = cluster.next_spec
        events.append(ev.SpecAdded(at=now, spec=number, value=SPEC))
    job = cluster.next_job
    events.append(ev.JobSubmitted(at=now, key=job, spec=number, name="n"))
    return Decided(events=events, answer={"job": job}, texts=[(job, JobText(command="true"))])


def refuse(cluster: Cluster, now: float) -> Decided:
    raise Refused("No such queue")


def fail(cluster: Cluster, now: float) -> Decided:
    raise KeyError("a fault of the decision")


def nothing(cluster: Cluster, now: float) -> Decided:
    return Decided(answer={"place": len(cluster.jobs.rows)})


def unwritable(cluster: Cluster, now: float) -> Decided:
    """A job whose text no database takes."""
    decided = bsub(cluster, now)
    decided.texts = [(job, JobText(command="echo \udcff")) for job, _ in decided.texts]
    return decided


class EngineClock:
    """Goes a microsecond whenever it is read, and as much more as a test adds."""

    now = 0.0

    def read(self) -> float:
        EngineClock.now += 1e-6
        return EngineClock.now


class Office:
    """An engine in office over a store."""

    def __init__(self, store: Store) -> None:
        self.store = Watched(store)
        epoch = Lease(store.engine).acquire("me", 1000.0)
        assert epoch is not None
        self.epoch = epoch
        self.cluster = load(store)
        self.told: list[Committed] = []
        self.engine = Engine(self.cluster, self.store, lambda: 1000.0, newest_answers(store, 100))  # type: ignore[arg-type]
        self.engine.listen(self.told.append)

    def begin(self, cluster: Cluster, now: float) -> Decided:
        started: list[ev.Event] = [ev.MasterStarted(at=now, epoch=self.epoch, incarnation="i")]
        return Decided(events=started)

    def serve(self, work: Callable[[Engine], Awaitable[Any]]) -> Any:
        """Do the work while the engine runs; what the engine died of is raised."""

        async def main() -> Any:
            running = asyncio.ensure_future(self.engine.run())
            try:
                await self.engine.ask(self.begin)
                self.store.batches.clear()
                self.told.clear()
                doing = asyncio.ensure_future(work(self.engine))
                await asyncio.wait({doing, running}, return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    doing.cancel()
                    running.result()
                return await doing
            finally:
                running.cancel()

        return asyncio.run(main())

    def check(self) -> None:
        """Memory is what the disk has, also of a replica that begins with what is read."""
        check_invariants(self.cluster)
        read: list[Snapshot] = []
        fresh = snapshot(load(self.store.real, read.append))
        replica = snapshot(restore(msgspec.msgpack.decode(msgspec.msgpack.encode(read[0]), type=Snapshot)))
        mine = snapshot(self.cluster)
        for one in (fresh, replica, mine):
            del one["specs"], one["spec_numbers"], one["idle_specs"]
        assert not difference(mine, fresh)
        assert not difference(mine, replica)


async def gather(*asks: Awaitable[Any]) -> list[Any]:
    return list(await asyncio.gather(*asks, return_exceptions=True))
