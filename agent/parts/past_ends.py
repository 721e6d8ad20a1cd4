"""Ends that the master has acknowledged, kept for a while: a store restored from an older backup does not have them.

Rule: two files, each of at most ``LARGEST`` bytes; the older one goes when the newer is full. It is not waited for, and lost
with the machine.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from agent.starter.system.stdio import append
from proto import agent_pb2 as pb

LARGEST = 4 << 20
SKEW = 600.0
"""Seconds by which the clocks of this host and of the master may differ. An end that is told once too often does no harm."""
_HEAD = struct.Struct(">Id")


class PastEnds:
    """The two files, below the agent's own folder; only the agent can read them."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "ends.journal")
        self._old = self._path + ".1"
        self._waiting: list[bytes] = []
        self._fd = -1
        self._size = 0

    def keep(self, report: pb.Report, at: float) -> None:
        """An end that was acknowledged; ``at``: seconds since the epoch, now."""
        body = report.SerializeToString()
        self._waiting.append(_HEAD.pack(len(body), at) + body)

    def flush(self) -> None:
        """Hand over to the system what was kept since. A full disk costs a restored store these ends, and nothing else."""
        if not self._waiting:
            return
        data = b"".join(self._waiting)
        self._waiting.clear()
        with contextlib.suppress(OSError):
            self._open()
            append(self._fd, data)
            self._size += len(data)
            if self._size > LARGEST:
                os.replace(self._path, self._old)
                os.close(self._fd)
                self._fd = -1

    def since(self, at: float) -> dict[str, pb.Report]:
        """The ends that were acknowledged at this time or later, by uid."""
        self.flush()
        kept = (*_read(self._old), *_read(self._path))
        return {report.uid: report for when, report in kept if when >= at - SKEW}

    def _open(self) -> None:
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._size = os.fstat(self._fd).st_size


def _read(path: str) -> Iterator[tuple[float, pb.Report]]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return
    at = 0
    while at + _HEAD.size <= len(data):
        size, when = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        try:
            report = pb.Report.FromString(data[at : at + size])
        except DecodeError:
            return
        at += size
        if at <= len(data):  # else it was cut off
            yield when, report
