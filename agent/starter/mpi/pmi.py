"""The PMI server of one host, without I/O: bytes from ranks in; bytes for ranks and actions of the gang out.

Rule: pure. Nothing that a rank sends raises an exception; invalid requests are refused or lead to Broken.
A rank says in its first line which version it speaks, PMI-1 or PMI-2; all ranks of a job speak the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.starter.mpi.pmi1 import RELEASED, Pmi1
from agent.starter.mpi.pmi2 import Pmi2
from agent.starter.mpi.pmi_job import MAX_MESSAGE, Action, Broken, Job, Send


class Pmi:
    """The PMI server of one host's ranks. ``mapping``: PMI_process_mapping."""

    def __init__(self, kvsname: str, size: int, mapping: str, ranks: Iterable[int]) -> None:
        self._job = Job(kvsname, size, mapping, ranks)
        self._pmi1 = Pmi1(self._job)
        self._pmi2 = Pmi2(self._job)

    @property
    def size(self) -> int:
        """The number of ranks of the job, on all hosts."""
        return self._job.size

    def feed(self, rank: int, data: bytes) -> list[Action]:
        """The actions that follow from ``data``, which a rank sent."""
        one = self._job.ranks[rank]
        one.rest += data
        actions: list[Action] = []
        if one.version < 2:
            actions += self._pmi1.read(rank, one)
        if one.version == 2:
            actions += self._pmi2.read(rank, one)
        elif len(one.rest) > MAX_MESSAGE:
            one.rest = b""
            actions.append(Broken(rank, f"rank {rank} sent a PMI line without an end"))
        return actions

    def unfinished(self, rank: int) -> bool:
        """Whether the rank has called MPI_Init and not yet MPI_Finalize."""
        one = self._job.ranks[rank]
        return one.initialized and not one.finalized

    def begun(self, rank: int) -> bool:
        """Whether the rank has ever called MPI_Init."""
        return self._job.ranks[rank].initialized

    def release(self, puts: Mapping[str, str]) -> list[Action]:
        """The barrier is complete on all hosts; ``puts``: what all of them put."""
        self._job.kvs.merge(puts)
        if self._job.version == 2:
            return [self._pmi2.released(rank, one) for rank, one in self._job.leave()]
        return [Send(rank, RELEASED) for rank, _ in self._job.leave()]

    def fail(self, reason: str) -> list[Action]:
        """The job ends: ranks that wait for others by PMI-2 are told so. In PMI-1 nothing says it."""
        self._job.failed = reason
        return self._pmi2.fail()
