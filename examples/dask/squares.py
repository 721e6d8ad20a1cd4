"""Workers of Dask as jobs: ``pip install dask-jobqueue``, then ``python squares.py`` (docs/examples.md)."""

from __future__ import annotations

from dask.distributed import Client
from dask_jobqueue import LSFCluster


def main() -> None:
    """Two workers, and a sum of what they compute."""
    with LSFCluster(queue="normal", cores=1, memory="1GB", walltime="00:10") as cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2)
        squares = client.map(lambda number: number * number, range(100))
        print(client.submit(sum, squares).result())


if __name__ == "__main__":
    main()
