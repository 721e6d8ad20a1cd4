"""The masters' lease as one lavad holds it: what it may grant counts from before the database was asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from lavad.boottime import boottime
from lavad.services.masters_lease import Held, LeaseLost, acquire, renew
from lavad.store.errors import StoreAway, StoreRefused
from lavad.store.lease import Lease
from proto.daemon.workers import Workers


class Row:
    """A lease whose database answers when the test lets it, and as the test says."""

    alone = False

    def __init__(self) -> None:
        self.answers = threading.Semaphore(0)
        self.asked = threading.Semaphore(0)
        self.says: int | Exception | None = 7

    def acquire(self, holder: str, seconds: float) -> int | None:
        self.asked.release()
        assert self.answers.acquire(timeout=60)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def renew(self, epoch: int, seconds: float) -> bool:
        return self.acquire("", seconds) == epoch


async def taken(row: Row, workers: Workers, seconds: float) -> Held:
    row.answers.release()
    held = await acquire(cast(Lease, row), workers, "m1", seconds)
    row.asked.acquire()
    assert held is not None
    return held


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if true():
                return
            await asyncio.sleep(0)


def test_what_may_be_granted_counts_from_before_the_database_was_asked() -> None:
    async def story() -> None:
        row, workers = Row(), Workers("lease")
        asking = asyncio.create_task(acquire(cast(Lease, row), workers, "m1", 100.0))
        await asyncio.to_thread(row.asked.acquire)
        asked = boottime()
        await until(lambda: boottime() >= asked + 0.05)
        row.answers.release()
        held = await asking
        assert held is not None
        assert not held.leases.is_certain(asked + 100.0)
        assert held.leases.is_certain(asked + 90.0)

    asyncio.run(story())


def test_a_store_of_one_process_is_certain_for_ever() -> None:
    async def story() -> None:
        row = Row()
        row.alone = True
        held = await taken(row, Workers("lease"), 0.01)
        assert held.leases.is_certain(boottime() + 1e9)

    asyncio.run(story())


def test_a_renewal_that_hangs_grants_nothing_and_one_that_comes_does() -> None:
    async def story() -> None:
        row, workers = Row(), Workers("lease")
        held = await taken(row, workers, 0.2)
        renewing = asyncio.create_task(renew(cast(Lease, row), workers, held, 0.2))
        await asyncio.to_thread(row.asked.acquire)
        await until(lambda: not held.leases.is_certain(boottime()))
        assert not held.leases.answer("h", boottime())
        row.answers.release()  # it was renewed after all: nobody else had taken it
        row.answers.release()
        await until(lambda: held.leases.answer("h", boottime()))
        renewing.cancel()
        row.answers.release()
        await asyncio.gather(renewing, return_exceptions=True)

    asyncio.run(story())


def test_a_store_that_does_not_answer_is_a_notice_while_that_lasts() -> None:
    async def story() -> None:
        row, workers = Row(), Workers("lease")
        row.alone = True
        held = await taken(row, workers, 0.02)
        renewing = asyncio.create_task(renew(cast(Lease, row), workers, held, 0.02))
        row.says = StoreAway("db: connection refused")
        row.answers.release()
        await until(lambda: held.refusals.notices() == ["the master's store cannot be reached"])
        row.says = 7
        row.answers.release()
        await until(lambda: held.refusals.notices() == [])
        renewing.cancel()
        row.answers.release()
        await asyncio.gather(renewing, return_exceptions=True)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("says", "why"), [(None, "another master has taken over"), (StoreRefused("no route"), "ran out: no route")]
)
def test_a_lease_that_is_gone_ends_the_office(says: Any, why: str) -> None:
    async def story() -> None:
        row, workers = Row(), Workers("lease")
        held = await taken(row, workers, 0.02)
        row.says = says
        for _ in range(100):
            row.answers.release()
        async with asyncio.timeout(60):
            with pytest.raises(LeaseLost, match=why):
                await renew(cast(Lease, row), workers, held, 0.02)

    asyncio.run(story())
