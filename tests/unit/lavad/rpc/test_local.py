"""The local socket of a lavad that is no longer master."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from lavad.rpc.local import LocalServer
from proto.daemon import callers
from tests.support.wait import SLOW, wait_until
from tests.unit.lavad.rpc.test_dispatch_fuzz import made


async def _answer(folder: Path) -> bytes:
    """What a caller gets whose ask nobody decides any more."""
    engine, dispatch, store = await made(folder)
    local = LocalServer(str(folder / "lavad.sock"), "h1", lambda: dispatch)
    await local.start()
    reader, writer = await asyncio.open_unix_connection(folder / "lavad.sock")
    writer.write(callers.pack(json.dumps({"ask": "post", "job": "1", "text": "t"}).encode()))
    await asyncio.to_thread(wait_until, lambda: bool(engine._waiting), 20, "the ask to wait")
    local.break_off()
    found = await asyncio.wait_for(reader.read(), 20 * SLOW)
    writer.close()
    local.close()
    store.close()
    return found


def test_who_waits_for_a_master_that_is_none_any_more_is_cut_off(tmp_path: Path) -> None:
    assert asyncio.run(_answer(tmp_path)) == b""
