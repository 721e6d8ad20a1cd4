"""One rank and the others: their barrier, the values that all of them know, and the end of all.

They go through the PMI-1 service that lava gives the ranks of ``-a mpi`` (the dialogue is MPICH's), so a process either uses this
or MPI. Started by itself a program is one rank, as with MPI.

Rule: every rank calls what is collective (``barrier``, ``allgather``), in the same order. A rank that dies or leaves before ends
the job, and so what waits for it.
"""

from __future__ import annotations

import atexit
import base64
import os
import pickle
import socket
from typing import TYPE_CHECKING

from lava_client.errors import LavaError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any

MOST = 64 << 10
"""Bytes of a pickled value that ``allgather`` takes from each rank: it goes through PMI, in pieces."""
PIECE = 1000
"""Characters of a piece: PMI's values have at most 1,024."""
_AT_ONCE = 32
"""Requests that are sent before their answers are read."""


class RanksLost(LavaError):
    """The job's PMI service is gone: the job ends, or this process is none of its ranks."""


class Ranks:
    """This rank and the others; for one thread at a time. ``environ``: where PMI_RANK, PMI_SIZE and PMI_FD are.

    ``rank``: the number of this one, from 0; ``size``: how many there are; ``local_rank``, ``local_size``: the same on this host.
    Raises RanksLost.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        found = os.environ if environ is None else environ
        self.rank, self.size = int(found.get("PMI_RANK", "0")), int(found.get("PMI_SIZE", "1"))
        self.local_rank = int(found.get("MPI_LOCALRANKID", "0"))
        self.local_size = int(found.get("MPI_LOCALNRANKS", "1"))
        self._rest = b""
        self._turn = 0
        self._link: socket.socket | None = None
        self._space = ""
        if "PMI_FD" not in found:
            if self.size > 1:
                raise RanksLost(f"PMI_SIZE is {self.size}, but there is no PMI_FD")
            return
        try:
            self._link = socket.socket(fileno=int(found["PMI_FD"]))
        except (OSError, ValueError) as error:
            raise RanksLost(f"PMI_FD={found['PMI_FD']} is no socket: {error}") from None
        self._asked("cmd=init pmi_version=1 pmi_subversion=1")
        self._space = self._asked("cmd=get_my_kvsname")["kvsname"]
        atexit.register(self.close)

    def barrier(self) -> None:
        """Returns once all ranks have called it. Raises RanksLost."""
        if self._link is not None or self.size > 1:
            self._asked("cmd=barrier_in")

    def allgather(self, value: Any) -> list[Any]:
        """What all ranks gave, in the order of their numbers; small values (``MOST``). Raises ValueError, RanksLost."""
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        if len(data) > MOST:
            raise ValueError(f"allgather takes values of at most {MOST} bytes, and this one has {len(data)}")
        if self._link is None and self.size == 1:
            return [pickle.loads(data)]
        # What was put two turns ago has been read by all: each of them has been in the barrier since.
        self._turn ^= 1
        text = base64.b64encode(data).decode("ascii")
        pieces = [str(len(text)), *(text[at : at + PIECE] for at in range(0, len(text), PIECE))]
        self._all_asked([f"cmd=put {self._key(self.rank, at)} value={piece}" for at, piece in enumerate(pieces)])
        self.barrier()
        lengths = [int(one["value"]) for one in self._all_asked([f"cmd=get {self._key(rank, 0)}" for rank in range(self.size)])]
        wanted = [(rank, at) for rank, length in enumerate(lengths) for at in range(1, 1 + -(-length // PIECE))]
        texts = [""] * self.size
        for (rank, _), one in zip(wanted, self._all_asked([f"cmd=get {self._key(rank, at)}" for rank, at in wanted])):
            texts[rank] += one["value"]
        return [pickle.loads(base64.b64decode(text)) for text in texts]

    def abort(self, why: str = "", code: int = 1) -> None:
        """End the job, all its ranks, with this exit code (1-255); does not return."""
        if self._link is not None:
            try:
                self._send([f"cmd=abort exitcode={code} error_msg={' '.join(why.split())}"])
                while self._link.recv(4096):  # the end comes from lava
                    pass
            except OSError:
                pass
        os._exit(code)

    def close(self) -> None:
        """This rank needs the others no more, and may end before them."""
        link, self._link = self._link, None
        atexit.unregister(self.close)
        if link is not None:
            with link:
                try:
                    link.sendall(b"cmd=finalize\n")
                    link.recv(4096)
                except OSError:
                    pass

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()

    def _key(self, rank: int, at: int) -> str:
        return f"kvsname={self._space} key=lava.{self._turn}.{rank}.{at}"

    def _asked(self, line: str) -> dict[str, str]:
        return self._all_asked([line])[0]

    def _all_asked(self, lines: list[str]) -> list[dict[str, str]]:
        answers: list[dict[str, str]] = []
        for begin in range(0, len(lines), _AT_ONCE):
            some = lines[begin : begin + _AT_ONCE]
            self._send(some)
            for line in some:
                answer = _fields(self._line())
                if answer.get("rc", "0") != "0":
                    raise RanksLost(f"PMI refuses {line[:80]}: {answer.get('msg', '')}")
                answers.append(answer)
        return answers

    def _send(self, lines: list[str]) -> None:
        if self._link is None:
            raise RanksLost("these ranks are closed")
        try:
            self._link.sendall("".join(line + "\n" for line in lines).encode())
        except OSError as error:
            raise RanksLost(f"the job's PMI service is gone: {error.strerror}") from None

    def _line(self) -> str:
        assert self._link is not None
        while b"\n" not in self._rest:
            try:
                data = self._link.recv(1 << 16)
            except OSError as error:
                raise RanksLost(f"the job's PMI service is gone: {error.strerror}") from None
            if not data:
                raise RanksLost("the job's PMI service is gone")
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode("utf-8", "replace")


def _fields(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)
