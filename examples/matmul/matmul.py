"""C = A x B over all MPI ranks: the inputs are read, and the product is written, by collective MPI-IO on shared files.

    bsub -a mpi -n 4 -R "span[ptile=2]" -o out.%J python matmul.py A.bin B.bin C.bin

Each rank owns a block of rows of A, B and C. The blocks of B go round a ring: in step s a rank multiplies the columns
of its A that belong to the block it holds, and passes that block on. No rank ever holds a whole matrix. The files hold
float64, row after row (generate.py makes them; check.py checks the product). Any number of ranks will do.
"""

import argparse
import math
import os
import sys
from pathlib import Path

# One thread a rank: the ranks themselves are the parallelism.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from mpi4py import MPI

REAL = np.dtype(np.float64)


def rows_of(rank: int, ranks: int, size: int) -> tuple[int, int]:
    """First row and end of a rank's block; the first ``size % ranks`` blocks have one row more."""
    share, more = divmod(size, ranks)
    start = rank * share + min(rank, more)
    return start, start + share + (rank < more)


def size_of(path: str) -> int:
    """Rows of the square matrix in a file."""
    try:
        length = Path(path).stat().st_size
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    size = math.isqrt(length // REAL.itemsize)
    if size < 1 or size * size * REAL.itemsize != length:
        raise ValueError(f"{path}: not a square matrix of float64 ({length} bytes)")
    return size


def agree_on_size(comm: MPI.Intracomm, a: str, b: str) -> int:
    """Look at the inputs on rank 0; every rank ends alike when they are wrong."""
    size, wrong = 0, ""
    if comm.rank == 0:
        try:
            size = size_of(a)
            if size_of(b) != size:
                wrong = f"{a} and {b}: matrices of different sizes"
        except ValueError as error:
            wrong = str(error)
    agreed: tuple[int, str] = comm.bcast((size, wrong))
    size, wrong = agreed
    if wrong:
        if comm.rank == 0:
            print(f"matmul: {wrong}", file=sys.stderr)
        sys.exit(1)
    return size


def read_rows(comm: MPI.Intracomm, path: str, start: int, stop: int, size: int) -> np.ndarray:
    """This rank's rows, in one collective read."""
    block = np.empty((stop - start, size), REAL)
    file = MPI.File.Open(comm, path, MPI.MODE_RDONLY)
    file.Read_at_all(start * size * REAL.itemsize, block)
    file.Close()
    return block


def write_rows(comm: MPI.Intracomm, path: str, start: int, block: np.ndarray, size: int) -> None:
    """All ranks write the whole file with one collective write."""
    file = MPI.File.Open(comm, path, MPI.MODE_WRONLY | MPI.MODE_CREATE)
    file.Set_size(size * size * REAL.itemsize)
    file.Set_view(start * size * REAL.itemsize, MPI.DOUBLE)
    file.Write_at_all(0, block)
    file.Sync()
    file.Close()


def multiply(comm: MPI.Intracomm, a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    """This rank's rows of the product; ``b`` is this rank's block, and the others' come round the ring."""
    product = np.zeros((len(a), size), REAL)
    largest = rows_of(0, comm.size, size)[1]
    held, coming = np.empty((largest, size), REAL), np.empty((largest, size), REAL)
    held[: len(b)] = b
    for step in range(comm.size):
        owner = (comm.rank + step) % comm.size
        start, stop = rows_of(owner, comm.size, size)
        product += a[:, start:stop] @ held[: stop - start]
        if step < comm.size - 1:
            comm.Sendrecv(held, dest=(comm.rank - 1) % comm.size, recvbuf=coming, source=(comm.rank + 1) % comm.size)
            held, coming = coming, held
    return product


def run(comm: MPI.Intracomm, options: argparse.Namespace) -> None:
    """Read, multiply, write; say what this rank did."""
    size = agree_on_size(comm, options.a, options.b)
    start, stop = rows_of(comm.rank, comm.size, size)

    began = MPI.Wtime()
    a = read_rows(comm, options.a, start, stop, size)
    b = read_rows(comm, options.b, start, stop, size)
    read = MPI.Wtime()
    product, products = multiply(comm, a, b, size), 1
    while comm.bcast(MPI.Wtime() - read < options.at_least):
        product, products = multiply(comm, a, b, size), products + 1
    multiplied = MPI.Wtime()
    write_rows(comm, options.product, start, product, size)
    written = MPI.Wtime()

    host = os.environ.get("LAVA_HOST") or MPI.Get_processor_name()
    rows = f"rows {start} to {stop - 1}" if stop > start else "no rows"
    print(f"rank {comm.rank} of {comm.size} on {host}: {rows}", flush=True)
    comm.Barrier()
    if comm.rank == 0:
        rate = 2 * size**3 * products / max(multiplied - read, 1e-9) / 1e9
        print(
            f"{size} x {size}, {comm.size} ranks: read {read - began:.3f} s, {products} products"
            f" {multiplied - read:.3f} s ({rate:.1f} GFlop/s), write {written - multiplied:.3f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply two matrices in files with MPI.")
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("product")
    parser.add_argument(
        "--at-least",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="multiply again and again for so long, to have something to watch",
    )
    options = parser.parse_args()
    try:
        run(MPI.COMM_WORLD, options)
    except (OSError, MPI.Exception) as error:
        # A rank that cannot go on ends all: the others would wait for it for ever.
        print(f"matmul: rank {MPI.COMM_WORLD.rank}: {error}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)


if __name__ == "__main__":
    main()
