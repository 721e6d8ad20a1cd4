"""The CPUs of hosts as agents tell of them."""

from __future__ import annotations


def regular(sockets: int, nodes: int, cores: int, threads: int) -> str:
    """The text of a host with so many NUMA nodes a socket, cores a node and threads a core; numbered as Linux does."""
    total = sockets * nodes * cores
    words = []
    for at in range(total):
        node = at // cores
        cpus = ",".join(str(at + total * thread) for thread in range(threads))
        words.append(f"{node // nodes}.{node}.{at}:{cpus}")
    return " ".join(words)
