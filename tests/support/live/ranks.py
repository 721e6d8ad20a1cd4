"""A small MPI program, in Python and in C, and what its ranks say: where each is and the sum over all."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

# Launchers give ranks the environment of the first host: where a rank is, its ancestors say.
PYTHON_RANK = """
import os
from mpi4py import MPI
w = MPI.COMM_WORLD
total = w.allreduce(w.rank + 1)
pid, host = os.getpid(), "?"
while pid > 1:
    with open(f"/proc/{pid}/cmdline") as f:
        words = f.read().replace(chr(0), " ").split()
    if words[:1] == ["lava-starter"]:
        host = words[1]
        break
    with open(f"/proc/{pid}/stat") as f:
        pid = int(f.read().rpartition(")")[2].split()[1])
os.write(1, f"rank {w.rank} of {w.size} on {host}: {total}\\n".encode())
"""
C_RANK = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, sum = 0;
    char line[200];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && rank == atoi(argv[1])) MPI_Abort(MPI_COMM_WORLD, 5);
    if (argc > 1 && rank == atoi(argv[1])) _exit(5);
    int one = rank + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int n = snprintf(line, sizeof line, "rank %d of %d on %s: %d\\n", rank, size, getenv("LAVA_HOST"), sum);
    if (write(1, line, n) != n) return 4;
    MPI_Finalize();
    return sum == size * (size + 1) / 2 ? 0 : 3;
}
"""


def compiled(folder: Path, compiler: Path | str, name: str) -> Path:
    """The C program, built by a library's own compiler command."""
    source = folder / "rank.c"
    source.write_text(C_RANK)
    # Open MPI's does nothing without a home folder, of which a service has none in its environment
    env = {"HOME": str(folder), **os.environ, "PATH": f"{Path(compiler).parent}:{os.environ['PATH']}"}
    subprocess.run([str(compiler), "-o", str(folder / name), str(source)], check=True, env=env, capture_output=True)
    return folder / name


def by_host(text: str, total: int) -> dict[str, int]:
    """Ranks a host; every rank once, each with the right sum."""
    found = re.findall(r"rank (\d+) of (\d+) on (\w+): (\d+)", text)
    size = len(found)
    assert sorted(int(rank) for rank, *_ in found) == list(range(total)), text
    assert {(int(of), int(value)) for _, of, _, value in found} == {(size, size * (size + 1) // 2)}, text
    return {host: sum(1 for line in found if line[2] == host) for host in {line[2] for line in found}}
