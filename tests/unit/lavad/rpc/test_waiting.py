"""Who waits for jobs of others, and what they are told: with SECURE_JOB_INFO_LEVEL no more than listings tell."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.lang.asks import Caller
from tests.unit.lavad.rpc.test_dispatch_fuzz import answered, made

ALICE, BOB, BOSS, ROOT = (Caller(name, uid, "h1") for name, uid in (("alice", 1), ("bob", 2), ("boss", 3), ("root", 0)))
JOBS: dict[str, tuple[dict[str, Any], bool]] = {
    "that waits": ({}, False),
    "that is over": ({}, True),
    "array": ({"J": "a[1-2]"}, False),
    "array that is over": ({"J": "a[1-2]"}, True),
}
"""A job's options, and whether it has ended."""
DENIED, NONE, WAITS = "User permission denied", "Job <1> is not found", "later"


async def _told(folder: Path, job: str, level: int, ask: str, *callers: Caller) -> list[dict[str, Any]]:
    """What each is told of a job of alice's."""
    options, is_over = JOBS[job]
    engine, dispatch, store = await made(folder)
    running = asyncio.ensure_future(engine.run())

    def restricted(cluster: Cluster, now: float) -> Decided:
        conf = replace(cluster.conf, params=replace(cluster.conf.params, secure_job_info_level=level))
        return Decided(events=[ev.Configured(at=now, conf=conf)])

    async def asked(caller: Caller, **frame: Any) -> dict[str, Any]:
        data = msgspec.json.encode(frame)
        if is_over or "job" not in frame:
            return msgspec.json.decode(*[piece async for piece in dispatch.answer(data, caller)], type=dict[str, Any])
        (answer,) = await answered(dispatch, data, caller)
        return answer

    try:
        await engine.ask(restricted)
        await asked(ALICE, ask="submit", command="true", options={"H": True, **options})
        if is_over:
            await asked(ALICE, ask="kill", jobs={"ids": ["1"]}, reason="secret")
        return [await asked(caller, ask=ask, job=1) for caller in callers]
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        store.close()


@pytest.mark.parametrize("job", JOBS)
def test_only_its_owner_attaches_to_a_job(tmp_path: Path, job: str) -> None:
    mine, *others = asyncio.run(_told(tmp_path, job, 0, "attach", ALICE, BOB, BOSS, ROOT))
    assert all(DENIED in other.get("refused", "") for other in others), others
    assert ("ok" in mine) if JOBS[job][1] else mine == {WAITS: True}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(("level", "shown"), [(0, "detail"), (1, "summary"), (2, ""), (3, ""), (4, ""), (5, "summary")])
def test_who_waits_hears_what_listings_show(tmp_path: Path, job: str, level: int, shown: str) -> None:
    alices, bobs, roots = asyncio.run(_told(tmp_path, job, level, "wait", ALICE, BOB, ROOT))
    assert alices == roots
    if not shown:
        assert bobs["refused"] == NONE
    elif not JOBS[job][1] or shown == "detail":
        assert bobs == alices
    else:
        assert bobs["ok"] == {name: alices["ok"][name] for name in ("state", "status", "host")}
        assert "reason" in alices["ok"]
