"""The end files: how the parts of a shepherd ended, one line each.

Rule: an end is on disk before the process is reaped and before the end is reported. A file has its blocks from the start, with
zeros in them, and is written from its beginning again as soon as no end in it is needed. So a new end changes the data of the
file alone, for which a file system needs no transaction. What is left of older ends never passes for one: each line has a sum of
its bytes.
"""

from __future__ import annotations

import binascii
import errno
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
    has_room: bool
    """It has its blocks, which a full disk does not give."""

    def rewind(self) -> None:
        """No end in it is needed any more: the next one is written at its beginning."""
        os.lseek(self.fd, 0, os.SEEK_SET)

    def close(self) -> None:
        """The shepherd is gone."""
        os.close(self.fd)


def make(path: str) -> EndFile:
    """Make an end file; OSError when that fails."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        has_room = kernel.reserve(fd, 0, ROOM) and os.pwrite(fd, bytes(ROOM), 0) == ROOM
    except OSError:
        has_room = False
    return EndFile(fd, has_room)


class EncodedEnd(NamedTuple):
    """The report of an end, encoded once for the disk and for the starter."""

    text: bytes

    def written(self, fd: int) -> EncodedEnd:
        """Write it into an end file and wait until it is on disk; returns what is to be reported.

        Where that fails (a full disk) the end is reported anyway, and says that it is in no end file.
        """
        line = _summed(self.text) + b"\n"
        try:
            written = os.write(fd, line)
            if written < len(line):
                os.lseek(fd, -written, os.SEEK_CUR)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(fd)
        except OSError:
            return EncodedEnd(self.text[:-1] + b',"unsaved":true}')
        return self

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
