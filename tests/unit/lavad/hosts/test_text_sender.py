"""Texts of jobs on their way to hosts: split by bytes, bounded for a host and for all together, none that keeps another."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core.job.reports import RefusedReport
from lavad.core.job.spec import JobText, Spec
from lavad.core.rules.run_settings import text_settings
from lavad.hosts import sessions as hosts
from lavad.hosts import text_sender
from lavad.hosts.job_text_cache import JobTextCache
from lavad.hosts.orders import KEPT_CLASSES, LastTexts
from lavad.hosts.outbox import Outbox
from lavad.hosts.sessions import Session, Sessions
from lavad.store.errors import StoreRefused
from proto import agent_pb2 as pb
from tests.support.worlds.streams import texts_and_orders, written
from tests.support.worlds.world import World

MB = 1 << 20


class Stored:
    """A store's reader: the same script for each job."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.away = False

    def texts(self, jobs: list[int]) -> dict[int, JobText]:
        if self.away:
            raise StoreRefused("the database is away")
        return {job: JobText(command=f"job {job}", script=self.script) for job in jobs}


class Bench:
    """A master with jobs that are to start on hosts that read when they are told to."""

    def __init__(self, jobs: int, script: str = "", names: tuple[str, ...] = ("h",)) -> None:
        self.world = World()
        self.world.hosts(*names, slots=jobs // len(names))
        rows = Sessions()
        self.streams = [Session(name, 0) for name in names]
        for stream in self.streams:
            rows.open(stream)
        self.stored = Stored(script)
        self.refused: list[RefusedReport] = []
        texts = JobTextCache(cast(Any, self.stored))
        self.outbox = Outbox(self.world.cluster, rows, texts, b"secret", lambda: self.world.now, self.refused.append)
        self.keys = [self.world.submit() for _ in range(jobs)]
        self.world.step()
        for stream in self.streams:
            self.outbox.greeted(stream)

    def queued(self) -> int:
        waiting = [sent for stream in self.streams for sent in list(stream.outgoing._queue)]  # type: ignore[attr-defined]
        return sum(len(sent.message) for sent in waiting if sent)


async def settled() -> None:
    """Everything that can go on without being read has done so."""
    for _ in range(60):
        await asyncio.sleep(0.001)


def test_a_host_that_does_not_read_has_few_bytes_queued() -> None:
    async def story() -> None:
        bench = Bench(40, "x" * MB)
        [stream] = bench.streams
        pump = asyncio.create_task(bench.outbox.pump(stream))
        seen: list[pb.JobText | pb.Order] = []
        for _ in range(100):
            await settled()
            assert bench.queued() <= hosts.MOST_QUEUED + 2 * MB
            messages = written(stream)
            assert all(message.ByteSize() < 2 * MB for message in messages)
            for message in messages:
                seen += [*message.orders.texts, *message.orders.orders]
            if len(seen) == 80:
                break
        assert [type(one) for one in seen] == [pb.JobText] * 40 + [pb.Order] * 40
        numbers = {one.id for one in seen if isinstance(one, pb.JobText)}
        assert {one.start.text for one in seen if isinstance(one, pb.Order)} == numbers
        pump.cancel()

    asyncio.run(story())


def test_all_hosts_together_have_few_large_texts_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_sender, "ON_THE_WAY", 8 * MB)

    async def story() -> None:
        bench = Bench(32, "x" * MB, tuple(f"h{number}" for number in range(32)))
        pumps = [asyncio.create_task(bench.outbox.pump(stream)) for stream in bench.streams]
        started = set()
        for _ in range(100):
            await settled()
            assert bench.queued() <= 9 * MB
            for stream in bench.streams:
                started |= {order.key for order in texts_and_orders(stream)[1]}
            if len(started) == len(bench.keys):
                break
        assert started == set(bench.keys)
        for pump in pumps:
            pump.cancel()

    asyncio.run(story())


def test_a_host_that_goes_away_gives_back_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_sender, "ON_THE_WAY", MB)

    async def story() -> None:
        bench = Bench(2, "x" * MB, ("h1", "h2"))
        pumps = [asyncio.create_task(bench.outbox.pump(stream)) for stream in bench.streams]
        await settled()
        stuck, other = sorted(bench.streams, key=lambda stream: stream.outgoing.empty())
        assert other.outgoing.empty()
        stuck.abandon()
        await settled()
        assert not other.outgoing.empty()
        for pump in pumps:
            pump.cancel()

    asyncio.run(story())


def test_many_small_starts_go_in_few_messages() -> None:
    bench = Bench(500)
    [stream] = bench.streams
    asyncio.run(bench.outbox._send(stream, stream.take_due()))
    messages = written(stream)
    assert len(messages) <= 4
    assert sum(len(message.orders.orders) for message in messages) == 500


def test_a_text_that_no_message_has_room_for_ends_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_sender, "LARGEST", MB)
    bench = Bench(2, "x" * MB)
    [stream] = bench.streams
    asyncio.run(bench.outbox._send(stream, stream.take_due()))
    assert texts_and_orders(stream) == ([], [])
    assert [(report.key, report.code) for report in bench.refused] == [(key, "order") for key in bench.keys]
    assert "at most 1048576" in bench.refused[0].why


def test_while_the_store_is_away_nothing_is_refused_and_the_stream_lives() -> None:
    bench = Bench(2)
    [stream] = bench.streams
    bench.stored.away = True
    asyncio.run(bench.outbox._send(stream, stream.take_due()))
    assert texts_and_orders(stream) == ([], [])
    assert bench.refused == []
    bench.stored.away = False
    for _ in range(3):
        bench.world.now += hosts.OVERDUE
        bench.outbox.overdue(stream, bench.world.now)
    asyncio.run(bench.outbox._send(stream, stream.take_due()))
    assert [order.key for order in texts_and_orders(stream)[1]] == bench.keys


def test_a_host_is_told_which_large_texts_it_need_not_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "MAX_TEXT_BYTES", 2 * MB)
    bench = Bench(4, "x" * MB)
    [stream] = bench.streams
    held: dict[int, int] = {}
    for effect in stream.take_due():
        asyncio.run(bench.outbox._send(stream, [effect]))
        texts, orders = texts_and_orders(stream)
        for text in texts:
            held[text.id] = text.ByteSize()
        [order] = orders
        assert held[order.start.text] > MB
        assert sum(held.values()) < 4 * MB


def test_small_texts_go_in_one_message_with_the_orders_that_name_them() -> None:
    async def story() -> None:
        bench = Bench(3)
        [stream] = bench.streams
        pump = asyncio.create_task(bench.outbox.pump(stream))
        await settled()
        [message] = written(stream)
        texts = [text.id for text in message.orders.texts]
        assert [order.start.text for order in message.orders.orders] == texts
        assert len(set(texts)) == 3
        pump.cancel()

    asyncio.run(story())


def test_what_jobs_have_in_common_is_made_once_for_all_messages_until_the_configuration_is_another() -> None:
    """But not settings that depend on the host."""
    world, last, own = World(), LastTexts(), text_settings(JobText(command="true"))
    world.hosts("fast", cpu_factor=2.0)
    world.hosts("slow", cpu_factor=1.0)
    plain, timed = Spec(user="ann", queue="normal"), Spec(user="ann", queue="normal", from_host="fast", limits=Limits(run=100))
    found = last.settings(world.cluster, plain, own, "fast")
    assert last.settings(world.cluster, plain, own, "slow") is found
    assert [last.settings(world.cluster, timed, own, name).limits.run for name in ("fast", "slow")] == [100, 200]
    world.queues(QueueConfig(name="normal", nice=7))
    assert last.settings(world.cluster, plain, own, "fast").nice == 7
    env = {"A": "1"}
    assert last.env(env) is last.env(env)
    assert pb.JobText.FromString(last.env({"A": "2"})).env == {"A": "2"}


def test_few_settings_are_kept() -> None:
    world, last, own = World(), LastTexts(), text_settings(JobText(command="true"))
    specs = [Spec(user=f"user{number}", queue="normal") for number in range(KEPT_CLASSES + 1)]
    first, *_ = [last.settings(world.cluster, spec, own, "h") for spec in specs]
    assert last.settings(world.cluster, specs[-1], own, "h") is last.settings(world.cluster, specs[-1], own, "h")
    assert last.settings(world.cluster, specs[0], own, "h") is not first
