"""Ranks without MPI: processes that speak to the PMI server of the agents, meet, and write a file together."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.starter.mpi.pmi import Pmi
from agent.starter.mpi.pmi_job import Abort, Action, Barrier, Send
from lava_client.ranks import CollectiveFile, Ranks, RanksLost
from lava_client.ranks.collective import _merged, _ranges
from lava_client.ranks.links import connect

ROOT = Path(__file__).resolve().parents[3]


class Gang:
    """Ranks as processes that run one program, and their PMI service."""

    def __init__(self, program: str, size: int, *words: str, hosts: int = 1) -> None:
        self.pmi = Pmi("space", size, "", range(size))
        self.aborted: list[Abort] = []
        self.select = selectors.DefaultSelector()
        self.processes: list[subprocess.Popen[str]] = []
        self.sockets: dict[int, socket.socket] = {}
        for rank in range(size):
            ours, theirs = socket.socketpair()
            env = {
                **os.environ,
                "PYTHONPATH": str(ROOT / "client"),
                "PMI_RANK": str(rank),
                "PMI_SIZE": str(size),
                "PMI_FD": str(theirs.fileno()),
                "LAVA_HOST": f"host{rank * hosts // size}",
            }
            command = [sys.executable, "-c", program, *words]
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            self.processes.append(subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()], **pipes))
            theirs.close()
            self.sockets[rank] = ours
            self.select.register(ours, selectors.EVENT_READ, rank)

    def serve(self) -> list[tuple[int, str, str]]:
        """Until all ranks have left: their exit codes, what they printed, and their errors."""
        while self.select.get_map():
            for key, _ in self.select.select(60):
                if key.data not in self.sockets:
                    continue  # an abort before it in the same turn has ended its service
                data = self.sockets[key.data].recv(1 << 16)
                if data:
                    self._do(self.pmi.feed(key.data, data))
                else:
                    self.leave(key.data)
        return [(process.wait(), *process.communicate()) for process in self.processes]

    def leave(self, rank: int) -> None:
        """The service is gone for this rank."""
        self.select.unregister(self.sockets[rank])
        self.sockets.pop(rank).close()

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(rank, data):
                    self.sockets[rank].sendall(data)
                case Barrier(puts):
                    self._do(self.pmi.release(puts))
                case Abort():
                    self.aborted.append(action)
                    for rank in list(self.sockets):
                        self.leave(rank)
                case _:
                    raise AssertionError(action)


def printed(program: str, size: int, *words: str, hosts: int = 1) -> list[str]:
    """What each rank printed; all of them ended well."""
    ended = Gang(program, size, *words, hosts=hosts).serve()
    assert [(code, errors) for code, _, errors in ended] == [(0, "")] * size
    return [text for _, text, _ in ended]


@pytest.fixture
def alone() -> Iterator[Ranks]:
    with Ranks({}) as ranks:
        yield ranks


def test_values_of_any_kind_and_size_are_known_to_all_in_the_order_of_ranks() -> None:
    program = """
import hashlib
from lava_client.ranks import Ranks
with Ranks() as ranks:
    for turn in range(5):
        found = ranks.allgather((ranks.rank, turn, bytes([ranks.rank]) * (turn * 7919 * (ranks.rank % 2))))
        assert [(rank, turn, bytes([rank]) * (turn * 7919 * (rank % 2))) for rank in range(3)] == found, turn
    print(ranks.rank, ranks.size, ranks.allgather({"rank": ranks.rank}))
"""
    all_of_them = [{"rank": rank} for rank in range(3)]
    assert printed(program, 3) == [f"{rank} 3 {all_of_them}\n" for rank in range(3)]


def test_nobody_leaves_a_barrier_before_all_are_in_it(tmp_path: Path) -> None:
    program = """
import os, sys
from lava_client.ranks import Ranks
with Ranks() as ranks:
    open(f"{sys.argv[1]}/{ranks.rank}", "w").close()
    ranks.barrier()
    print(len(os.listdir(sys.argv[1])))
"""
    assert printed(program, 4, str(tmp_path)) == ["4\n"] * 4


def test_a_program_by_itself_is_one_rank(alone: Ranks, tmp_path: Path) -> None:
    assert (alone.rank, alone.size, alone.local_rank, alone.local_size) == (0, 1, 0, 1)
    alone.barrier()
    assert alone.allgather([1, 2]) == [[1, 2]]
    with CollectiveFile(alone, tmp_path / "out") as file:
        assert file.write_at_all([(3, b"b"), (0, b"aaa")]) == 4
    assert (tmp_path / "out").read_bytes() == b"aaab"


def test_what_cannot_be_is_said(alone: Ranks, tmp_path: Path) -> None:
    with pytest.raises(RanksLost, match="PMI_SIZE is 2, but there is no PMI_FD"):
        Ranks({"PMI_SIZE": "2"})
    with pytest.raises(RanksLost, match="PMI_FD=x is no socket"):
        Ranks({"PMI_SIZE": "2", "PMI_FD": "x"})
    with pytest.raises(ValueError, match="at most 65536 bytes"):
        alone.allgather(b"x" * 70_000)
    with pytest.raises(ValueError, match='mode is "w" or'):
        CollectiveFile(alone, tmp_path / "out", "a")
    with pytest.raises(ValueError, match="writers are numbers of ranks"):
        CollectiveFile(alone, tmp_path / "out", writers=[1])
    with pytest.raises(FileNotFoundError):
        CollectiveFile(alone, tmp_path / "no" / "out")
    with CollectiveFile(alone, tmp_path / "out") as file, pytest.raises(ValueError, match="an offset is at least 0"):
        file.write_at_all([(-1, b"x")])


def test_ranks_whose_service_ends_are_released_with_an_error() -> None:
    program = """
from lava_client.ranks import Ranks, RanksLost
with Ranks() as ranks:
    ranks.barrier()
    if ranks.rank == 1:
        ranks.abort("no more of this", 7)
    try:
        ranks.barrier()
    except RanksLost as error:
        print(error)
"""
    gang = Gang(program, 3)
    ended = gang.serve()
    assert gang.aborted == [Abort(1, 7, "no more of this")]
    assert [code for code, _, _ in ended] == [0, 7, 0]
    assert [text.startswith("the job's PMI service is gone") for _, text, _ in ended] == [True, False, True]


INTERLEAVED = """
import random, sys
from lava_client.ranks import CollectiveFile, Ranks
path, blocks, buffer, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
with Ranks() as ranks:
    def mine(turn):
        for at in range(blocks):
            lengths = random.Random(seed + at)
            length = lengths.randint(1, 600)
            if at % ranks.size == ranks.rank and lengths.random() < 0.8:
                yield turn * blocks * 600 + at * 600, bytes([1 + (at + turn) % 255]) * length
    with CollectiveFile(ranks, path, buffer=buffer) as file:
        for turn in range(2):
            pieces = list(mine(turn))
            random.Random(ranks.rank).shuffle(pieces)
            assert file.write_at_all(iter(pieces)) == sum(len(data) for _, data in pieces)
        print(file.writes)
"""


@pytest.mark.parametrize(("size", "hosts", "buffer"), [(1, 1, 1 << 20), (3, 1, 1000), (4, 2, 777), (4, 3, 1 << 14)])
def test_pieces_of_all_ranks_are_in_the_file(tmp_path: Path, size: int, hosts: int, buffer: int) -> None:
    def content(ranks: int, out: str) -> tuple[bytes, list[str]]:
        said = printed(INTERLEAVED, ranks, str(tmp_path / out), "60", str(buffer), "11", hosts=min(hosts, ranks))
        return (tmp_path / out).read_bytes(), said

    alone, _ = content(1, "alone")
    found, writes = content(size, "together")
    assert found == alone
    assert sum(text != "0\n" for text in writes) == hosts, "one rank of each host writes"


def test_small_pieces_become_large_writes(tmp_path: Path) -> None:
    program = """
import sys
from lava_client.ranks import CollectiveFile, Ranks
with Ranks() as ranks, CollectiveFile(ranks, sys.argv[1], buffer=1 << 20) as file:
    file.write_at_all((at * 4096, bytes([at % 251]) * 4096) for at in range(ranks.rank, 2048, ranks.size))
    print(file.writes)
"""
    writes = sum(map(int, printed(program, 4, str(tmp_path / "out"))))
    assert (tmp_path / "out").read_bytes() == b"".join(bytes([at % 251]) * 4096 for at in range(2048))
    assert writes == 8


def test_far_apart_pieces_leave_holes_and_what_was_there(tmp_path: Path) -> None:
    program = """
import sys
from lava_client.ranks import CollectiveFile, Ranks
with Ranks() as ranks, CollectiveFile(ranks, sys.argv[1], "r+", buffer=4096, sync=True) as file:
    file.write_at_all([((1 << 40) * ranks.rank + 5, b"here"), ((1 << 40) * ranks.rank, b"")])
"""
    path = tmp_path / "out"
    path.write_bytes(b"0123456789")
    assert printed(program, 2, str(path)) == ["", ""]
    with path.open("rb") as file:
        assert file.read(20) == b"01234here9" + bytes(10)
        file.seek((1 << 40) + 5)
        assert file.read() == b"here"
    assert path.stat().st_blocks * 512 < 1 << 20


def test_what_one_cannot_write_is_raised_by_all() -> None:
    program = """
from lava_client.ranks import CollectiveFile, Ranks
with Ranks() as ranks:
    file = CollectiveFile(ranks, "/dev/full")
    try:
        file.write_at_all([(ranks.rank * 3, b"abc")])
    except OSError as error:
        print(error.errno, error.strerror)
    print(ranks.allgather(ranks.rank))
"""
    first, second, third = printed(program, 3)
    assert first == "28 No space left on device\n[0, 1, 2]\n"
    assert second == third == "28 rank 0: [Errno 28] No space left on device\n[0, 1, 2]\n"


def test_a_stranger_at_a_writers_port_is_no_rank() -> None:
    program = """
import socket
from lava_client.ranks import Ranks, links
with Ranks() as ranks:
    real = links._connected
    def connected(rank, writer, name, addresses, port, secret):
        silent = socket.create_connection(("127.0.0.1", port))
        wrong = socket.create_connection(("127.0.0.1", port))
        wrong.sendall(b"\\0\\0\\0\\4nono" * 3)
        return real(rank, writer, name, addresses, port, secret)
    links._connected = connected
    found = links.connect(ranks, [0])
    if ranks.rank:
        found.to[0].send_bytes(b"from %d" % ranks.rank)
    else:
        print([found.of[rank].recv_bytes() for rank in (1, 2)])
    ranks.barrier()
    found.close()
"""
    assert printed(program, 3) == ["[b'from 1', b'from 2']\n", "", ""]


def test_one_rank_needs_no_connection(alone: Ranks) -> None:
    assert connect(alone, [0]) == ({}, {})


def test_many_ranges_of_cells_are_told_as_few() -> None:
    assert _merged([(5, 6), (0, 2), (2, 3), (1, 2)]) == [(0, 3), (5, 6)]
    assert _ranges([0, 1, 2, 10, 12, 30], 500) == [(0, 2), (10, 10), (12, 12), (30, 30)]
    assert _ranges([0, 1, 2, 10, 12, 30], 3) == [(0, 2), (10, 12), (30, 30)]
    assert _ranges([0, 1, 2, 10, 12, 30], 1) == [(0, 30)]
    assert _ranges([], 3) == []
