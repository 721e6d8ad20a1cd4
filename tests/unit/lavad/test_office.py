"""lavad before it serves: where its store is, and who else has the lease."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import threading
from pathlib import Path

import pytest

from lavad import office
from lavad.store.backup import UNFINISHED
from lavad.store.connect import may_come
from lavad.store.errors import StoreAway
from lavad.store.lease import Lease
from lavad.store.writer import Store
from proto.daemon.workers import Workers


def test_a_store_at_the_place_of_an_older_version_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    former, spool = tmp_path / "lava" / "lavad.sqlite", tmp_path / "lava-master"
    monkeypatch.setattr(office, "FORMER_STORE", str(former))
    monkeypatch.setattr(office, "SPOOL", str(spool))
    database = f"sqlite:///{spool}/lavad.sqlite"
    office._refuse_to_leave_a_store(database, str(spool))
    for path in (former, spool / "lavad.sqlite"):
        path.parent.mkdir()
    former.touch()
    with pytest.raises(office.Cannot, match="move it"):
        office._refuse_to_leave_a_store(database, str(spool))
    office._refuse_to_leave_a_store("postgresql://db/lava", str(spool))
    office._refuse_to_leave_a_store(f"sqlite:///{tmp_path}/data/lavad.sqlite", f"{tmp_path}/data")
    (spool / "lavad.sqlite").touch()
    office._refuse_to_leave_a_store(database, str(spool))


def test_where_a_restore_was_killed_no_new_store_begins(tmp_path: Path) -> None:
    database, left = f"sqlite:///{tmp_path}/lavad.sqlite", tmp_path / f"{UNFINISHED}x"
    left.mkdir()
    with pytest.raises(office.Cannot, match=rf"lavad.sqlite has not ended: run lava db restore again, or remove {left}$"):
        office._refuse_to_leave_a_store(database, str(tmp_path))
    office._refuse_to_leave_a_store("postgresql://db/lava", str(tmp_path))
    (tmp_path / "lavad.sqlite").touch()
    office._refuse_to_leave_a_store(database, str(tmp_path))


def test_a_standby_says_once_whom_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(office, "STANDBY_PAUSE", 0.01)
    caplog.set_level(logging.INFO, "lavad")
    store = Store.open(f"sqlite:///{tmp_path}/lavad.sqlite")
    lease = Lease(store.engine)
    lease.alone = False  # as several masters share it
    epoch = lease.acquire("host1/1 boot token", 600.0)
    asked = 0

    class Counted(Lease):
        def acquire(self, holder: str, seconds: float) -> int | None:
            nonlocal asked
            asked += 1
            if asked == 5:
                assert epoch is not None
                self.release(epoch)
            return super().acquire(holder, seconds)

    counted = Counted(store.engine)
    counted.alone = False

    async def wait() -> None:
        held = await office._wait_for_lease(counted, Workers("lease"), "host2/1 boot other", 600.0, asyncio.Event())
        assert held is not None

    asyncio.run(wait())
    store.close()
    assert caplog.messages == ["standby: host1/1 has the masters' lease"]


@pytest.mark.parametrize("wrong", ["sslmode=sometimes", "target_session_attrs=what"])
def test_a_database_that_is_named_wrongly_is_not_waited_for(wrong: str) -> None:
    with pytest.raises(StoreAway, match=wrong.partition("=")[0]):
        office._open(f"postgresql://lavad@127.0.0.1:1/lava?{wrong}")


def test_a_master_that_is_told_to_end_does_not_wait_for_a_database_that_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor tries once more."""
    monkeypatch.setattr(office, "STANDBY_PAUSE", 0.01)

    async def ends(server: socket.socket) -> None:
        ended = asyncio.Event()
        url = f"postgresql://lavad@127.0.0.1:{server.getsockname()[1]}/lava"
        waiting = asyncio.ensure_future(office._wait_for_store(url, StoreAway("it is away"), ended))
        with (await asyncio.get_running_loop().sock_accept(server))[0]:
            ended.set()
            assert await waiting is None
            with pytest.raises(BlockingIOError):
                server.accept()

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        asyncio.run(ends(server))


def test_all_else_goes_on_while_a_database_is_asked_whether_it_is_there() -> None:
    """A thread of the same process is the database here."""
    asked = []

    def answer(server: socket.socket) -> None:
        with server.accept()[0] as link:
            asked.append(link.recv(1000))
            link.sendall(b"N")  # no TLS
            asked.append(link.recv(1000))
            link.sendall(b"R" + struct.pack("!ii", 8, 3))  # asks for a password

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,), daemon=True)
        thread.start()
        url = f"postgresql://lavad@127.0.0.1:{server.getsockname()[1]}/lava"
        assert not may_come(url)
        thread.join()
    assert b"lavad" in asked[1]
    assert may_come(url), "nobody listens there any more"


@pytest.mark.parametrize(("there", "opened"), [([True], False), ([False], True), ([False, True], False)])
def test_a_database_that_comes_between_two_looks_at_it_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, there: list[bool], opened: bool
) -> None:
    """``there``: what each look finds, after the store could not be opened; True: it may still come."""
    tries = []

    def open_store(url: str) -> Store:
        tries.append(url)
        if opened and len(tries) > 1:
            return store
        raise StoreAway("it is away")

    store = Store.open(f"sqlite:///{tmp_path}/lavad.sqlite")
    monkeypatch.setattr(Store, "open", open_store)
    monkeypatch.setattr(office, "may_come", lambda url: there.pop(0))
    assert isinstance(office._open("postgresql://h/lava"), Store if opened else StoreAway)
    assert there == []
    store.close()
