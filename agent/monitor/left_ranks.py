"""The ranks of processes that have left their rank's tree, as those of a container of podman do: by their environment.

Rule: only processes of parts with several ranks of which nothing else tells the rank are looked at, each a few times at most.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.monitor.procscan import Proc, read_file
from agent.monitor.tree import REST, Id, PartRoots

LOOKS = 3
"""A process may be seen before it has become what it is to be."""
_NAME = b"LSF_PM_TASKID="
_LONGEST = 1 << 18


class LeftRanks:
    """What was looked at in the parts of this host."""

    def __init__(self) -> None:
        self._looks: dict[Id, int] = {}

    def name(self, members: Mapping[str, dict[int, int]], procs: Mapping[int, Proc], parts: Mapping[str, PartRoots]) -> None:
        """Put the ranks that are found into ``members``: uid of a part -> pid -> rank."""
        looks: dict[Id, int] = {}
        for uid, ranks_of in members.items():
            if len(parts[uid].tasks) < 2:
                continue
            ranks = {rank for rank, _, _ in parts[uid].tasks}
            for pid in [pid for pid, rank in ranks_of.items() if rank == REST]:
                process = pid, procs[pid].start
                looks[process] = min(LOOKS, self._looks.get(process, 0)) + 1
                if looks[process] <= LOOKS and (found := _rank_of(pid)) in ranks:
                    ranks_of[pid] = found
        self._looks = looks


def _rank_of(pid: int) -> int:
    """REST: its environment names none."""
    for variable in read_file(f"/proc/{pid}/environ", _LONGEST).split(b"\0"):
        if variable.startswith(_NAME):
            number = variable[len(_NAME) :]
            return int(number) - 1 if number.isdigit() else REST
    return REST
