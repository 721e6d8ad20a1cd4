"""Sockets, NUMA nodes, cores and threads of this host, as /sys shows them.

Rule: one word a core, `socket.numa.core:cpu,cpu`; only CPUs that this process may run on; "" where /sys does not say.
LAVA_SIM_TOPOLOGY=2x2x4x2 (sockets x nodes x cores x threads) stands for a machine of that shape; nothing is bound there.
"""

from __future__ import annotations

import os
import re

SIMULATED = "LAVA_SIM_TOPOLOGY"
_SHAPE = re.compile(r"(\d{1,3})x(\d{1,3})x(\d{1,3})x(\d)", re.ASCII)
_CPUS = "/sys/devices/system/cpu"
_NODES = "/sys/devices/system/node"


def read_topology() -> str:
    """The topology as text."""
    shape = _SHAPE.fullmatch(os.environ.get(SIMULATED, ""))
    if shape is not None:
        return _regular(*map(int, shape.groups()))
    nodes = _nodes()
    cores: dict[tuple[int, int, int], list[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        socket = _number(f"{_CPUS}/cpu{cpu}/topology/physical_package_id")
        core = _number(f"{_CPUS}/cpu{cpu}/topology/core_id")
        if socket is None or core is None:
            return ""
        cores.setdefault((max(0, socket), nodes.get(cpu, 0), core), []).append(cpu)
    return _text(cores)


def _text(cores: dict[tuple[int, int, int], list[int]]) -> str:
    return " ".join(f"{s}.{n}.{c}:{','.join(map(str, cpus))}" for (s, n, c), cpus in sorted(cores.items()))


def _regular(sockets: int, nodes: int, cores: int, threads: int) -> str:
    total = sockets * nodes * cores
    found = {}
    for at in range(total):
        node = at // cores
        found[node // nodes, node, at] = [at + total * thread for thread in range(threads)]
    return _text(found)


def _nodes() -> dict[int, int]:
    """CPU to NUMA node."""
    found: dict[int, int] = {}
    try:
        names = os.listdir(_NODES)
    except OSError:
        return found
    for name in names:
        if re.fullmatch(r"node\d+", name):
            found.update(dict.fromkeys(cpu_list(_read(f"{_NODES}/{name}/cpulist")), int(name[4:])))
    return found


def cpu_list(text: str) -> list[int]:
    """`0-3,8` as the kernel writes it."""
    found: list[int] = []
    for word in text.strip().split(","):
        first, _, last = word.partition("-")
        if first.isdigit():
            found += range(int(first), int(last or first) + 1)
    return found


def _number(path: str) -> int | None:
    try:
        return int(_read(path))
    except ValueError:
        return None


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""
