"""The ranks of an MPI job of one host with their PMI service, all in one process tree, so that they can be dumped together.

Rule: the first rank that fails ends the others, and the job ends as it did.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from typing import NoReturn

from agent.starter.mpi.pmi import Pmi
from agent.starter.mpi.pmi_job import Abort, Action, Barrier, Broken, Send
from agent.starter.process import tasks

TRANSPORT = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
"""What can be dumped, where the job says nothing: MPICH's own shared memory, and libfabric's TCP for the rest. UCX cannot be."""
_LOOK_EVERY = 0.2
"""Seconds between two looks at ranks that have ended without a word."""


class Ranks:
    """``size`` processes that execute ``argv``."""

    def __init__(self, size: int, argv: list[str]) -> None:
        self._pmi = Pmi(f"lava_{os.environ.get('LSB_BATCH_JID', '')}_{os.getpid()}", size, f"(vector,(0,1,{size}))", range(size))
        self._sockets: dict[int, socket.socket] = {}
        self._ranks: dict[int, int] = {}
        self._failed: int | None = None
        """The wait status of the first rank that failed."""
        for rank in range(size):
            self._start(rank, size, argv)

    def _start(self, rank: int, size: int, argv: list[str]) -> None:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            number = str(rank)
            os.environ.update({name: value for name, value in TRANSPORT.items() if name not in os.environ})
            os.environ.update({"PMI_FD": str(theirs.fileno()), "PMI_RANK": number, "PMI_SIZE": str(size)})
            os.environ.update({"MPI_LOCALRANKID": number, "MPI_LOCALNRANKS": str(size), "LSF_PM_TASKID": str(rank + 1)})
            theirs.set_inheritable(True)
            tasks.become(argv)
        theirs.close()
        self._sockets[rank] = ours
        self._ranks[pid] = rank

    def wait(self) -> int:
        """The wait status of the job, when all ranks have ended."""
        poll = select.poll()
        for one in self._sockets.values():
            poll.register(one, select.POLLIN)
        rank_of = {one.fileno(): rank for rank, one in self._sockets.items()}
        while self._ranks:
            for fd, _ in poll.poll(_LOOK_EVERY * 1000):
                rank = rank_of[fd]
                try:
                    data = self._sockets[rank].recv(65536)
                except OSError:
                    data = b""
                if data:
                    self._act(self._pmi.feed(rank, data))
                else:
                    poll.unregister(fd)
            self._reap()
        return self._failed or 0

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(rank, data):
                    self._send(rank, data)
                case Barrier(puts):
                    self._act(self._pmi.release(puts))
                case Abort(rank, code):
                    self._fail(rank, (code & 0xFF or 1) << 8, f"called abort with code {code}")
                case Broken(rank, text):
                    self._fail(rank, 1 << 8, text)

    def _send(self, rank: int, data: bytes) -> None:
        try:
            self._sockets[rank].sendall(data)
        except OSError:
            self._fail(rank, 1 << 8, "does not read its PMI")

    def _reap(self) -> None:
        while self._ranks:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            rank = self._ranks.pop(pid, None)
            if rank is None:
                continue
            if status:
                code = os.waitstatus_to_exitcode(status)
                self._fail(rank, status, f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}")
            elif self._pmi.unfinished(rank):
                self._fail(rank, 1 << 8, "ended without MPI_Finalize")

    def _fail(self, rank: int, status: int, how: str) -> None:
        if self._failed is None:
            self._failed = status
            sys.stderr.write(f"rank {rank} {how}\n")
            sys.stderr.flush()
            for pid in self._ranks:
                os.kill(pid, signal.SIGKILL)


def run(size: int, argv: list[str]) -> NoReturn:
    """Become the job's own process."""
    status = Ranks(size, argv).wait()
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
