"""How the GPUs of a host are linked, and which of them go best together: NVLink before PCIe switch before NUMA node.

Rule: a GPU's ``links`` has a letter for each GPU of its host, by position, as of ``nvidia-smi topo -m``: N NVLink, P and B PCIe
switches (PIX, PXB), H host bridge (PHB), D NUMA node (NODE), S beyond (SYS); anything else counts as farthest. An island is a
set of GPUs that are linked, directly or through others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lavad.core.site.host import Gpu

LETTERS = {"NV": "N", "PIX": "P", "PXB": "B", "PHB": "H", "NODE": "D", "SYS": "S", "SELF": "X"}
_NEAR = "NPBHD"

Islands = tuple[frozenset[int], ...]


def nvlinked(gpus: Sequence[Gpu]) -> Islands:
    """The NVLink islands, as sets of positions of GPUs."""
    return _islands(tuple(gpu.links for gpu in gpus), 1)


def islands_of(gpus: Sequence[Gpu]) -> Islands:
    """The islands by the nearest kind of link that joins any: NVLink, else a PCIe switch and so on; none: each GPU by itself."""
    return _nearest(tuple(gpu.links for gpu in gpus))


@lru_cache(maxsize=1024)
def _nearest(links: tuple[str, ...]) -> Islands:
    levels = (_islands(links, level) for level in range(1, len(_NEAR) + 1))
    return next((found for found in levels if len(found) < len(links)), _islands(links, 0))


@lru_cache(maxsize=1024)
def _islands(links: tuple[str, ...], level: int) -> Islands:
    """Islands by the nearest ``level`` kinds of links; 0: each GPU by itself."""
    left = dict.fromkeys(range(len(links)))
    found = []
    while left:
        island, edge = set(), [next(iter(left))]
        while edge:
            at = edge.pop()
            if at in left:
                del left[at]
                island.add(at)
                edge += [other for other in left if _joined(links, at, other, level)]
        found.append(frozenset(island))
    return tuple(found)


def _joined(links: tuple[str, ...], one: int, other: int, level: int) -> bool:
    letters = (links[one][other : other + 1], links[other][one : one + 1])
    return any(letter and letter in _NEAR[:level] for letter in letters)


def choose(gpus: Sequence[Gpu], free: Sequence[int], count: int, strict: bool) -> list[int]:
    """``count`` of the ``free`` positions (best first) with the nearest links, from the island that fits best.

    ``strict`` (glink=yes): all within one NVLink island, or none.
    """
    if count > len(free):
        return []
    return list(_choose(tuple(gpu.links for gpu in gpus), tuple(free), count, strict))


@lru_cache(maxsize=65_536)
def _choose(links: tuple[str, ...], free: tuple[int, ...], count: int, strict: bool) -> tuple[int, ...]:
    if not strict and not any(links):
        return free[:count]
    for level in range(1, len(_NEAR) + 1):
        rooms = [[at for at in free if at in island] for island in _islands(links, level)]
        large = [room for room in rooms if len(room) >= count]
        if large:
            best = min(large, key=lambda room: (len(room), free.index(room[0])))
            return tuple(best[:count] if level == 1 else _fill(links, best, count, level - 1))
        if strict:
            return ()
    return tuple(_fill(links, list(free), count, len(_NEAR)))


def _fill(links: tuple[str, ...], room: list[int], count: int, level: int) -> list[int]:
    """From as few islands of ``level`` as possible: the largest as a whole, and the best fitting for the rest."""
    chosen: list[int] = []
    islands = [found for island in _islands(links, level) if (found := [at for at in room if at in island])]
    islands.sort(key=lambda found: room.index(found[0]))
    while len(chosen) < count:
        rest = count - len(chosen)
        fitting = [island for island in islands if len(island) >= rest]
        island = min(fitting, key=len) if fitting else max(islands, key=len)
        islands.remove(island)
        whole = len(island) <= rest
        chosen += island if whole else _fill(links, island, rest, level - 1) if level > 1 else island[:rest]
    return chosen
