"""The query process over its socket: a list of many jobs goes on beside other queries, and not far ahead of its reader."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from lavad.core import events as ev
from lavad.core.cluster.snapshot import take
from lavad.core.lang.asks import Caller, OptionValue, Query
from lavad.core.lang.ranges import Ranges
from lavad.core.site.conf import Params
from lavad.processes import query
from lavad.processes.long_query import AHEAD
from lavad.processes.query import Queries
from lavad.replica import protocol as feed
from lavad.replica.replica import Ended, Replica
from lavad.store.writer import Store
from tests.support.worlds.bench import ALICE, BOB, Bench

MANY = 30_000
_decode = msgspec.msgpack.Decoder(feed.Answer | feed.Begun)


class Master:
    """Its end of the socket."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._file = link.makefile("rb")
        self.begun: list[int] = []

    def send(self, message: msgspec.Struct) -> None:
        self._link.sendall(feed.frame(message))

    def ask(self, number: int, caller: Caller, options: dict[str, OptionValue]) -> None:
        self.send(feed.Ask(number=number, query=Query(command="bjobs", options=options), caller=caller, now=1000.0))

    def take(self) -> feed.Answer:
        """The next frame of an answer."""
        while True:
            size = int.from_bytes(self._file.read(4), "big")
            message = _decode.decode(self._file.read(size))
            if isinstance(message, feed.Answer):
                return message
            self.begun.append(message.number)


def started(ours: socket.socket, bench: Bench, url: str) -> Master:
    """The master's side of a query process, which has been told all that it needs."""
    ours.settimeout(120)
    master = Master(ours)
    master.send(take(bench.cluster))
    master.send(feed.ReplicaSettings(master="h1", lsf={}, database=url, confdir=""))
    return master


@contextmanager
def serving(bench: Bench, folder: Path) -> Iterator[Master]:
    """A query process of this cluster, as a thread."""
    url = f"sqlite:///{folder}/lava.db"
    Store.open(url).close()
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with pytest.raises(Ended):
            Queries(Replica(theirs)).serve()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield started(ours, bench, url)
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        thread.join(120)
        ours.close()
        theirs.close()
    assert not thread.is_alive()


@contextmanager
def running(bench: Bench, folder: Path, before: str = "pass") -> Iterator[Master]:
    """The same as a process, which can fork; ``before`` is run in it first."""
    url = f"sqlite:///{folder}/lava.db"
    Store.open(url).close()
    ours, theirs = socket.socketpair()
    code = f"import os; os.dup2({theirs.fileno()}, 3); from lavad.processes import query; {before}; query.main()"
    with subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()]), ours, theirs:
        try:
            yield started(ours, bench, url)
        finally:
            ours.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def many() -> Bench:
    bench = Bench()
    bench.configure(params=Params(max_job_array_size=MANY))
    bench.bsub(J=f"a[1-{MANY}]")
    return bench


def text_of(frames: list[feed.Answer]) -> str:
    return "".join(text for frame in frames for _, text in frame.pieces)


def test_a_list_waits_for_its_reader_and_holds_up_nobody(many: Bench, tmp_path: Path) -> None:
    with serving(many, tmp_path) as master:
        master.ask(1, ALICE, {"u": "all"})
        frames = [master.take() for _ in range(AHEAD)]
        assert {frame.number for frame in frames} == {1}
        assert not any(frame.exit is not None for frame in frames)
        # what happens from now on is not in the list, which is of the cluster at its first line
        killed = ev.ElementsKilled(at=1000.0, key=1, elements=Ranges.span(MANY - 10, MANY), by="alice")
        master.send(feed.Events([killed]))
        master.ask(2, BOB, {})
        other = master.take()
        assert (other.number, other.exit) == (2, 0), "the list is as far ahead as it may be"
        master.send(feed.Taken(number=1, count=AHEAD))
        while frames[-1].exit is None:
            frames.append(master.take())
            master.send(feed.Taken(number=1, count=1))
        lines = text_of(frames).splitlines()
        assert (len(lines), frames[-1].exit) == (MANY + 1, 0)
        assert lines[-1].split()[:6] == ["1", "alice", "PEND", "normal", "h1", f"a[{MANY}]"]
        assert master.begun == [1, 0, 2]


def test_a_list_whose_caller_has_gone_is_not_gone_on_with(many: Bench, tmp_path: Path) -> None:
    with serving(many, tmp_path) as master:
        master.ask(1, ALICE, {"u": "all"})
        for _ in range(AHEAD):
            master.take()
        master.send(feed.Drop(number=1))
        master.ask(2, ALICE, {"u": "all", "noheader": True})
        assert master.take().number == 2


def test_one_user_has_one_list_at_a_time(many: Bench, tmp_path: Path) -> None:
    with serving(many, tmp_path) as master:
        master.ask(1, ALICE, {})
        master.ask(2, ALICE, {})
        order: list[int] = []
        ended = 0
        while ended < 2:
            frame = master.take()
            master.send(feed.Taken(number=frame.number, count=1))
            order.append(frame.number)
            ended += frame.exit is not None
        assert order == sorted(order)


def test_pagers_hold_up_nobodys_next_list(many: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not their user's, of whose the first is ended in the end, nor those of others, however many there are."""
    monkeypatch.setattr(query, "PATIENCE", 0.05)
    with serving(many, tmp_path) as master:
        for number in range(1, query.BEHIND_EACH + 1):
            master.ask(number, ALICE, {"u": "all"})
            assert {master.take().number for _ in range(AHEAD)} == {number}
        master.ask(8, BOB, {"u": "all"})
        assert {master.take().number for _ in range(AHEAD)} == {8}
        master.ask(9, ALICE, {"u": "all"})
        dropped = master.take()
        assert (dropped.number, dropped.exit, text_of([dropped])) == (1, 255, f"bjobs: {query.SLOW}\n")
        assert {master.take().number for _ in range(AHEAD)} == {9}
        master.send(feed.Taken(number=2, count=4))
        assert {master.take().number for _ in range(4)} == {2}


def test_a_query_of_few_jobs_with_a_large_answer_holds_up_nobody(tmp_path: Path) -> None:
    bench = Bench()
    jobs = 2 * AHEAD
    for _ in range(jobs):
        bench.bsub()
    with running(bench, tmp_path) as master:
        master.ask(1, ALICE, {"o": "user:4096 " * 300, "noheader": True})
        frames = [master.take() for _ in range(AHEAD)]
        master.ask(2, BOB, {})
        assert master.take().number == 2, "the other goes on only when its reader has taken some"
        master.send(feed.Taken(number=1, count=AHEAD))
        while frames[-1].exit is None:
            frames.append(master.take())
            master.send(feed.Taken(number=1, count=1))
    assert {frame.number for frame in frames} == {1}
    assert text_of(frames).count("alice") == jobs * 300


def test_a_query_that_takes_longer_than_thought_is_answered_whole(tmp_path: Path) -> None:
    """It is begun again in a fork, and what it had is not sent."""
    bench = Bench()
    for _ in range(3):
        bench.bsub()
    found = []
    for before in ("pass", "query.SHORT_TIME = -1"):
        with running(bench, tmp_path, before) as master:
            master.ask(1, ALICE, {"l": True})
            frames = [master.take()]
            while frames[-1].exit is None:
                frames.append(master.take())
            found.append((text_of(frames), frames[-1].exit))
            master.ask(2, BOB, {})
            assert master.take().number == 2
    assert found[0] == found[1]
    assert found[0][0].count("Job <") == 3


def test_a_query_that_is_made_in_one_go_is_answered_once(tmp_path: Path) -> None:
    """However long it took: nobody is served sooner where it is made again."""
    with running(Bench(), tmp_path, "query.SHORT_TIME = -1") as master:
        master.send(feed.Ask(number=1, query=Query(command="api", words=["overview"]), caller=ALICE, now=1000.0))
        assert master.take().exit == 0
        assert master.begun == [1]
