"""The heat equation on a square plate, over all MPI ranks, which goes on from its newest checkpoint after a loss.

    bsub -a mpi -n 4 -k "$HOME/checkpoints 1 method=app" -o out.%J python heat.py result.f64

The plate has one hot edge and three cold ones. Each rank owns a block of rows and tells its neighbours its first and
last row in every step. A number depends only on its four neighbours' last values, so that the result is the same to
the last bit for any number of ranks and any interruptions: compare it with `heat.py --reference reference.f64`, which
uses neither MPI nor checkpoints. The result is float64, row after row.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from appcheckpoint import AppCheckpoint, Generation

if TYPE_CHECKING:
    from mpi4py import MPI

HOT = 100.0


def start_plate(size: int) -> np.ndarray:
    """The whole plate at step 0: its first row is the hot edge."""
    plate = np.zeros((size, size))
    plate[0] = HOT
    return plate


def step_of(rows: np.ndarray) -> np.ndarray:
    """The new values of the inner rows and columns of ``rows``."""
    new: np.ndarray = 0.25 * (rows[:-2, 1:-1] + rows[2:, 1:-1] + rows[1:-1, :-2] + rows[1:-1, 2:])
    return new


def reference(size: int, steps: int) -> np.ndarray:
    """The plate after ``steps``, calculated in one piece."""
    plate = start_plate(size)
    for _ in range(steps):
        plate[1:-1, 1:-1] = step_of(plate)
    return plate


def rows_of(rank: int, ranks: int, size: int) -> tuple[int, int]:
    """First row and end of a rank's block."""
    share, more = divmod(size, ranks)
    start = rank * share + min(rank, more)
    return start, start + share + (rank < more)


def part_name(start: int, stop: int) -> str:
    return f"rows-{start}-{stop}.f64"


def rows_from(found: Generation, start: int, stop: int, size: int) -> np.ndarray:
    """Rows of a checkpoint that any number of ranks may have written."""
    block = np.empty((stop - start, size))
    for name in found.names:
        first, end = (int(word) for word in name.removesuffix(".f64").split("-")[1:])
        low, high = max(first, start), min(end, stop)
        if low < high:
            part = np.memmap(found.folder / name, np.float64, "r", shape=(end - first, size))
            block[low - start : high - start] = part[low - first : high - first]
    return block


def exchange(comm: MPI.Intracomm, rows: np.ndarray, above: int | None, below: int | None) -> None:
    """Fill the first and last row of ``rows`` with the neighbours' nearest ones."""
    if above is not None:
        comm.Sendrecv(rows[1], dest=above, recvbuf=rows[0], source=above)
    if below is not None:
        comm.Sendrecv(rows[-2], dest=below, recvbuf=rows[-1], source=below)


def neighbours(rank: int, ranks: int, size: int) -> tuple[int | None, int | None]:
    """The ranks above and below, among those that have rows at all."""
    working = min(ranks, size)
    if rank >= working:
        return None, None
    return (rank - 1 if rank else None), (rank + 1 if rank + 1 < working else None)


def steps_from(begin: int, steps: int, pause: float) -> Iterator[int]:
    for step in range(begin, steps):
        if pause:
            time.sleep(pause)
        yield step


def write_result(comm: MPI.Intracomm, path: str, start: int, block: np.ndarray, size: int) -> None:
    """All ranks write the plate with one collective write; the name appears when it is whole."""
    from mpi4py import MPI

    file = MPI.File.Open(comm, path + ".tmp", MPI.MODE_WRONLY | MPI.MODE_CREATE)
    file.Set_size(size * size * 8)
    file.Write_at_all(start * size * 8, np.ascontiguousarray(block))
    file.Sync()
    file.Close()
    if comm.rank == 0:
        Path(path + ".tmp").rename(path)
        print(f"{path}: {size} x {size} written", flush=True)


def begin_at(comm: MPI.Intracomm, checkpoint: AppCheckpoint, start: int, stop: int, size: int) -> tuple[int, np.ndarray]:
    """The step to begin with and this rank's rows at it: from the newest checkpoint, else from the start."""
    found = checkpoint.newest()
    if found is None or found.facts.get("size") != size:
        return 0, start_plate(size)[start:stop]
    if comm.rank == 0:
        print(f"restarted from generation {found.number} at step {found.facts['iteration']}", flush=True)
    return int(found.facts["iteration"]), rows_from(found, start, stop, size)


def calculate(options: argparse.Namespace) -> None:
    from mpi4py import MPI

    comm, size = MPI.COMM_WORLD, options.size
    start, stop = rows_of(comm.rank, comm.size, size)
    checkpoint = AppCheckpoint(comm)
    begin, block = begin_at(comm, checkpoint, start, stop, size)
    above, below = neighbours(comm.rank, comm.size, size)
    rows = np.zeros((stop - start + 2, size))
    rows[1:-1] = block
    low, high = max(1, 2 - start), min(len(rows) - 1, size - start)
    if comm.rank == 0:
        print(f"{size} x {size} plate, steps {begin} to {options.steps}, {comm.size} ranks", flush=True)
    for step in steps_from(begin, options.steps, options.pause):
        if checkpoint.wanted():
            part = part_name(start, stop)
            saved = checkpoint.save(part, rows[1:-1].tobytes(), {"iteration": step, "size": size})
            if saved and comm.rank == 0:
                print(f"checkpoint at step {step}", flush=True)
        exchange(comm, rows, above, below)
        if low < high:
            rows[low:high, 1:-1] = step_of(rows[low - 1 : high + 1])
    write_result(comm, options.result, start, rows[1:-1], size)


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve the heat equation with MPI, with checkpoints.")
    parser.add_argument("result", help="file for the plate at the end")
    parser.add_argument("--size", type=int, default=256, help="rows and columns (default: 256)")
    parser.add_argument("--steps", type=int, default=2000, help="steps to calculate (default: 2000)")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="rest before each step")
    parser.add_argument("--reference", action="store_true", help="calculate in one piece, without MPI")
    options = parser.parse_args()
    if options.size < 3 or options.steps < 0:
        parser.error("--size must be at least 3, --steps at least 0")
    if options.reference:
        reference(options.size, options.steps).tofile(options.result)
    else:
        calculate_or_abort(options)


def calculate_or_abort(options: argparse.Namespace) -> None:
    """A rank that cannot go on ends all: the others would wait for it for ever."""
    from mpi4py import MPI

    try:
        calculate(options)
    except (OSError, ValueError, MPI.Exception) as error:
        print(f"heat: rank {MPI.COMM_WORLD.rank}: {error}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)


if __name__ == "__main__":
    main()
