"""LAVA_USER_STORE: what one user asks adds so much to the store, and no more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.job.depend import Depend
from lavad.core.job.message import Message
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import TermReason
from lavad.rpc.store_growth import COPIES, HOUR, MB, MOST_USERS, OF_ELEMENT, OF_EVENT, StoreGrowth, size_of
from tests.unit.lavad.rpc.test_dispatch_fuzz import answered, made

NOW = 1000.0
ALICE, BOB, BOSS = (Caller(user=name, uid=uid, host="h1") for name, uid in (("alice", 1001), ("bob", 1002), ("boss", 7)))


def posted(size: int, count: int = 1) -> Decided:
    message = Message(number=0, text="x" * size, at=NOW, by="ann", size=0)
    return Decided(events=[ev.MessagePosted(at=NOW, key=key, message=message) for key in range(1, count + 1)])


def grown(growth: StoreGrowth, user: str, decided: Decided, now: float = NOW, env: tuple[str, bytes] | None = None) -> Decided:
    return growth.counted(lambda _, __: decided, user, env)(Cluster(), now)


PLAIN = Spec(user="ann", queue="normal")


def test_a_decision_is_as_large_as_its_texts_and_events() -> None:
    assert size_of(Decided(), {}) == 0
    assert size_of(posted(10_000), {}) - size_of(posted(0), {}) == pytest.approx(COPIES * 10_000, abs=10)
    assert size_of(posted(0, 1000), {}) == pytest.approx(1000 * size_of(posted(0), {}), rel=0.1)
    assert size_of(posted(0, 1000), {}) > 1000 * OF_EVENT
    text = Decided(texts=[(1, JobText(command="c" * 5000, script="s" * 70_000))])
    assert size_of(text, {}) == pytest.approx(COPIES * 75_000, rel=0.02)
    assert size_of(Decided(attached=[(1, 0, "b" * 900)]), {}) == 900


def test_each_element_of_an_array_counts() -> None:
    """They end in one event, but each has a row and a line; the line has the texts of the array."""
    indices = Ranges.span(1, 1000)
    killed = Decided(events=[ev.ElementsKilled(at=NOW, key=1, elements=indices, reason=TermReason.TERM_OWNER)])
    assert size_of(killed, {}) > 1000 * OF_ELEMENT

    def array(text: JobText, spec: Spec = PLAIN, depend: str = "", is_new: bool = True) -> int:
        """Whether the class of the job is new with it or known already makes no difference to its lines."""
        submitted = ev.JobSubmitted(at=NOW, key=1, spec=1, name="a", indices=indices, depend=Depend(depend) if depend else None)
        added = [ev.SpecAdded(at=NOW, spec=1, value=spec)] if is_new else []
        return size_of(Decided(events=[*added, submitted], texts=[(1, text)]), {} if is_new else {1: spec})

    assert array(JobText(command="true", script="s" * 100_000)) < 2.1 * 100_000
    assert array(JobText(command="c" * 3000)) < 10_000
    assert array(JobText(command="c" * 10**6, description="d" * 4000)) > 1000 * 3000 + 10**6
    plain = JobText(command="true")
    for is_new in (True, False):
        assert array(plain, replace(PLAIN, resreq="r" * 4000), is_new=is_new) > 1000 * 3500, "it stands in the line twice"
        assert array(plain, replace(PLAIN, hosts=("host",) * 4000), is_new=is_new) > 1000 * 11_000
    assert array(JobText(command="c" * 3000), depend="d" * 4000) > 1000 * 2500


def test_a_user_waits_until_the_hour_has_room_again() -> None:
    growth = StoreGrowth(lambda: 1)
    grown(growth, "ann", posted(3 * MB // COPIES))
    assert growth.is_full("ann", NOW)
    assert not growth.is_full("bob", NOW)
    assert growth.is_full("ann", NOW + 1.9 * HOUR)
    assert not growth.is_full("ann", NOW + 2.1 * HOUR)
    assert growth.is_full("ann", NOW - 100)


def test_jobs_can_be_ended_up_to_twice_as_much() -> None:
    growth = StoreGrowth(lambda: 1)
    grown(growth, "ann", posted(MB * 3 // 4))
    assert growth.is_full("ann", NOW)
    assert not growth.is_full("ann", NOW, ends=True)
    grown(growth, "ann", posted(MB // 4))
    assert growth.is_full("ann", NOW, ends=True)


def test_without_a_limit_nobody_waits() -> None:
    growth = StoreGrowth(lambda: 0)
    grown(growth, "ann", posted(10 * MB))
    assert not growth.is_full("ann", NOW)


def test_an_environment_counts_once_in_a_row() -> None:
    growth = StoreGrowth(lambda: 1)
    for _ in range(100):
        grown(growth, "ann", Decided(), env=("same", b"e" * 50_000))
    assert not growth.is_full("ann", NOW)
    for number in range(20):
        grown(growth, "ann", Decided(), env=(str(number), b"e" * 50_000))
    assert growth.is_full("ann", NOW)


def test_the_chunks_of_a_decision_count_too() -> None:
    growth = StoreGrowth(lambda: 1)
    first = Decided(more=lambda _, __: posted(MB))
    more = grown(growth, "ann", first).more
    assert more is not None
    assert not growth.is_full("ann", NOW)
    more(Cluster(), NOW)
    assert growth.is_full("ann", NOW)


def test_users_who_are_forgotten_have_least() -> None:
    growth = StoreGrowth(lambda: 1)
    grown(growth, "ann", posted(MB))
    for number in range(MOST_USERS + 10):
        grown(growth, f"u{number}", posted(1), env=("e", b""))
    assert growth.is_full("ann", NOW)
    assert len(growth._levels) == MOST_USERS
    assert len(growth._envs) <= MOST_USERS


def test_who_has_asked_too_much_is_told_to_come_later_and_can_still_look_and_end_jobs(tmp_path: Path) -> None:
    async def story() -> None:
        engine, dispatch, store = await made(tmp_path)
        params = msgspec.structs.replace(engine.cluster.conf.params, lava_user_store=1)
        engine.cluster.conf = msgspec.structs.replace(engine.cluster.conf, params=params)
        running = asyncio.ensure_future(engine.run())

        async def ask(caller: Caller, **ask: object) -> dict[str, Any]:
            return (await answered(dispatch, msgspec.json.encode(ask), caller))[-1]

        for _ in range(20):
            last = await ask(ALICE, ask="submit", command="x" * 60_000, options={"H": True})
        assert last == {"later": True}
        assert "ok" in await ask(BOB, ask="submit", command="x", options={"H": True})
        assert "ok" in await ask(ALICE, ask="kill", jobs={"ids": ["1"]})
        assert await ask(ALICE, ask="stop", jobs={"ids": ["2"]}) == {"later": True}
        assert (await ask(ALICE, ask="query", command="bjobs"))["exit"] == 0
        for _ in range(20):
            assert "ok" in await ask(BOSS, ask="submit", command="x" * 60_000, options={"H": True})
        running.cancel()
        store.close()

    asyncio.run(story())
