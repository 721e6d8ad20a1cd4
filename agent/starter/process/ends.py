"""The end files: how the parts of a shepherd ended, one line each.

Rule: an end is in the file before the process is reaped and before the end is reported, so that it outlives shepherd and starter.
That it outlives the machine is the journal's matter: nothing here waits for the disk. A file has its blocks from the start, with
zeros in them, and is written from its beginning again as soon as no end in it is needed. What is left of older ends never passes
for one: each line has a sum of its bytes.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import os
from typing import NamedTuple

from agent.starter.protocol.codec import ProtocolError, read, text
from agent.starter.protocol.reports import EncodedReport, End, Ended, write_report
from agent.starter.system import kernel, proctree

ROOM = 64 << 10
"""Bytes of an end file from the start, about a hundred ends that the master has not acknowledged."""
_SUM = b'{"sum":"%08x",%b'
_SUMMED = len(_SUM % (0, b""))


class EndFile(NamedTuple):
    """An end file as its starter opens it; the shepherd writes at the same position."""

    fd: int

    def rewind(self) -> None:
        """No end in it is needed any more: the next one is written at its beginning."""
        os.lseek(self.fd, 0, os.SEEK_SET)

    def close(self) -> None:
        """The shepherd is gone."""
        os.close(self.fd)


def make(path: str) -> EndFile:
    """Make an end file, with its blocks where the disk has room for them; OSError when that fails."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):
        kernel.reserve(fd, 0, ROOM)
        os.pwrite(fd, bytes(ROOM), 0)
    return EndFile(fd)


class EncodedEnd(NamedTuple):
    """The report of an end, encoded once for the disk and for the starter."""

    text: bytes

    def write(self, fd: int) -> None:
        """Write it into an end file; what a full disk takes of it is no end, and gives way to the next one."""
        line = _summed(self.text) + b"\n"
        with contextlib.suppress(OSError):
            if (written := os.write(fd, line)) < len(line):
                os.lseek(fd, -written, os.SEEK_CUR)

    def report(self, gone: bool) -> EncodedReport:
        """The encoded report; ``gone``: no process of the part is left."""
        return EncodedReport(self.text[:-1] + b',"gone":true}' if gone else self.text)


def encode_end(uid: str, end: End) -> EncodedEnd:
    """Encode the end of a part."""
    return EncodedEnd(text(write_report(Ended(uid, end))))


def read_ends(path: str, sure: bool = False) -> dict[str, End]:
    """The ends in an end file, by uid; what was cut off by a crash is ignored. ``sure``: OSError for lack of files or memory."""
    found: dict[str, End] = {}
    try:
        with open(path, "rb") as f:
            lines = f.read().split(b"\n")
    except OSError as e:
        if sure and e.errno in proctree.DO_NOT_KNOW:
            raise
        return found
    for line in lines:
        line = line.strip(b"\0")
        # a starter of before wrote no sums
        if line.startswith(_SUM[:8]) and line != _summed(b"{" + line[_SUMMED:]):
            continue
        try:
            ended = read(Ended, json.loads(line))
            found[ended.uid] = ended.end
        except (ValueError, ProtocolError):
            continue
    return found


def _summed(encoded: bytes) -> bytes:
    """JSON of an object with the sum of its bytes as its first key."""
    return _SUM % (binascii.crc32(encoded), encoded[1:])
