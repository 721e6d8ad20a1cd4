"""The PMI connections of the ranks on one host: a socket for each rank, served by the protocol of ``pmi.Pmi``.

Rule: what goes wrong with a rank is reported through ``on_failure``; no process is ended here.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping

from agent.starter.mpi.pmi import Pmi
from agent.starter.mpi.pmi_job import Abort, Action, Barrier, Broken, Send
from agent.starter.protocol.part import PmiSpec
from agent.starter.protocol.reports import FirstFailure
from agent.starter.system.watch import Watch

EOF_TO_EXIT = 0.5
"""Seconds that a rank may take from closing its PMI connection without MPI_Finalize to its exit."""


class PmiSockets:
    """Calls ``on_barrier`` when all ranks of this host are in a barrier, and ``on_failure`` when one has failed."""

    def __init__(
        self,
        asked: PmiSpec,
        host: str,
        ranks: list[int],
        watch: Watch,
        on_barrier: Callable[[Barrier], None],
        on_failure: Callable[[FirstFailure], None],
    ) -> None:
        self._pmi = Pmi(asked.kvsname, asked.size, asked.mapping, ranks)
        self._host = host
        self._ranks = ranks
        self._watch = watch
        self._on_barrier = on_barrier
        self._on_failure = on_failure
        self._sockets: dict[int, socket.socket] = {}
        self._exit_by: dict[int, float] = {}
        """Rank that closed its connection without MPI_Finalize to the time when it must have ended (monotonic)."""

    def open(self, rank: int) -> tuple[dict[str, str], int]:
        """(variables, descriptor to inherit) of a rank that is about to start; the caller closes the descriptor afterwards."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._sockets[rank] = ours
        self._watch.add(ours.fileno(), lambda _: self._read(rank))
        fd = theirs.detach()
        env = {
            "PMI_FD": str(fd),
            "PMI_RANK": str(rank),
            "PMI_SIZE": str(self._pmi.size),
            "MPI_LOCALRANKID": str(self._ranks.index(rank)),
            "MPI_LOCALNRANKS": str(len(self._ranks)),
        }
        return env, fd

    def release(self, puts: Mapping[str, str]) -> None:
        """The barrier is complete on all hosts; ``puts``: what all of them put."""
        self._act(self._pmi.release(puts))

    def fail(self, reason: str) -> None:
        """The job ends: tell the ranks that wait for others, as far as their protocol has words for it."""
        self._act(self._pmi.fail(reason))

    def task_ended(self, rank: int) -> None:
        """A rank's process has ended: read what it sent before."""
        self._exit_by.pop(rank, None)
        while self._read(rank):
            pass

    def find_unfinished(self, rank: int) -> FirstFailure | None:
        """The failure of a rank that has ended between MPI_Init and MPI_Finalize."""
        if not self._pmi.unfinished(rank):
            return None
        return FirstFailure(rank, 1 << 8, f"rank {rank} on {self._host} ended without MPI_Finalize")

    def begun(self, rank: int) -> bool:
        """Whether the rank has ever called MPI_Init."""
        return self._pmi.begun(rank)

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return min(self._exit_by.values(), default=None)

    def on_time(self) -> None:
        """Fail on a rank that closed its connection and did not end."""
        now = time.monotonic()
        for rank in [rank for rank, at in self._exit_by.items() if at <= now]:
            del self._exit_by[rank]
            if failure := self.find_unfinished(rank):
                self._on_failure(failure)

    def close(self) -> None:
        """Close all connections."""
        for sock in self._sockets.values():
            self._close(sock)
        self._sockets.clear()

    def _read(self, rank: int) -> bool:
        """Read once; False when there is nothing more to read."""
        sock = self._sockets.get(rank)
        if sock is None:
            return False
        try:
            data = sock.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            del self._sockets[rank]
            self._close(sock)
            if self._pmi.unfinished(rank):
                self._exit_by[rank] = time.monotonic() + EOF_TO_EXIT
            return False
        self._act(self._pmi.feed(rank, data))
        return True

    def _close(self, sock: socket.socket) -> None:
        self._watch.remove(sock.fileno())
        sock.close()

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send():
                    self._send(action)
                case Barrier():
                    self._on_barrier(action)
                case Abort(rank, code):
                    reason = f"rank {rank} on {self._host} called abort with code {code}"
                    self._on_failure(FirstFailure(rank, (code & 0xFF or 1) << 8, reason))
                case Broken(rank, reason):
                    self._on_failure(FirstFailure(rank, 1 << 8, reason))

    def _send(self, action: Send) -> None:
        sock = self._sockets.get(action.rank)
        if sock is None:
            return
        try:
            sent = sock.send(action.data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return
        if sent != len(action.data):
            # A rank sends one request at a time and reads the answer: a full socket means that it does not read.
            self._on_failure(FirstFailure(action.rank, 1 << 8, f"rank {action.rank} does not read its PMI"))
