"""Whatever a caller sends, an answer or a refusal comes out, soon and without filling the memory; the master serves on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.control.office import take_office
from lavad.core.lang.asks import Caller, Query
from lavad.core.plan.volatile import Soft
from lavad.core.site.conf import Conf, Params
from lavad.engine import Engine
from lavad.hosts.job_text_cache import JobTextCache
from lavad.hosts.peek_requests import PeekRequests
from lavad.hosts.peek_service import PeekService
from lavad.hosts.sessions import Sessions
from lavad.queries.frame.view import View
from lavad.queries.render import render
from lavad.rpc.dispatch import Dispatch
from lavad.services.audit import Audit
from lavad.services.perfmon import Perfmon
from lavad.services.reconfiguration import Reconfiguration
from lavad.services.waits import Waits
from lavad.store.lease import Lease
from lavad.store.load import load
from lavad.store.read import Reader
from lavad.store.writer import Store
from proto.answers import Piece
from proto.daemon.workers import Workers
from tests.support.wait import SLOW
from tests.support.worlds.bench import ADMIN, ALICE, BOB, ROOT
from tests.support.worlds.frames import Frames
from tests.support.worlds.world import World

log = logging.getLogger("fuzz")
FRAMES = int(os.environ.get("LAVA_FUZZ_FRAMES", "2000"))
SEED = int(os.environ.get("LAVA_FUZZ_SEED", "1"))
LONGEST = 20.0 * SLOW
"""Seconds for one frame; only a frame that hangs comes near."""
MOST_MEMORY = 400 << 10
"""KB by which the peak may grow."""
KEYS = [{"ok"}, {"refused", "exit"}, {"out"}, {"err"}, {"exit"}, {"later"}]
START = [
    (ALICE, {"ask": "submit", "command": "a"}),
    (BOB, {"ask": "submit", "command": "b", "options": {"H": True}}),
    (ALICE, {"ask": "submit", "command": "c", "options": {"J": "a[1-1000]"}}),
    (ALICE, {"ask": "submit", "command": "d", "options": {"J": "b[1-9]%2", "w": "done(1)"}}),
]


class Rendered:
    """Answers queries from the engine's own cluster, with the renderers of the query process."""

    def __init__(self, cluster: Cluster, reader: Reader) -> None:
        self._view = View(cluster, Soft(), lambda: reader, master="h1")

    async def answer(self, query: Query, caller: Caller) -> AsyncIterator[Piece]:
        """As the query process does."""
        for kind, text in render(self._view, query, caller, time.time()):
            piece: Any = {"exit": int(text)} if kind == "exit" else {"out" if kind == "out" else "err": text}
            yield piece


async def made(folder: Path, write: Callable[[dict[str, object]], None] = lambda _: None) -> tuple[Engine, Dispatch, Store]:
    """A master in office without its daemons."""
    url = f"sqlite:///{folder}/lava.db"
    store = Store.open(url)
    epoch = Lease(store.engine).acquire("me", 1000.0)
    cluster, reader = load(store), Reader.open(url)
    engine = Engine(cluster, store, time.time, {})
    sessions = Sessions()
    outputs = PeekService(cluster, sessions, PeekRequests(), reader, Workers("reads"))
    texts = JobTextCache(reader)
    engine.on_text(texts.seen)
    audit = Audit(write, lambda: cluster.conf, time.time)
    dispatch = Dispatch(
        engine,
        texts,
        Waits(cluster),
        Rendered(cluster, reader),  # type: ignore[arg-type]
        outputs,
        Reconfiguration(engine, "host1", str(folder / "none"), time.time, audit),
        b"secret",
        Perfmon(cluster, time.time),
    )
    started = ev.MasterStarted(at=time.time(), epoch=epoch or 0, incarnation="i", host="h1")
    world = World()
    queues, users = world.cluster.conf.queues, ("boss",)
    conf = Conf(admins=users, queues=queues, params=Params(lsf_root_user=True, max_job_array_size=10**6))

    running = asyncio.ensure_future(engine.run())
    await engine.ask(lambda cluster, now: take_office(cluster, now, started, conf))
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return engine, dispatch, store


async def answered(dispatch: Dispatch, frame: bytes, caller: Caller) -> list[dict[str, Any]]:
    """All that comes out; nothing of an ask that waits for a job."""
    pieces: list[dict[str, Any]] = []
    waits = any(kind in frame for kind in (b'"wait"', b'"attach"', b'"peek"'))

    async def read() -> None:
        async for piece in dispatch.answer(frame, caller):
            pieces.append(msgspec.json.decode(piece))

    try:
        await asyncio.wait_for(read(), 0.05 if waits else LONGEST)
    except TimeoutError:
        assert waits, frame[:300]
        return [{"later": True}]
    return pieces


def test_only_answers_and_refusals_come_out(tmp_path: Path, caplog: pytest.LogCaptureFixture, record_property: Any) -> None:
    outcomes: Counter[str] = Counter()
    slowest = (0.0, b"")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    callers = itertools.cycle([ALICE, ALICE, BOB, ADMIN, ROOT, Caller(user="ü" * 200, uid=7, host="h9")])

    async def main() -> None:
        nonlocal slowest
        engine, dispatch, store = await made(tmp_path)
        running = asyncio.ensure_future(engine.run())
        for caller, ask in START:
            assert "ok" in (await answered(dispatch, msgspec.json.encode(ask), caller))[0]
        for frame in itertools.islice(Frames(SEED), FRAMES):
            begun = time.perf_counter()
            pieces = await answered(dispatch, frame, next(callers))
            slowest = max(slowest, (time.perf_counter() - begun, frame[:300]))
            assert pieces, frame[:300]
            assert all(set(piece) in KEYS for piece in pieces), (frame[:300], pieces[:3])
            text = str(pieces[-1].get("refused", ""))
            assert "internal error" not in text, frame[:2000]
            assert "\n" not in text or b"\\n" in frame, frame[:300]
            outcomes[next(iter(pieces[0]))] += 1
            assert not running.done(), frame[:300]
        running.cancel()
        check_invariants(engine.cluster)
        store.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert not caplog.records
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    found = f"{dict(outcomes)}; {slowest[0]:.3f} s at most ({slowest[1]!r}); {grown >> 10} MB more at the peak"
    record_property("fuzzed", f"{FRAMES} frames of seed {SEED}: {found}")
    log.info("%d frames of seed %d: %s", FRAMES, SEED, found)
    assert grown < MOST_MEMORY
    assert outcomes["ok"] > FRAMES // 50
    assert outcomes["refused"] > FRAMES // 5
