"""Ranks write one file together: the small pieces of all of them become few large writes, as with MPI-IO's collective buffering.

A write has two phases (Thakur, Gropp, Lusk: Data Sieving and Collective I/O in ROMIO, 1999): what is written is divided into
cells of ``buffer`` bytes, which belong to the writers in turn, by default one rank a host; every rank sends its pieces to the
writers of their cells, and a writer writes what it has of a cell as far as that is contiguous.

Rule: every rank takes part in each step, in the same order; what fails for one is raised by all, after all have heard of it.
"""

from __future__ import annotations

import os
import struct
import threading
from typing import TYPE_CHECKING

from lava_client.errors import LavaError
from lava_client.ranks.links import connect, host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from multiprocessing.connection import Connection
    from types import TracebackType
    from typing import Union

    from lava_client.ranks.group import Ranks

    Data = Union[bytes, bytearray, memoryview]
    Pieces = list[tuple[int, memoryview]]

BUFFER = 16 << 20
"""Bytes of a cell, as ROMIO's cb_buffer_size by default."""
MOST_RANGES = 500
"""Of cells that a rank tells the others of: where it has more, the closest are told as one."""
_PLACE = struct.Struct("!QQ")


class CollectiveFile:
    """A file that all ranks write. ``mode``: "w" empties it, "r+" keeps what is there. ``writers``: the numbers of the ranks
    that write, by default the first of each host. ``sync``: ``close`` returns once it is on the disk.

    ``writes``: how many writes this rank has made so far. Raises OSError, ValueError, LavaError.
    """

    def __init__(
        self,
        ranks: Ranks,
        path: str | os.PathLike[str],
        mode: str = "w",
        *,
        writers: Sequence[int] | None = None,
        buffer: int = BUFFER,
        sync: bool = False,
    ) -> None:
        if mode not in ("w", "r+"):
            raise ValueError(f'mode is "w" or "r+", not {mode!r}')
        if buffer < 1:
            raise ValueError(f"buffer is at least 1 byte, not {buffer}")
        self._ranks, self._buffer, self._sync = ranks, buffer, sync
        self.writes = 0
        self._fd: int | None = None
        hosts = ranks.allgather(host())
        self._writers = sorted({hosts.index(name) for name in hosts} if writers is None else set(writers))
        if not self._writers or self._writers[0] < 0 or self._writers[-1] >= ranks.size:
            raise ValueError(f"writers are numbers of ranks, 0 to {ranks.size - 1}")
        anew = os.O_TRUNC if mode == "w" else 0
        self._all_try(lambda: os.close(_opened(path, os.O_CREAT | anew)) if ranks.rank == 0 else None)
        self._all_try(lambda: self._open(path))
        self._links = connect(ranks, self._writers)

    def write_at_all(self, pieces: Iterable[tuple[int, Data]]) -> int:
        """Write the pieces (offset, bytes) of all ranks; returns how many bytes this rank's have. A rank without any gives none.
        Of pieces that overlap, that of the highest rank is written. Raises OSError, ValueError, LavaError.
        """
        if self._fd is None and self._ranks.rank in self._writers:
            raise ValueError("the file is closed")
        own: dict[int, Pieces] = {}
        self._all_try(lambda: own.update(_by_cell(pieces, self._buffer)))
        told = self._ranks.allgather(_ranges(sorted(own), MOST_RANGES))
        cells = sorted({cell for ranges in told for first, last in ranges for cell in range(first, last + 1)})
        failed: list[Exception] = []
        sender = threading.Thread(target=_caught, args=(failed, lambda: self._send(own, cells)), daemon=True)
        sender.start()
        _caught(failed, lambda: self._write(own, cells))
        sender.join()
        self._all_try(lambda: _raise_first(failed))
        return sum(data.nbytes for some in own.values() for _, data in some)

    def close(self) -> None:
        """All of it is written, for all ranks. Every rank calls it. Raises OSError, LavaError."""
        fd, self._fd = self._fd, None
        self._links.close()
        self._all_try(lambda: None if fd is None else self._end(fd))

    def __enter__(self) -> CollectiveFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._links.close()  # the others may never come to where all of them meet

    def _open(self, path: str | os.PathLike[str]) -> None:
        if self._ranks.rank in self._writers:
            self._fd = _opened(path, 0)

    def _end(self, fd: int) -> None:
        try:
            if self._sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def _all_try(self, step: Callable[[], None]) -> None:
        """Do it; where it failed for one, all raise that."""
        failed: list[Exception] = []
        _caught(failed, step)
        said = self._ranks.allgather([(getattr(error, "errno", None), str(error)) for error in failed[:1]])
        _raise_first(failed)
        for rank, errors in enumerate(said):
            for number, why in errors:
                why = f"rank {rank}: {why}"
                raise LavaError(why) if number is None else OSError(number, why)

    def _writer_of(self, cell: int) -> int:
        return self._writers[cell % len(self._writers)]

    def _send(self, own: dict[int, Pieces], cells: list[int]) -> None:
        """Send each cell's pieces to its writer, where there are none too: a writer waits for all ranks, cell after cell."""
        for cell in cells:
            writer = self._writer_of(cell)
            if writer != self._ranks.rank:
                pieces = own.get(cell, [])
                link = self._links.to[writer]
                link.send_bytes(b"".join(_PLACE.pack(offset, data.nbytes) for offset, data in pieces))
                link.send_bytes(b"".join(data for _, data in pieces))

    def _write(self, own: dict[int, Pieces], cells: list[int]) -> None:
        failed: list[Exception] = []
        mine = [cell for cell in cells if self._writer_of(cell) == self._ranks.rank]
        filled = memoryview(bytearray(self._buffer if mine else 0))
        for cell in mine:
            begin = cell * self._buffer
            places: list[tuple[int, int]] = []
            for rank in range(self._ranks.size):
                for offset, data in own.get(cell, []) if rank == self._ranks.rank else _received(self._links.of[rank]):
                    filled[offset - begin : offset - begin + data.nbytes] = data
                    places.append((offset, offset + data.nbytes))
            if not failed:  # after a failure the others' pieces are still taken, so that nobody waits for ever
                try:
                    self._write_runs(filled, begin, _merged(places))
                except OSError as error:
                    failed.append(error)
        _raise_first(failed)

    def _write_runs(self, filled: memoryview, begin: int, runs: list[tuple[int, int]]) -> None:
        assert self._fd is not None
        for first, end in runs:
            at = first
            while at < end:
                at += os.pwrite(self._fd, filled[at - begin : end - begin], at)
                self.writes += 1


def _opened(path: str | os.PathLike[str], flags: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o666)


def _received(link: Connection) -> Pieces:
    """The pieces of one cell from one rank."""
    table, data = link.recv_bytes(), memoryview(link.recv_bytes())
    pieces: Pieces = []
    at = 0
    for offset, length in _PLACE.iter_unpack(table):
        pieces.append((offset, data[at : at + length]))
        at += length
    return pieces


def _by_cell(pieces: Iterable[tuple[int, Data]], buffer: int) -> dict[int, Pieces]:
    """Pieces by the number of their cell, cut where one ends."""
    found: dict[int, Pieces] = {}
    for offset, data in pieces:
        left = memoryview(data).cast("B")
        if offset < 0:
            raise ValueError(f"an offset is at least 0, not {offset}")
        while left.nbytes:
            cell = offset // buffer
            here = min(left.nbytes, (cell + 1) * buffer - offset)
            found.setdefault(cell, []).append((offset, left[:here]))
            offset, left = offset + here, left[here:]
    return found


def _ranges(cells: list[int], most: int) -> list[tuple[int, int]]:
    """Cells as ranges (first, last), at most so many: then some hold cells in which nothing is."""
    found = _merged([(cell, cell + 1) for cell in cells])
    if len(found) > most:
        gaps = sorted(range(1, len(found)), key=lambda at: found[at][0] - found[at - 1][1])
        joined = set(gaps[: len(found) - most])
        firsts = [at for at in range(len(found)) if at not in joined]
        found = [(found[at][0], found[end - 1][1]) for at, end in zip(firsts, [*firsts[1:], len(found)])]
    return [(first, end - 1) for first, end in found]


def _merged(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges (begin, end) that together are these, each as long as it can be."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(places):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _caught(failed: list[Exception], step: Callable[[], None]) -> None:
    try:
        step()
    except Exception as error:
        failed.append(error)


def _raise_first(failed: list[Exception]) -> None:
    if failed:
        raise failed[0]
