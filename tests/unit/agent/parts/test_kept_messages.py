"""What stays of the master's messages keeps no more than itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.launch.accounts import Accounts
from agent.launch.site import Site, User
from agent.parts import spool as spools
from agent.parts.kept_messages import alone, saved
from agent.parts.spool import Spool
from agent.starter_client.starts import KEPT_KINDS, Starts
from proto import agent_pb2 as pb
from tests.unit.agent.parts.test_runner import ME, Bench

MESSAGES, LARGE = 200, 100_000
LARGE_TEXT = 40_000


def grown(steps: Iterator[object]) -> int:
    """Bytes by which this process grows."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    next(steps)
    before = resident()
    for _ in steps:
        pass
    return resident() - before


def test_a_text_and_an_order_are_kept_without_the_message_that_brought_them(tmp_path: Path) -> None:
    """Every one that stays would keep all that came with it."""
    bench = Bench(tmp_path)

    def starts() -> Iterator[None]:
        for at in range(1, MESSAGES + 1):
            text = pb.JobText(id=at, job=at, user=ME, command="true", cwd="/tmp")
            start = pb.Start(sequence=at, text=at, hosts=[pb.HostSlots(host="h", slots=1)])
            order = pb.Order(key=at, attempt=1, uid=f"u{at}", start=start)
            beside = pb.Order(key=at, uid="gone", finish=pb.Finish(why="x" * LARGE))
            message = pb.ToAgent(orders=pb.Orders(texts=[text], orders=[order, beside]))
            bench.runner.from_master(pb.ToAgent.FromString(message.SerializeToString()))
            bench.runner.flush()
            yield

    async def story() -> None:
        bench.order("first", start=True)
        await bench.found()
        assert grown(starts()) < MESSAGES * LARGE / 2

    asyncio.run(story())
    assert len(bench.runner.table) == MESSAGES


def test_a_job_of_its_own_leaves_nothing_where_elements_find_what_they_share(tmp_path: Path) -> None:
    """Its text is used once. Some of the last kinds of jobs are known."""
    site = Site("h", str(tmp_path), str(tmp_path), str(tmp_path), {}, own_user="ann")
    ann = User("ann", os.getuid(), os.getgid(), (), "/", "/bin/sh")
    accounts = Accounts()
    accounts.keep(ann)
    starts, spool = Starts(site, accounts), Spool(str(tmp_path / "agent"))
    spool.load()

    def jobs() -> Iterator[None]:
        for at in range(1, 10 * KEPT_KINDS):
            text = pb.JobText(id=at, job=at, user="ann", command="true", cwd=f"/{at}", env={"A": "x" * LARGE_TEXT})
            order = pb.Order(key=at, uid=f"u{at}", start=pb.Start(sequence=at, text=at, hosts=[pb.HostSlots(host="h", slots=1)]))
            starts.take(order, text, None, 0.0)
            [ready] = starts.ready()
            assert ready.made is not None
            spool.began(f"u{at}", b"", text, ann, 0.0, "")
            spool.flush()
            yield

    assert grown(jobs()) < 5 * KEPT_KINDS * LARGE_TEXT


def test_the_keys_of_a_job_are_not_written() -> None:
    start: dict[str, Any] = {"sequence": 7, "text": 1}
    order = pb.Order(key=1, uid="u", start=pb.Start(**start))
    assert pb.Order.FromString(saved(order)) == order
    secret = alone(order)
    secret.start.key_pem, secret.start.cert_pem, secret.start.token = b"key", b"cert", "token"
    secret.start.holders.add(host="h")
    assert pb.Order.FromString(saved(secret)) == order
    assert secret.start.key_pem == b"key"
    for name in ("key_pem", "cert_pem", "token", "holders"):
        one = alone(secret)
        for other in {"key_pem", "cert_pem", "token", "holders"} - {name}:
            one.start.ClearField(other)
        assert pb.Order.FromString(saved(one)) == order, name


def test_the_journal_keeps_few_texts_in_memory_and_of_few_bytes(tmp_path: Path, monkeypatch: Any) -> None:
    """One that it has dropped is written again with the next part of it."""
    monkeypatch.setattr(spools, "KEPT_TEXTS", 3)
    monkeypatch.setattr(spools, "KEPT_BYTES", 1000)
    user = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/sh")
    spool = Spool(str(tmp_path))
    spool.load()

    def written(mark: bytes) -> int:
        return (tmp_path / "parts.journal").read_bytes().count(mark)

    few = [pb.JobText(id=at, command=f"few{at}", array_end=9) for at in range(4)]
    large = [pb.JobText(id=at, command=f"large{at}", cwd="x" * 700, array_end=9) for at in range(2)]
    for at, text in enumerate((few[0], *few, few[0], *large, large[0], large[0])):
        spool.began(f"u{at}", b"order", text, user, 1.0, "")
    spool.flush()
    assert [written(mark) for mark in (b"few0", b"few1", b"large0", b"large1")] == [2, 1, 2, 1]
    found = Spool(str(tmp_path)).load()
    assert pb.JobText.FromString(found["u0"].text) == few[0]
    assert pb.JobText.FromString(found["u8"].text) == large[0]
