"""The output pipes of the ranks on one host: read, cut into whole lines, and passed on line by line.

Rule: what a rank wrote is passed on before its end is reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from agent.starter.system.stdio import Lines
from agent.starter.system.watch import Watch

OUT = 1
ERR = 2
_CHUNK = 64 * 1024
_MAX_DRAIN = 64

# (stream, whole lines)
Put = Callable[[int, bytes], None]


class _Pipe:
    __slots__ = ("fd", "lines", "rank", "stream")

    def __init__(self, fd: int, rank: int, stream: int, label: bytes) -> None:
        self.fd = fd
        self.rank = rank
        self.stream = stream
        self.lines = Lines(label)


class RankOutput:
    """Passes whole lines of the ranks on to ``put``, with ``[label] `` in front for ranks that have a label."""

    def __init__(self, watch: Watch, labels: dict[int, str], put: Put) -> None:
        self._watch = watch
        self._labels = labels
        self._put = put
        self._pipes: dict[int, _Pipe] = {}
        self._paused = False

    def new(self, rank: int, stream: int) -> int:
        """Make a pipe for one stream of a rank; returns its write end, which the caller closes after the start."""
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(read_end, False)
        label = f"[{self._labels[rank]}] ".encode() if rank in self._labels else b""
        self._pipes[read_end] = _Pipe(read_end, rank, stream, label)
        if not self._paused:
            self._watch.add(read_end, lambda _: self._ready(read_end))
        return write_end

    def pause(self, paused: bool) -> None:
        """Stop or resume reading; while stopped, ranks block in write(2) when their pipe is full."""
        if paused is self._paused:
            return
        self._paused = paused
        for fd in self._pipes:
            if paused:
                self._watch.remove(fd)
            else:
                self._watch.add(fd, lambda _, fd=fd: self._ready(fd))  # type: ignore[misc]

    def drain(self, rank: int | None = None) -> None:
        """Read what is in the pipes of a rank, or of all, now."""
        for pipe in list(self._pipes.values()):
            if rank is None or pipe.rank == rank:
                for _ in range(_MAX_DRAIN):
                    if not self._read(pipe):
                        break

    def close(self) -> None:
        """Pass on what is left, also a last line without a newline, and close the pipes."""
        self.drain()
        for pipe in list(self._pipes.values()):
            self._end(pipe)

    def _ready(self, fd: int) -> None:
        pipe = self._pipes.get(fd)
        if pipe is not None:
            self._read(pipe)

    def _read(self, pipe: _Pipe) -> bool:
        try:
            data = os.read(pipe.fd, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._end(pipe)
            return False
        if lines := pipe.lines.feed(data):
            self._put(pipe.stream, lines)
        return True

    def _end(self, pipe: _Pipe) -> None:
        if rest := pipe.lines.end():
            self._put(pipe.stream, rest)
        self._pipes.pop(pipe.fd, None)
        self._watch.remove(pipe.fd)
        os.close(pipe.fd)
