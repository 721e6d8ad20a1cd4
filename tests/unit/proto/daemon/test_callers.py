"""What one user can do to the local socket of a daemon: frames that are too large, or too many, or never end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import socket
import threading
from pathlib import Path

import pytest

from proto.daemon import callers
from proto.daemon.callers import LARGE, MAX_FRAME, MOST_LARGE, CallerReader, Callers, NameUnknown, pack
from proto.names import NoAnswer
from tests.support.open_files import no_more_files

ALICE, BOB = 1000, 1001


def reader_of(*data: bytes, ends: bool = True) -> CallerReader:
    reader = CallerReader()
    for piece in data:
        reader.feed_data(piece)
    if ends:
        reader.feed_eof()
    return reader


def test_frames_come_whole_and_a_torn_one_does_not_come() -> None:
    async def read() -> list[bytes | None]:
        whole = pack(b"one") + pack(b"") + pack(b"x" * (LARGE + 1))
        return [body async for body in Callers().frames(reader_of(whole, pack(b"torn")[:-1]), ALICE)]

    assert asyncio.run(read()) == [b"one", b"", b"x" * (LARGE + 1)]


def test_one_that_is_too_large_is_the_last() -> None:
    async def read() -> list[bytes | None]:
        head = (MAX_FRAME + 1).to_bytes(4, "big")
        return [body async for body in Callers().frames(reader_of(head, pack(b"more")), ALICE)]

    assert asyncio.run(read()) == [None]


def test_large_frames_that_never_end_hold_up_their_own_user_only() -> None:
    """And only that user's large ones; as soon as one of them is answered, the next is read."""

    async def read() -> None:
        callers = Callers()
        large = pack(b"x" * (LARGE + 1))
        stuck = [callers.frames(reader_of(large), ALICE) for _ in range(MOST_LARGE)]
        for one in stuck:
            assert await anext(one)
        waits = asyncio.ensure_future(anext(callers.frames(reader_of(large), ALICE)))
        assert await anext(callers.frames(reader_of(pack(b"small")), ALICE)) == b"small"
        assert await anext(callers.frames(reader_of(large), BOB))
        assert not waits.done()
        await stuck[0].aclose()
        assert await waits

    asyncio.run(read())


def test_a_user_has_so_many_connections_and_no_more() -> None:
    callers = Callers(most=2)
    with callers.let_in(ALICE) as one, callers.let_in(ALICE) as two:
        assert one
        assert two
        with callers.let_in(ALICE) as three, callers.let_in(BOB) as other:
            assert not three
            assert other
        with callers.let_in(ALICE) as three:
            assert not three
    with callers.let_in(ALICE) as again:
        assert again


def test_all_users_together_leave_room_for_what_else_the_daemon_opens_and_root_comes_in() -> None:
    callers = Callers(2)
    with contextlib.ExitStack() as stack:
        assert all(stack.enter_context(callers.let_in(uid)) for uid in (ALICE, ALICE, BOB, BOB))
        assert not stack.enter_context(callers.let_in(BOB + 1))
        assert stack.enter_context(callers.let_in(0))
    with callers.let_in(BOB + 1) as later:
        assert later


def test_callers_are_sent_away_while_no_file_can_be_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With one line of the log for all of them; the next one is served as soon as there is room."""

    async def serve(reader: CallerReader, writer: asyncio.StreamWriter) -> None:
        writer.write(pack(b"welcome"))
        writer.close()

    async def read() -> list[bytes]:
        loop, answers = asyncio.get_running_loop(), []
        server = await callers.listen(str(tmp_path / "sock"), serve, 100)
        clients = [socket.socket(socket.AF_UNIX) for _ in range(6)]
        for client in clients:
            client.setblocking(False)
        with no_more_files():
            for client in clients[:5]:
                client.connect(str(tmp_path / "sock"))
            answers += [await loop.sock_recv(client, 100) for client in clients[:5]]
        clients[5].connect(str(tmp_path / "sock"))
        answers.append(await loop.sock_recv(clients[5], 100))
        for client in clients:
            client.close()
        server.close()
        return answers

    assert asyncio.run(read()) == [pack(callers.LATER)] * 5 + [pack(b"welcome")]
    assert [record.message[:30] for record in caplog.records] == ["no more files can be opened (L"]


def test_the_place_that_another_thread_took_first_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file has the number that the one that was closed for the caller had."""
    taken: list[int] = []
    close = os.close

    def close_and_lose(number: int) -> None:
        close(number)
        taken.append(os.open(os.devnull, os.O_RDONLY))

    listener = callers._Listener(str(tmp_path / "sock"))
    listener.listen(5)
    with socket.socket(socket.AF_UNIX) as client, no_more_files():
        client.connect(str(tmp_path / "sock"))
        monkeypatch.setattr(os, "close", close_and_lose)
        with pytest.raises(OSError, match="Too many open files"):
            listener.accept()
        monkeypatch.undo()
        with pytest.raises(OSError, match="Too many open files"):
            listener.accept()
    listener.close()
    assert len(taken) == 1
    os.fstat(taken[0])
    os.close(taken[0])


def test_names_are_the_systems_or_digits() -> None:
    async def names() -> list[str]:
        callers = Callers()
        return [await callers.name_of(uid) for uid in (os.getuid(), os.getuid(), 4_000_000_000)]

    own = pwd.getpwuid(os.getuid()).pw_name
    assert asyncio.run(names()) == [own, own, "4000000000"]


class Directory:
    """A directory of users that can be away: it answers, fails, or hangs until the test is over."""

    def __init__(self) -> None:
        self.state = "there"
        self.asked: list[int] = []
        self.back = threading.Event()

    def find(self, uid: int) -> str | None:
        self.asked.append(uid)
        if self.state == "fails":
            raise NoAnswer("Connection refused")
        if self.state == "hangs":
            self.back.wait()
        return {ALICE: "alice", BOB: "bob"}.get(uid)


@pytest.mark.parametrize("state", ["fails", "hangs"])
def test_an_outage_of_the_directory_changes_no_name(state: str) -> None:
    """Who was known is known on; who was not is told so, and is not taken for a user whose name is a number."""
    directory = Directory()

    async def story() -> None:
        callers = Callers(find=directory.find)
        callers.learn(BOB, "bob")
        assert await callers.name_of(ALICE) == "alice"
        callers._names[ALICE] = (0.0, "alice")  # a minute later
        directory.state = state
        usual, callers._wait = callers._wait, 0.05
        assert [await callers.name_of(uid) for uid in (ALICE, BOB, ALICE)] == ["alice", "bob", "alice"]
        with pytest.raises(NameUnknown, match="cannot look up user 12345 now"):
            await callers.name_of(12345)
        directory.state, callers._wait = "there", usual
        directory.back.set()
        await asyncio.gather(*callers._asked.values(), return_exceptions=True)
        assert await callers.name_of(12345) == "12345"
        assert await callers.name_of(ALICE) == "alice"

    asyncio.run(story())


def test_many_commands_of_one_user_are_one_question() -> None:
    directory = Directory()
    directory.state = "hangs"

    async def story() -> None:
        callers = Callers(find=directory.find)
        asking = [asyncio.create_task(callers.name_of(ALICE)) for _ in range(50)]
        await asyncio.sleep(0)
        directory.back.set()
        assert set(await asyncio.gather(*asking)) == {"alice"}

    asyncio.run(story())
    assert directory.asked == [ALICE]


def test_an_answer_is_made_no_more_when_its_caller_has_gone(tmp_path: Path) -> None:
    """While it waits, before it begins, and not where the caller is there."""

    async def story() -> None:
        begun, ended = asyncio.Queue[bytes](), asyncio.Queue[bytes]()
        limits = Callers()

        async def serve(reader: CallerReader, writer: asyncio.StreamWriter) -> None:
            try:
                async for body in limits.frames(reader, 1):
                    assert body is not None
                    with reader.answering():
                        begun.put_nowait(body)
                        if body != b"short":
                            await asyncio.Event().wait()
                        writer.write(pack(body))
            finally:
                ended.put_nowait(b"")
                writer.close()

        path = str(tmp_path / "s")
        server = await callers.listen(path, serve, 10)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(pack(b"short"))
        assert await asyncio.wait_for(reader.readexactly(9), 10) == pack(b"short")
        writer.write(pack(b"long"))
        assert [await begun.get(), await begun.get()] == [b"short", b"long"]
        assert ended.empty()
        writer.close()
        await asyncio.wait_for(ended.get(), 10)
        for _ in range(20):
            _, writer = await asyncio.open_unix_connection(path)
            writer.write(pack(b"long"))
            writer.close()
            await asyncio.wait_for(ended.get(), 10)
        server.close()

    asyncio.run(story())
