"""The processors of a host: sockets, NUMA nodes, cores and threads, as its agent reports them.

Rule: the text form is one word a core, `socket.numa.core:cpu,cpu`, in the order of socket, node, core; a text that does not
parse is a host without topology. Equal texts are parsed once.
"""

from __future__ import annotations

import re
from functools import lru_cache

LEVELS = ("thread", "core", "numa", "socket")
"""From fine to coarse; above them is the host."""
_WORD = re.compile(r"(\d{1,5})\.(\d{1,5})\.(\d{1,6}):(\d{1,6}(?:,\d{1,6})*)", re.ASCII)

Cpus = frozenset[int]


class Topology:
    """``units``: level to the CPUs of each unit of it, in order; ``home``: level to the unit's number of each CPU."""

    __slots__ = ("cpus", "home", "nodes", "units")

    def __init__(self, cores: list[tuple[int, int, int, tuple[int, ...]]]) -> None:
        found: dict[str, dict[tuple[int, ...], list[int]]] = {level: {} for level in LEVELS}
        self.nodes: dict[int, int] = {}
        """CPU to its NUMA node."""
        for socket, numa, core, cpus in sorted(cores):
            for cpu in cpus:
                found["thread"][socket, numa, core, cpu] = [cpu]
                self.nodes[cpu] = numa
            found["core"].setdefault((socket, numa, core), []).extend(cpus)
            found["numa"].setdefault((socket, numa), []).extend(cpus)
            found["socket"].setdefault((socket,), []).extend(cpus)
        self.units: dict[str, tuple[Cpus, ...]] = {
            level: tuple(frozenset(cpus) for cpus in units.values()) for level, units in found.items()
        }
        self.home: dict[str, dict[int, int]] = {
            level: {cpu: at for at, unit in enumerate(units) for cpu in unit} for level, units in self.units.items()
        }
        self.cpus: Cpus = frozenset(self.nodes)

    def around(self, cpus: Cpus, level: str) -> Cpus:
        """All CPUs of the units of a level that these are in."""
        home, units = self.home[level], self.units[level]
        return frozenset(cpu for unit in {home[cpu] for cpu in cpus} for cpu in units[unit])


@lru_cache(maxsize=4096)
def parse_topology(text: str) -> Topology | None:
    """The topology of a text; None: it is "" or not valid."""
    cores = []
    seen: set[int] = set()
    for word in text.split():
        match = _WORD.fullmatch(word)
        if match is None:
            return None
        cpus = tuple(map(int, match[4].split(",")))
        if seen & set(cpus) or len(set(cpus)) != len(cpus):
            return None
        seen.update(cpus)
        cores.append((int(match[1]), int(match[2]), int(match[3]), cpus))
    return Topology(cores) if cores else None
