"""Processes that know of each other by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE alone: each sends its rank to rank 0,
which sends the sum of all back."""

from __future__ import annotations

import os
import socket
import time


def connect(address: tuple[str, int]) -> socket.socket:
    """Rank 0 may come later."""
    until = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def main() -> None:
    """One process."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        listener = socket.create_server(address, backlog=size)
        files = [listener.accept()[0].makefile("rw") for _ in range(size - 1)]
        total = sum(int(file.readline()) for file in files)
        for file in files:
            file.write(f"{total}\n")
            file.flush()
    else:
        file = connect(address).makefile("rw")
        file.write(f"{rank}\n")
        file.flush()
        total = int(file.readline())
    print(f"rank {rank} of {size} knows {total}", flush=True)


if __name__ == "__main__":
    main()
