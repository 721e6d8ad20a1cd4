"""The agent's side of held copies: the port stays, one agent has a folder, copies that no job needs go after a while."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from agent.checkpoint import holding
from agent.checkpoint.holding import LINGER, Holding
from agent.launch.site import Site
from config.read.params import settings_of
from lavad.hosts.joblink import credentials
from proto import agent_pb2 as pb
from tests.support.wait import SLOW, wait_until


def site(folder: Path, **conf: str) -> Site:
    conf = {"LAVA_CHKPNT_COPY_DIR": str(folder / "copies"), **conf}
    return Site("h1", str(folder), str(folder), str(folder), conf, settings_of(conf))


def close(one: Holding) -> None:
    """As with the agent's end."""
    assert one._listener is not None
    one._listener.close()
    os.close(one._lock)


def test_a_port_stays_and_is_one_agents(tmp_path: Path) -> None:
    first, second, other = (Holding(site(tmp_path)) for _ in range(3))
    asyncio.run(first.listen())
    asyncio.run(second.listen())
    assert first.port
    assert second.port == 0, "another agent has this folder"
    assert (tmp_path / "copies" / "h1").stat().st_mode & 0o777 == 0o700
    close(first)
    asyncio.run(other.listen())
    assert other.port == first.port
    close(other)


def test_a_host_without_a_folder_or_with_one_of_others_holds_nothing(tmp_path: Path) -> None:
    none = Holding(site(tmp_path, LAVA_CHKPNT_COPY_DIR=""))
    asyncio.run(none.listen())
    (tmp_path / "copies" / "h1").mkdir(parents=True)
    (tmp_path / "copies" / "h1").chmod(0o777)
    open_to_all = Holding(site(tmp_path))
    asyncio.run(open_to_all.listen())
    assert (none.port, open_to_all.port) == (0, 0)


@pytest.mark.parametrize(
    ("owner", "mode", "holds"), [(0, 0o755, True), (0, 0o1777, True), (0, 0o777, False), (0, 0o775, False), (65534, 0o755, False)]
)
def test_nobody_else_can_put_another_folder_in_its_place(tmp_path: Path, owner: int, mode: int, holds: bool) -> None:
    (above := tmp_path / "copies").mkdir()
    if os.geteuid() and (owner or mode == 0o775):
        pytest.skip("needs root: nobody else gives a folder away, or is not trusted with those of their own group")
    if owner:
        os.chown(above, owner, owner)
    above.chmod(mode)
    one = Holding(site(tmp_path))
    asyncio.run(one.listen())
    assert bool(one.port) == holds
    if holds:
        close(one)


def test_what_no_job_has_needed_for_a_while_is_removed(tmp_path: Path) -> None:
    one = Holding(site(tmp_path))
    one.unneeded(["ann/1-5"], 10.0)
    assert one._drop == []
    one.unneeded(["ann/1-5", "ann/2-5"], 9.0 + LINGER)
    assert one._drop == []
    one.unneeded(["ann/2-5"], 10.0 + LINGER)
    assert one._drop == [], "a job needs the first one again"
    one.unneeded(["ann/1-5", "ann/2-5"], 9.0 + 2 * LINGER)
    assert one._drop == ["ann/2-5"]


def test_a_folder_that_cannot_be_read_for_a_while_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(holding, "LOOK_PAUSE", 0.01)
    one = Holding(site(tmp_path))
    folder = tmp_path / "copies" / "h1"

    async def look() -> None:
        await one.listen()
        folder.rename(tmp_path / "away")
        folder.write_text("as where the disk has gone")
        told = asyncio.Event()
        looking = asyncio.create_task(one.look(told.set))
        await asyncio.to_thread(wait_until, lambda: caplog.messages or looking.done(), 30, "the folder to be missed")
        folder.unlink()
        (tmp_path / "away" / "ann" / "1-5").mkdir(parents=True)
        (tmp_path / "away").rename(folder)
        ended, _ = await asyncio.wait([looking, asyncio.create_task(told.wait())], return_when=asyncio.FIRST_COMPLETED)
        assert looking not in ended
        looking.cancel()

    asyncio.run(asyncio.wait_for(look(), 30 * SLOW))
    close(one)
    assert caplog.messages[0].startswith("LAVA_CHKPNT_COPY_DIR: [Errno 20] Not a directory")
    assert one.take() == pb.Copies(jobs=["ann/1-5"])


def test_a_host_without_room_for_a_process_holds_copies_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(holding, "RESTART_PAUSE", 0.01)
    one = Holding(site(tmp_path))
    key, cert = credentials(b"cluster", "holder")
    python = sys.executable

    async def run() -> None:
        await one.listen()
        monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
        one.welcomed(pb.Welcome(copies_key=key, copies_cert=cert, copies_secret=b"s"))
        running = asyncio.create_task(one.run())
        await asyncio.to_thread(wait_until, lambda: caplog.messages or running.done(), 30, "a process not to be had")
        monkeypatch.setattr(sys, "executable", python)
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        answered = asyncio.create_task(_greeted(reader, writer))
        ended, _ = await asyncio.wait([running, answered], return_when=asyncio.FIRST_COMPLETED)
        assert running not in ended
        running.cancel()

    asyncio.run(asyncio.wait_for(run(), 60 * SLOW))
    close(one)


async def _greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """No greeting of TLS: the process closes the connection."""
    writer.write(b"nonsense\n" * 10)
    await reader.read()
