"""A job whose user one host does not know ends only where the master's host denies the user too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.ending import NO_USER
from lavad.core.decide.report.report import decide_report
from lavad.core.job.job import Job
from lavad.core.lang.states import JobState
from lavad.engine import Engine
from lavad.services.unknown_users import UnknownUsers
from lavad.store.batch import Batch
from lavad.store.writer import Store
from proto.names import Entry, NoAnswer
from tests.support.worlds.bench import Bench
from tests.support.worlds.reports import report_of

ALICE = Entry("alice", 1000, 1000, "/home/alice", "/bin/sh")


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


class Kept:
    """A store that keeps everything."""

    def commit(self, batch: Batch) -> tuple[()]:
        return ()


async def refused(find: Callable[[str], Entry | None]) -> tuple[JobState, str]:
    """A job whose host does not know its user: state and reason once the master's directory was asked."""
    bench = Bench()
    bench.cluster.forget_changes()
    engine = Engine(bench.cluster, cast(Store, Kept()), lambda: bench.now, {})
    users = UnknownUsers(engine, find, wait=0.2)
    ended: list[Job] = []
    engine.listen(users.committed)
    engine.listen(lambda committed: ended.extend(committed.finished))
    running = asyncio.create_task(engine.run())
    key = bench.submit()
    bench.step()
    report = report_of("refused", key, bench.uid(key), "h1", NO_USER, "user alice is not known on host h1")
    await engine.ask(lambda cluster, now: Decided(events=decide_report(cluster, report, now)))
    async with asyncio.timeout(20):
        await users.turn()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    job = ended[0] if ended else bench.job(key)
    return job.state, job.outcome.why if job.outcome is not None else ""


def test_denied_here_too_it_ends_with_both_hosts_in_the_reason() -> None:
    state, why = asyncio.run(refused(lambda name: None))
    assert state is JobState.EXIT
    assert why == "user alice is known neither on host h1 nor on the master's host"


def test_known_here_it_waits_for_another_host() -> None:
    assert asyncio.run(refused(lambda name: ALICE)) == (JobState.PEND, "")


def test_a_directory_that_is_away_here_too_ends_nothing(hang: threading.Event) -> None:
    def fails(name: str) -> Entry | None:
        raise NoAnswer("Connection refused")

    def hangs(name: str) -> Entry | None:
        hang.wait()
        return None

    assert asyncio.run(refused(fails)) == (JobState.PEND, "")
    assert asyncio.run(refused(hangs)) == (JobState.PEND, "")
