"""The ranks of an MPI job, for programs without MPI: a barrier, values that all of them know, a file that they write together.

from lava_client.ranks import CollectiveFile, Ranks

with Ranks() as ranks:                          # bsub -a mpi -n 4 python program.py
    parts = ranks.allgather(work(ranks.rank, ranks.size))
    with CollectiveFile(ranks, "result.bin") as file:
        file.write_at_all([(ranks.rank * 4096, block)])
"""

from lava_client.ranks.collective import CollectiveFile
from lava_client.ranks.group import Ranks, RanksLost

__all__ = ["CollectiveFile", "Ranks", "RanksLost"]
